import MoongateSDK

extension IDTokenClaims {
  /// What it establishes: the identity at the provider, then the address where the provider vouches for it. An address that it
  /// does not vouch for is only claimed: it joins no account.
  /// - Parameter issuer: under its one name.
  func proof(issuer: String) -> Proof {
    let identity = Identifier(kind: .federated, value: "\(issuer) \(subject)", display: email ?? "\(issuer) \(subject)")
    let address = email.flatMap(EmailAddress.init).map(Identifier.init)
    return Proof(
      proved: [identity] + (isEmailVerified ? [address].compactMap(\.self) : []), claimed: isEmailVerified ? [] : [address].compactMap(\.self),
      firstName: Self.readable(firstName) ?? Self.readable(name), lastName: Self.readable(lastName))
  }

  /// A name as it may be shown, and may go into headers: at most 100 characters, none of them a control, a line end, or a mark that turns the
  /// text around it.
  private static func readable(_ name: String?) -> String? {
    let scalars = (name ?? "").unicodeScalars.filter { scalar in
      ![.control, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse].contains(scalar.properties.generalCategory)
        && !scalar.properties.isBidiControl
    }
    let text = String(String.UnicodeScalarView(scalars)).prefix(100)
    return text.allSatisfy(\.isWhitespace) ? nil : String(text)
  }
}
