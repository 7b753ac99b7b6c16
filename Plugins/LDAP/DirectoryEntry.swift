import Foundation
import MoongateSDK

/// An entry of a directory, with the attributes that were asked for.
struct DirectoryEntry: Sendable, Equatable {
  /// The distinguished name.
  let name: String
  private var values: [String: [[UInt8]]] = [:]

  init(name: String, _ values: [String: [String]] = [:]) {
    self.name = name
    for (attribute, texts) in values { self.values[attribute.lowercased()] = texts.map { Array($0.utf8) } }
  }

  mutating func add(_ value: [UInt8], to attribute: String) {
    values[attribute.lowercased(), default: []].append(value)
  }

  /// The values that are text.
  func texts(_ attribute: String) -> [String] {
    (values[attribute.lowercased()] ?? []).compactMap { String(validating: $0, as: UTF8.self) }
  }

  /// The ID of the entry, which no other entry gets, and which stays when it is renamed: `entryUUID` (RFC 4530), or
  /// Active Directory's `objectGUID` in the form that its tools show.
  ///
  /// Attack: someone who leaves has a user name that another one gets later, or renames their own entry.
  var identity: String? {
    if let text = texts("entryUUID").first { return UUID(uuidString: text)?.uuidString.lowercased() }
    guard let bytes = values["objectguid"]?.first, bytes.count == 16 else { return nil }
    let b = bytes
    return UUID(
      uuid: (b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15])
    ).uuidString.lowercased()
  }

  /// What the entry proves: the identity with its groups and data, and the address as far as `email_verified` and
  /// `trusted_domains` say. Everything that becomes of an entry is decided here.
  /// - Returns: nil without an identity.
  func proof(of name: TypedName, groups: [String], by settings: DirectorySettings) -> Proof? {
    guard let identity else { return nil }
    let address = texts("mail").lazy.compactMap { EmailAddress($0) }.first
    let addresses = [address].compactMap { $0.map(Identifier.init) }
    let data = settings.attributes.compactMap { name in texts(name).first.map { (name, $0) } }
    let person = Identifier(
      kind: .federated, value: "\(LDAP.name) \(identity)", display: address?.text ?? name.canonical,
      attributes: Dictionary(data) { first, _ in first }, groups: groups)
    // Attack: a directory in which people edit their own `mail` says that someone else's address is theirs.
    let isTrusted = settings.isEmailVerified && address.map { settings.trustedDomains.contains($0.domain) } ?? false
    let first = texts("givenName").first ?? texts("displayName").first ?? texts("cn").first
    return Proof(
      proved: [person] + (isTrusted ? addresses : []),
      attested: settings.isEmailVerified && !isTrusted ? addresses : [],
      claimed: settings.isEmailVerified ? [] : addresses,
      firstName: Self.readable(first), lastName: texts("givenName").isEmpty ? nil : Self.readable(texts("sn").first))
  }

  /// A name that is safe in pages and headers: at most 100 characters, without control characters, line separators and
  /// bidirectional controls.
  private static func readable(_ name: String?) -> String? {
    let scalars = (name ?? "").unicodeScalars.filter { scalar in
      ![.control, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse].contains(
        scalar.properties.generalCategory) && !scalar.properties.isBidiControl
    }
    let text = String(String.UnicodeScalarView(scalars.prefix(100)))
    return text.allSatisfy(\.isWhitespace) ? nil : text
  }
}
