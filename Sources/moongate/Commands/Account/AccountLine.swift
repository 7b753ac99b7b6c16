import Foundation
import MoongateCore
import MoongateSDK

/// One line of an import file: an account as JSON.
///
///     {"identifiers":[{"phone":"+919999999999","verified":true},{"email":"asha@example.com","verified":false}],
///      "first_name":"Asha","last_name":"Rao","password":"$2b$12$…","created_at":"2024-05-01T12:00:00Z","locked":false}
///
/// A password hash is a field with the name of its provider; every provider that conforms to `SecretImporting` is
/// allowed. A factor of another system is a field of a provider that conforms to `FactorImporting`:
/// `"totp":{"secret":"BASE32"}`, `"passkeys":[{"id":"…","public_key":"…","counter":0,"name":"…"}]`. Only `identifiers` is required, with at least one item. A line with the `id` of an exported account may
/// have none, because another account may have verified its only address since. The value of `federated` is "ISSUER
/// SUBJECT", or "INSTANCE ISSUER SUBJECT" for a provider instance.
struct AccountLine {
  /// All problems of a line, as sentences.
  struct Problems: Error {
    var sentences: [String]
  }

  /// Opens the sealed records of a line.
  typealias RecordOpening = (_ line: (sealed: String?, key: String?), _ account: ImportedAccount) throws(Problems) ->
    ExportedRecords

  private static let ownFields = [
    "id", "identifiers", "first_name", "last_name", "created_at", "last_seen_at", "locked", "groups", "records",
    "records_key",
  ]

  let administration: AccountAdministration
  /// The region (ISO 3166-1 alpha-2) of phone numbers without `+`.
  let region: String
  /// Opens the provider records of a line (`AccountRecords.open`).
  let open: RecordOpening
  /// The providers whose hashes a line may contain, each under the provider's name.
  private let importers: [any SecretImporting]
  /// The providers whose factors a line may contain, by the name of the field.
  private let factors: [(field: String, importer: any FactorImporting)]
  /// Whether gateway.lua configures a provider.
  private let isConfigured: (ProviderName) -> Bool
  /// Whether hashes are allowed that are found within hours (`StoredHash.isWeak`).
  private let allowsWeak: Bool
  private let fieldNames: [String]

  init(
    administration: AccountAdministration, region: String, allowsWeak: Bool,
    isConfigured: @escaping (ProviderName) -> Bool, open: @escaping RecordOpening
  ) {
    self.administration = administration
    self.region = region
    self.open = open
    self.allowsWeak = allowsWeak
    self.isConfigured = isConfigured
    importers = Self.importers(of: administration)
    let hashes = Self.ownFields + importers.map(\.descriptor.name.rawValue)
    factors = administration.factorImporters.map { ($0.importedField, $0) }.filter { !hashes.contains($0.0) }
    fieldNames = hashes + factors.map(\.field)
  }

  /// The providers whose hashes a line may contain. A provider with the same name as a field of the line is excluded.
  static func importers(of administration: AccountAdministration) -> [any SecretImporting] {
    administration.importers.filter { !ownFields.contains($0.descriptor.name.rawValue) }
  }

  /// - Throws: every problem of the line.
  func read(_ line: Data) throws(Problems) -> ImportedAccount {
    guard let fields = (try? JSONSerialization.jsonObject(with: line)) as? [String: Any] else {
      throw Problems(sentences: ["it is not a JSON object"])
    }
    var problems: [String] = []
    for name in fields.keys.sorted() where !fieldNames.contains(name) {
      problems.append("unknown field `\(name)`; the fields are \(fieldNames.joined(separator: ", "))")
    }
    let id = text("id", fields, &problems)
    var account = ImportedAccount(identifiers: names(fields["identifiers"], mayBeNone: id != nil, &problems))
    account.id = id
    if let id = account.id, id.wholeMatch(of: /ac_[A-Za-z0-9_-]{1,64}/) == nil {
      problems.append("`id` is not an account id (ac_…)")
    }
    account.firstName = name("first_name", fields, &problems)
    account.lastName = name("last_name", fields, &problems)
    account.createdAt = time("created_at", fields, &problems)
    account.lastSeenAt = time("last_seen_at", fields, &problems)
    switch fields["locked"] {
    case nil, is NSNull: break
    case let flag as Bool: account.isLocked = flag
    default: problems.append("`locked` must be true or false")
    }
    account.groups = groups(fields["groups"], &problems)
    account.records = credentials(fields, &problems)
    let sealed = (text("records", fields, &problems), text("records_key", fields, &problems))
    guard problems.isEmpty else { throw Problems(sentences: problems) }
    let exported = try open(sealed, account)
    account.records.merge(exported.records) { _, exported in exported }
    account.dueChanges = exported.dueChanges
    return account
  }

  /// The records for the hashes and factors of the line.
  private func credentials(_ fields: [String: Any], _ problems: inout [String]) -> [ProviderName: ProviderRecord] {
    var records: [ProviderName: ProviderRecord] = [:]
    for importer in importers {
      let provider = importer.descriptor.name
      guard let hash = text(provider.rawValue, fields, &problems) else { continue }
      problem(of: hash, for: importer).map { problems.append("`\(provider)` \($0)") }
      records[provider] = ProviderRecord(
        bytes: importer.record(importing: hash), version: importer.descriptor.recordVersion)
    }
    let now = Int64(Date.now.timeIntervalSince1970 * 1000)
    for (field, importer) in factors {
      guard let value = fields[field], !(value is NSNull) else { continue }
      // Attack: a second factor whose provider is not configured is imported, and no sign-in asks for it.
      guard isConfigured(importer.descriptor.name) else {
        problems.append(ExportedRecords.unconfigured(importer.descriptor.name))
        continue
      }
      do throws(FactorImportProblem) {
        guard let json = try? JSONSerialization.data(withJSONObject: value, options: .fragmentsAllowed) else {
          throw FactorImportProblem("is not JSON")
        }
        records[importer.descriptor.name] = ProviderRecord(
          bytes: try importer.record(importing: Array(json), at: now), version: importer.descriptor.recordVersion)
      } catch {
        problems.append("`\(field)` \(error.sentence)")
      }
    }
    let most = AccountAdministration.maxRecordBytes
    for (provider, record) in records.sorted(by: { $0.key < $1.key }) where record.bytes.count > most {
      problems.append("its record of `\(provider)` is larger than \(most) bytes: leave some of it out")
    }
    return records
  }

  /// Why a hash cannot be imported; nil if it can. The sentence never contains the hash: a bad line is often a plain
  /// password in the wrong field.
  private func problem(of text: String, for importer: any SecretImporting) -> String? {
    do throws(StoredHash.Problem) {
      let hash = try StoredHash(text)
      guard importer.importedHashes.contains(hash.kind) else { return "does not accept \(hash.kind.rawValue) hashes" }
      guard allowsWeak || !hash.isWeak else {
        return "is a weak hash (MD5, or without a salt): use --weak, and its owner replaces it at the next sign-in"
      }
      return nil
    } catch {
      return "is not a valid hash: \(error.rawValue)"
    }
  }

  private func text(_ name: String, _ fields: [String: Any], _ problems: inout [String]) -> String? {
    switch fields[name] {
    case nil, is NSNull: return nil
    case let text as String: return text
    default:
      problems.append("`\(name)` must be a string")
      return nil
    }
  }

  private func groups(_ value: Any?, _ problems: inout [String]) -> Set<GroupName> {
    if value == nil || value is NSNull { return [] }
    guard let texts = value as? [String] else {
      problems.append("`groups` must be a list of strings, for example [\"ops\"]")
      return []
    }
    let names = texts.compactMap { GroupName(rawValue: $0) }
    if names.count != texts.count { problems.append("`groups`: \(GroupName.rule)") }
    return Set(names)
  }

  private func time(_ name: String, _ fields: [String: Any], _ problems: inout [String]) -> Timestamp? {
    guard let text = text(name, fields, &problems) else { return nil }
    guard let date = try? Date(text, strategy: .iso8601) else {
      problems.append("`\(name)` must be a time like 2024-05-01T12:00:00Z")
      return nil
    }
    return Timestamp(milliseconds: Int64(date.timeIntervalSince1970 * 1000))
  }

  private func name(_ field: String, _ fields: [String: Any], _ problems: inout [String]) -> String? {
    guard let text = text(field, fields, &problems) else { return nil }
    // Names appear in headers, pages and mail, so an import refuses the same names as registration.
    if !PersonName.isValid(text) {
      problems.append(
        "`\(field)` must have 1 to 100 characters, without control characters and bidirectional controls")
    }
    return text
  }

  private func names(_ value: Any?, mayBeNone: Bool, _ problems: inout [String]) -> [ImportedAccount.Name] {
    guard let list = value as? [Any], mayBeNone || !list.isEmpty else {
      problems.append(
        "`identifiers` must be a list with at least one item, for example [{\"phone\":\"+919999999999\",\"verified\":true}]"
      )
      return []
    }
    var names: [ImportedAccount.Name] = []
    for item in list {
      guard let fields = item as? [String: Any],
        let kind = IdentifierKind.allCases.first(where: { fields[$0.rawValue] != nil }),
        let text = fields[kind.rawValue] as? String, Set(fields.keys).isSubset(of: [kind.rawValue, "verified"])
      else {
        problems.append(
          "an identifier must be {\"phone\", \"email\", \"federated\" or \"name\": string, \"verified\": true or false}"
        )
        continue
      }
      let isVerified: Bool
      switch fields["verified"] {
      case nil: isVerified = false
      case let flag as Bool: isVerified = flag
      default:
        problems.append("`verified` must be true or false")
        continue
      }
      if isVerified, !kind.canBeVerified {
        problems.append("a \(kind.rawValue) is never verified: leave \"verified\" out")
        continue
      }
      let found = administration.identifiers(named: text, region: region).first { $0.kind == kind }
      let parts = text.split(separator: " ", omittingEmptySubsequences: false)
      // The identity of a provider instance begins with the instance's name.
      let isPair =
        (parts.count == 2 || parts.count == 3 && ProviderName(rawValue: String(parts[0])) != nil)
        && text.utf8.allSatisfy { (0x20...0x7e).contains($0) }
      guard let identifier = found, kind != .federated || isPair else {
        problems.append(
          "\"\(text)\" is not a valid \(kind.rawValue)\(kind == .federated ? ": write an issuer, a space and a subject" : "")"
        )
        continue
      }
      if names.contains(where: { $0.identifier == identifier }) { problems.append("\"\(text)\" appears twice") }
      names.append(ImportedAccount.Name(identifier: identifier, isVerified: isVerified))
    }
    return names
  }
}

/// One line of an export file, in the format that an import reads.
struct ExportedLine: Encodable {
  struct Name: Encodable {
    let identifier: HeldIdentifier

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Key.self)
      try container.encode(identifier.identifier.value, forKey: Key(stringValue: identifier.identifier.kind.rawValue))
      try container.encode(identifier.verifiedAt != nil, forKey: Key(stringValue: "verified"))
    }
  }

  struct Key: CodingKey {
    let stringValue: String
    let intValue: Int? = nil

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  let account: Account
  let hashes: [ProviderName: String]
  /// The sealed records and the name of the key.
  let records: (sealed: String, key: String)?

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Key.self)
    try container.encode(account.id, forKey: Key(stringValue: "id"))
    try container.encode(account.identifiers.map(Name.init), forKey: Key(stringValue: "identifiers"))
    try container.encodeIfPresent(account.firstName, forKey: Key(stringValue: "first_name"))
    try container.encodeIfPresent(account.lastName, forKey: Key(stringValue: "last_name"))
    try container.encode(account.createdAt.text, forKey: Key(stringValue: "created_at"))
    try container.encode(account.lastSeenAt.text, forKey: Key(stringValue: "last_seen_at"))
    try container.encode(account.isLocked, forKey: Key(stringValue: "locked"))
    if !account.groups.isEmpty { try container.encode(account.groups.sorted(), forKey: Key(stringValue: "groups")) }
    try container.encodeIfPresent(records?.sealed, forKey: Key(stringValue: "records"))
    try container.encodeIfPresent(records?.key, forKey: Key(stringValue: "records_key"))
    for (provider, hash) in hashes { try container.encode(hash, forKey: Key(stringValue: provider.rawValue)) }
  }
}
