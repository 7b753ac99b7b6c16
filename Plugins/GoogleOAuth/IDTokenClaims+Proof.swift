import MoongateSDK

extension IDTokenClaims {
  /// What it establishes: the identity at the provider, then the address where the provider is authoritative for it. An
  /// address that it has verified at some time is attested: it joins no account without that account's own proof. One
  /// that it has not verified is only claimed.
  /// - Parameter issuer: under its one name.
  func proof(issuer: String) -> Proof {
    let identity = Identifier(kind: .federated, value: "\(issuer) \(subject)", display: email ?? "\(issuer) \(subject)")
    let address = email.flatMap(EmailAddress.init).map(Identifier.init)
    let addresses = [address].compactMap(\.self)
    return Proof(
      proved: [identity] + (isAuthoritative(for: address) ? addresses : []),
      attested: isEmailVerified && !isAuthoritative(for: address) ? addresses : [],
      claimed: isEmailVerified ? [] : addresses,
      firstName: Self.readable(firstName) ?? Self.readable(name), lastName: Self.readable(lastName))
  }

  /// Whether the provider still decides who has the address: its own mail, or an organisation whose accounts it keeps
  /// (developers.google.com/identity/gsi/web/guides/verify-google-id-token).
  ///
  /// Attack: an account at the provider that was made with an address elsewhere stays verified after the address has
  /// gone to somebody else.
  private func isAuthoritative(for address: Identifier?) -> Bool {
    guard isEmailVerified, let domain = address?.value.split(separator: "@").last?.lowercased() else { return false }
    return domain == "gmail.com" || domain == hostedDomain?.lowercased()
  }

  /// A name as it may be shown, and may go into headers: at most 100 characters, none of them a control, a line end, or
  /// a mark that turns the text around it.
  private static func readable(_ name: String?) -> String? {
    let scalars = (name ?? "").unicodeScalars.filter { scalar in
      ![.control, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse].contains(
        scalar.properties.generalCategory)
        && !scalar.properties.isBidiControl
    }
    let text = String(String.UnicodeScalarView(scalars)).prefix(100)
    return text.allSatisfy(\.isWhitespace) ? nil : String(text)
  }
}
