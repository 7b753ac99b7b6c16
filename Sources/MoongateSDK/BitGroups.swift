/// Encodes bytes in groups of bits, as Base32 and Base64url do (RFC 4648), without padding.
enum BitGroups {
  /// The characters of all groups of `size` bits, from the first bit on. Unused bits of the last group are zero.
  /// - Parameters:
  ///   - alphabet: the characters of the values from 0 to 2^`size` - 1.
  ///   - size: from 1 to 8.
  static func text(of bytes: [UInt8], _ alphabet: [UInt8], size: Int) -> String {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count * 8 + size - 1) / size)
    let mask = UInt32(1) << UInt32(size) - 1
    var pending: UInt32 = 0
    var bits = 0
    for byte in bytes {
      pending = pending << 8 | UInt32(byte)
      bits += 8
      while bits >= size {
        bits -= size
        text.append(alphabet[Int(pending >> UInt32(bits) & mask)])
      }
    }
    if bits > 0 { text.append(alphabet[Int(pending << UInt32(size - bits) & mask)]) }
    return String(decoding: text, as: UTF8.self)
  }
}
