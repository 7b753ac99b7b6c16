import MoongateSDK

/// The record of a PIN: its PHC string. The core encrypts it.
struct PINRecord {
  let hash: String

  init(hash: String) { self.hash = hash }

  /// - Throws: an error if the bytes are not UTF-8.
  init(bytes: [UInt8]) throws {
    guard let hash = String(validating: bytes, as: UTF8.self) else { throw PINFault.unreadableRecord }
    self.hash = hash
  }

  var bytes: [UInt8] { Array(hash.utf8) }
}

extension PIN: SecretImporting {
  /// All hashes that the gateway can verify.
  public var importedHashes: Set<SecretHashKind> { Set(SecretHashKind.allCases) }

  public func record(importing hash: String) -> [UInt8] { PINRecord(hash: hash).bytes }

  public func hash(exporting record: [UInt8]) -> String? { try? PINRecord(bytes: record).hash }
}
