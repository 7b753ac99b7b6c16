import Crypto
import MoongateCore

/// What a table holds, in one number: SHA-256 over its rows in the order of the key. It is the same in all databases.
///
/// A row is written as its values one after the other. Each begins with a byte for its kind (0: null, 1: number, 2:
/// text, 3: bytes); a number follows as 8 bytes, text (UTF-8) and bytes as their length in 8 bytes and themselves.
/// Numbers are big-endian.
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

  /// In hexadecimal.
  var text: String {
    hash.finalize().map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
  }

  private static func append(_ number: Int64, to buffer: inout [UInt8]) {
    withUnsafeBytes(of: number.bigEndian) { buffer += $0 }
  }
}
