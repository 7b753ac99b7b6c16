import MoongateSDK

extension IDTokenClaims {
  /// The proof of the claims: the identity at the provider, and the address if the provider is authoritative for it. An
  /// address that the provider verified once is attested: it joins an account only with that account's own proof. An
  /// unverified address is only claimed.
  /// - Parameter issuer: the canonical name of the issuer.
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

  /// Whether the provider is authoritative for the address: its own mail domain, or the domain of the account's
  /// organization (developers.google.com/identity/gsi/web/guides/verify-google-id-token).
  ///
  /// Attack: an account at the provider with an address elsewhere stays verified after the address has been reassigned.
  private func isAuthoritative(for address: Identifier?) -> Bool {
    guard isEmailVerified, let domain = address?.value.split(separator: "@").last?.lowercased() else { return false }
    return domain == "gmail.com" || domain == hostedDomain?.lowercased()
  }

  /// A name that is safe in pages and headers: at most 100 characters, without control characters, line separators and
  /// bidirectional controls.
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
