import MoongateSDK

extension IDTokenClaims {
  /// What it establishes: the identity at the provider, then the address where the provider vouches for it. An address that it
  /// does not vouch for is only claimed: it joins no account.
  /// - Parameter issuer: under its one name.
  func proof(issuer: String) -> Proof {
    let identity = Identifier(kind: .federated, value: "\(issuer) \(subject)", display: email ?? "\(issuer) \(subject)")
    let address = email.flatMap(Self.address)
    return Proof(
      proved: [identity] + (isEmailVerified ? [address].compactMap(\.self) : []), claimed: isEmailVerified ? [] : [address].compactMap(\.self),
      firstName: Self.readable(firstName) ?? Self.readable(name), lastName: Self.readable(lastName))
  }

  /// The address in the spelling that the email code has for it too: else the two would be two people.
  private static func address(_ text: String) -> Identifier? {
    let address = text.lowercased()
    let parts = address.split(separator: "@", omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty, parts[1].contains("."), address.utf8.count <= 254, parts[0].utf8.count <= 64,
      address.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f && !"\"(),:;<>[\\]".utf8.contains($0) })
    else { return nil }
    return Identifier(kind: .email, value: address, display: text, attributes: ["domain": String(parts[1])])
  }

  /// A name as it may be shown: at most 100 characters, none of them invisible controls.
  private static func readable(_ name: String?) -> String? {
    let scalars = (name ?? "").unicodeScalars.filter { $0.properties.generalCategory != .control }
    let text = String(String.UnicodeScalarView(scalars)).prefix(100)
    return text.allSatisfy(\.isWhitespace) ? nil : String(text)
  }
}
