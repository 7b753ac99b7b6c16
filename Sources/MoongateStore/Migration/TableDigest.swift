import Crypto
import MoongateCore
import MoongateSDK

/// The digest of a table: SHA-256 over its rows in the order of the key. It is the same for all kinds of database.
///
/// A row is encoded as its values in sequence. Each begins with a byte for its type (0: null, 1: number, 2: text, 3:
/// bytes). A number follows as 8 bytes; text (UTF-8) and bytes follow as an 8-byte length and the content. Numbers are
/// big-endian.
struct TableDigest {
  private(set) var count = 0
  private var hash = SHA256()

  mutating func add(_ row: [SQLValue]) {
    count += 1
    var buffer: [UInt8] = []
    for value in row {
      switch value {
      case .null: buffer.append(0)
      case .integer(let number):
        buffer.append(1)
        Self.append(number, to: &buffer)
      case .text(let text):
        buffer.append(2)
        Self.append(Int64(text.utf8.count), to: &buffer)
        buffer += text.utf8
      case .bytes(let bytes):
        buffer.append(3)
        Self.append(Int64(bytes.count), to: &buffer)
        buffer += bytes
      }
    }
    hash.update(data: buffer)
  }

  /// The hexadecimal form.
  var text: String { Hex.encode(hash.finalize()) }

  private static func append(_ number: Int64, to buffer: inout [UInt8]) {
    withUnsafeBytes(of: number.bigEndian) { buffer += $0 }
  }
}
