/// Base32 (RFC 4648 section 6) without padding, as used for authenticator keys and recovery codes.
enum Base32 {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

  /// Encodes the bytes. Unused bits of the last character are zero.
  static func encode(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    var buffer: UInt32 = 0
    var bits = 0
    for byte in bytes {
      buffer = buffer << 8 | UInt32(byte)
      bits += 8
      while bits >= 5 {
        bits -= 5
        text.append(alphabet[Int(buffer >> UInt32(bits) & 31)])
      }
    }
    if bits > 0 { text.append(alphabet[Int(buffer << UInt32(5 - bits) & 31)]) }
    return String(decoding: text, as: UTF8.self)
  }

  /// Whether the byte is in the alphabet, in upper case.
  static func contains(_ byte: UInt8) -> Bool { alphabet.contains(byte) }
}

extension String {
  /// The text in groups for easier typing: `ABCD EFGH`.
  func grouped(by size: Int, with separator: String = " ") -> String {
    let letters = Array(self)
    return stride(from: 0, to: letters.count, by: size).map { String(letters[$0..<min($0 + size, letters.count)]) }
      .joined(separator: separator)
  }
}
