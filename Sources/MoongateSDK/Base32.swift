/// Base32 (RFC 4648 section 6), the encoding of keys of authenticator apps.
public enum Base32 {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

  /// Whether the byte is in the alphabet, in upper case.
  public static func contains(_ byte: UInt8) -> Bool { alphabet.contains(byte) }

  /// Encodes bytes of any length, without padding. Unused bits of the last character are zero.
  public static func encode(_ bytes: some Sequence<UInt8>) -> String {
    BitGroups.text(of: Array(bytes), alphabet, size: 5)
  }

  /// Decodes a key as users type it and apps write it: in upper or lower case, with optional spaces, hyphens and
  /// padding. Unused bits of the last character are ignored.
  /// - Returns: nil if the text has other characters.
  public static func decode(_ text: String) -> [UInt8]? {
    var bytes: [UInt8] = []
    var pending: UInt32 = 0
    var bits = 0
    for character in text.utf8 {
      switch character {
      case UInt8(ascii: " "), UInt8(ascii: "-"), UInt8(ascii: "="): continue
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): pending = pending << 5 | UInt32(character - UInt8(ascii: "A"))
      case UInt8(ascii: "a")...UInt8(ascii: "z"): pending = pending << 5 | UInt32(character - UInt8(ascii: "a"))
      case UInt8(ascii: "2")...UInt8(ascii: "7"): pending = pending << 5 | UInt32(character - UInt8(ascii: "2") + 26)
      default: return nil
      }
      bits += 5
      if bits >= 8 {
        bits -= 8
        bytes.append(UInt8(pending >> UInt32(bits) & 0xff))
      }
    }
    return bytes
  }
}
