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
    guard let person = person(named: name.canonical, groups: groups, by: settings) else { return nil }
    let addresses = [address].compactMap { $0.map(Identifier.init) }
    // Attack: a directory in which people edit their own `mail` says that someone else's address is theirs.
    let isTrusted = settings.isEmailVerified && address.map { settings.trustedDomains.contains($0.domain) } ?? false
    let first = texts("givenName").first ?? texts("displayName").first ?? texts("cn").first
    return Proof(
      proved: [person] + (isTrusted ? addresses : []),
      attested: settings.isEmailVerified && !isTrusted ? addresses : [],
      claimed: settings.isEmailVerified ? [] : addresses,
      firstName: Self.readable(first), lastName: texts("givenName").isEmpty ? nil : Self.readable(texts("sn").first),
      recheck: settings.rechecks ? [] : nil)
  }

  private var address: EmailAddress? { texts("mail").lazy.compactMap { EmailAddress($0) }.first }

  /// The identity with its groups and data; nil without an ID.
  /// - Parameter name: its display without an address.
  func person(named name: String, groups: [String], by settings: DirectorySettings) -> Identifier? {
    guard let identity else { return nil }
    let data = settings.attributes.compactMap { name in texts(name).first.map { (name, $0) } }
    return Identifier(
      kind: .federated, value: "\(LDAP.name) \(identity)", display: address?.text ?? name,
      attributes: Dictionary(data) { first, _ in first }, groups: groups)
  }

  /// A name by which a filter finds the entry; nil if there is none.
  func name(comparedBy comparisons: [DirectoryFilter.Comparison]) -> String? {
    for comparison in comparisons {
      let parts = comparison.value.split(separator: "{name}", omittingEmptySubsequences: false)
      guard parts.count == 2 else { continue }
      for text in texts(comparison.attribute)
      where text.count > parts[0].count + parts[1].count && text.hasPrefix(parts[0]) && text.hasSuffix(parts[1]) {
        return String(text.dropFirst(parts[0].count).dropLast(parts[1].count))
      }
    }
    return nil
  }

  /// The attributes that `end` reads.
  static let ends = [
    "userAccountControl", "accountExpires", "pwdAccountLockedTime", "nsAccountLock", "shadowExpire",
  ]

  /// Why the entry can no longer sign in, as far as its attributes say; nil if it can. A lock after wrong passwords is
  /// no end, because anyone could sign users out by it.
  func end(at now: Int64) -> String? {
    let number = { (name: String) in texts(name).first.flatMap { Int64($0) } }
    // Active Directory: ADS_UF_ACCOUNTDISABLE, and intervals of 100 ns since 1601, of which two mean never.
    if let flags = number("userAccountControl"), flags & 2 != 0 { return "userAccountControl: disabled" }
    if let expires = number("accountExpires"), expires > 0, expires != .max,
      expires / 10_000 - 11_644_473_600_000 <= now
    {
      return "accountExpires: expired"
    }
    // A lock by an administrator (draft-behera-ldap-password-policy section 5.3.3).
    if texts("pwdAccountLockedTime").contains("000001010000Z") { return "pwdAccountLockedTime: locked" }
    // 389 Directory Server and FreeIPA.
    if texts("nsAccountLock").contains(where: { $0.lowercased() == "true" }) { return "nsAccountLock: disabled" }
    // Days since 1970 (RFC 2307).
    if let days = number("shadowExpire"), days >= 0, days <= now / 86_400_000 { return "shadowExpire: expired" }
    return nil
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
