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

  /// What the function `identity` of the policy reads: a text for an attribute with one value, a list for several.
  /// `dn` is the name of the entry, `groups` a list.
  func claims(_ attributes: [String], groups: [String]) -> [String: JSONClaim] {
    var claims: [String: JSONClaim] = [:]
    for attribute in attributes {
      let texts = texts(attribute).map { JSONClaim.text($0) }
      claims[attribute] = texts.count > 1 ? .list(texts) : texts.first
    }
    claims["dn"] = .text(name)
    claims["groups"] = .list(groups.map { JSONClaim.text($0) })
    return claims
  }

  /// A name by which a filter finds the entry; nil if there is none.
  func name(comparedBy comparisons: [DirectoryFilter.Comparison]) -> String? {
    for comparison in comparisons {
      let parts = comparison.value.split(separator: "{name}", omittingEmptySubsequences: false)
      guard parts.count == 2 else { continue }
      for text in texts(comparison.attribute) {
        // Directories do not compare case: `@Corp.Example.com` is found by `@corp.example.com`.
        let start =
          parts[0].isEmpty
          ? text.startIndex : text.range(of: parts[0], options: [.anchored, .caseInsensitive])?.upperBound
        let end =
          parts[1].isEmpty
          ? text.endIndex : text.range(of: parts[1], options: [.anchored, .backwards, .caseInsensitive])?.lowerBound
        if let start, let end, start < end { return String(text[start..<end]) }
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
    if let days = number("shadowExpire"), days > 0, days <= now / 86_400_000 { return "shadowExpire: expired" }
    return nil
  }
}

extension MappedIdentity {
  /// What an entry says about its user, without the function `identity`.
  init(ofEntry claims: [String: JSONClaim], by settings: StepSettings) {
    let texts = { (name: String) -> [String] in
      claims[name].flatMap { claim in claim.text.map { [$0] } ?? claim.texts } ?? []
    }
    let given = texts("givenName").first
    let data = settings.list("attributes").compactMap { name in texts(name).first.map { (name, $0) } }
    self.init(
      email: texts("mail").lazy.compactMap { EmailAddress($0)?.text }.first,
      isEmailVerified: settings.text("email_verified") == "always",
      firstName: given ?? texts("displayName").first ?? texts("cn").first,
      lastName: given == nil ? nil : texts("sn").first, groups: texts("groups"),
      data: Dictionary(data) { first, _ in first })
  }
}
