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
