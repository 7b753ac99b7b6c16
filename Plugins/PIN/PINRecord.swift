import MoongateSDK

/// What is kept of a PIN: its PHC string. The core seals it.
struct PINRecord {
  let hash: String

  init(hash: String) { self.hash = hash }

  /// - Throws: where it is no text.
  init(bytes: [UInt8]) throws {
    guard let hash = String(validating: bytes, as: UTF8.self) else { throw PINFault.unreadableRecord }
    self.hash = hash
  }

  var bytes: [UInt8] { Array(hash.utf8) }
}

extension PIN: SecretImporting {
  /// All that the gateway can verify.
  public var importedHashes: Set<SecretHashKind> { [.argon2, .bcrypt] }

  public func record(importing hash: String) -> [UInt8] { PINRecord(hash: hash).bytes }

  public func hash(exporting record: [UInt8]) -> String? { try? PINRecord(bytes: record).hash }
}
