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
