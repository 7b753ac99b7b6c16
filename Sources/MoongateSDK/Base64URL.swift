/// Base64url without padding (RFC 4648 section 5), the encoding of tokens, IDs and the parts of a JSON Web Token. Each
/// value has exactly one encoding.
public enum Base64URL {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
  /// The value of each character; 64 for characters that are not in the alphabet.
  private static let values: [UInt8] = (UInt8.min...UInt8.max).map { character in
    UInt8(alphabet.firstIndex(of: character) ?? 64)
  }

  /// Whether the byte is in the alphabet. Inlined, because the data path checks each byte of a token.
  @inlinable
  package static func contains(_ byte: UInt8) -> Bool {
    byte &- 0x30 < 10 || (byte | 0x20) &- 0x61 < 26 || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
  }

  /// Encodes bytes of any length.
  public static func encode(_ bytes: some Sequence<UInt8>) -> String { text(of: Array(bytes)) }

  private static func text(of bytes: [UInt8]) -> String { BitGroups.text(of: bytes, alphabet, size: 6) }

  /// - Returns: nil if the text is not what `encode` would return: invalid characters, padding, whitespace, or set bits
  ///   after the last byte.
  public static func decode(_ text: String) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.utf8.count * 3 / 4)
    let values = values
    var pending: UInt32 = 0
    var bits = 0
    for character in text.utf8 {
      let value = values[Int(character)]
      guard value < 64 else { return nil }
      pending = pending << 6 | UInt32(value)
      bits += 6
      if bits >= 8 {
        bits -= 8
        bytes.append(UInt8(pending >> UInt32(bits) & 0xff))
      }
    }
    return self.text(of: bytes) == text ? bytes : nil
  }
}
