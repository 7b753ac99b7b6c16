import Foundation
import MoongateSDK

extension Passkey: FactorImporting {
  private struct Imported: Decodable {
    let id: String
    let publicKey: String
    let counter: UInt32?
    let name: String?

    enum CodingKeys: String, CodingKey, CaseIterable {
      case id, counter, name
      case publicKey = "public_key"
    }
  }

  public var importedField: String { "passkeys" }

  /// `[{"id", "public_key", "counter", "name"}]`: the id and the COSE_Key in base64url, the signature counter, and a name.
  /// The last two may be missing.
  public func record(importing json: [UInt8], at now: Int64) throws(FactorImportProblem) -> [UInt8] {
    guard let list = try? JSONSerialization.jsonObject(with: Data(json)) as? [[String: Any]],
      let imported = try? JSONDecoder().decode([Imported].self, from: Data(json)),
      (1...PasskeyRecord.most).contains(imported.count)
    else {
      throw FactorImportProblem(
        "must be a list of 1 to \(PasskeyRecord.most) objects with `id`, `public_key`, `counter` and `name`")
    }
    let known = Imported.CodingKeys.allCases.map(\.rawValue)
    if let other = list.flatMap(\.keys).sorted().first(where: { !known.contains($0) }) {
      throw FactorImportProblem("has the unknown field `\(other)`; the fields are \(known.joined(separator: ", "))")
    }
    var record = PasskeyRecord([])
    for (index, passkey) in imported.enumerated() {
      let credential = try Self.credential(passkey, number: index + 1, at: now)
      guard record[credential.id] == nil else {
        throw FactorImportProblem("has the id of passkey \(index + 1) twice")
      }
      record.credentials.append(credential)
    }
    guard let bytes = try? record.bytes else { throw FactorImportProblem("cannot be stored") }
    return bytes
  }

  private static func credential(_ passkey: Imported, number: Int, at now: Int64) throws(FactorImportProblem)
    -> Credential
  {
    // Other systems write base64url with padding too.
    let (id, key) = (decode(passkey.id), decode(passkey.publicKey))
    guard let id, (1...1023).contains(id.count) else {
      throw FactorImportProblem("has an `id` in passkey \(number) that is not base64url of 1 to 1,023 bytes")
    }
    guard let key, PublicKey(cose: key) != nil else {
      throw FactorImportProblem(
        "has a `public_key` in passkey \(number) that is not a COSE_Key of ES256, EdDSA or RS256 in base64url")
    }
    let name = (passkey.name ?? "").split(whereSeparator: \.isWhitespace).joined(separator: " ")
    guard name.utf8.count <= 100, name.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control }) else {
      throw FactorImportProblem(
        "has a `name` in passkey \(number) that is longer than 100 bytes or has control characters")
    }
    let aaguid = AAGUID.text([UInt8](repeating: 0, count: 16))
    return Credential(
      id: Base64URL.encode(id), key: Base64URL.encode(key), signCount: passkey.counter ?? 0,
      name: name.isEmpty ? AAGUID.name(aaguid) : name, createdAt: now, usedAt: now, transports: [],
      isBackupEligible: false, isBackedUp: false, isUserVerified: false, aaguid: aaguid, foreign: ForeignCredential())
  }

  private static func decode(_ text: String) -> [UInt8]? {
    Base64URL.decode(String(text.reversed().drop { $0 == "=" }.reversed()))
  }
}
