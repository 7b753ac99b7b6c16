/// The character classes of the HTTP grammar, as inlined bit tests without lookup tables.
enum ByteClass {
  // Two bit sets of the tchar (RFC 9110 section 5.6.2) in 0...63 and 64...127. A test compares them with the list.
  @inline(__always)
  static func isToken(_ byte: UInt8) -> Bool {
    if byte < 64 { return 0x03ff_6cfa_0000_0000 >> UInt64(byte) & 1 == 1 }
    if byte < 128 { return 0x57ff_ffff_c7ff_fffe >> UInt64(byte - 64) & 1 == 1 }
    return false
  }

  /// Whether a field value may contain the byte (RFC 9110 section 5.5): VCHAR, obs-text, SP and HTAB.
  @inline(__always)
  static func isValue(_ byte: UInt8) -> Bool { byte >= 0x20 && byte != 0x7f || byte == 0x09 }

  @inline(__always)
  static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

  @inline(__always)
  static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }

  /// The value of a hexadecimal digit; 255 for other bytes.
  @inline(__always)
  static func hexValue(_ byte: UInt8) -> UInt8 {
    if byte &- 0x30 < 10 { return byte &- 0x30 }
    let letter = (byte | 0x20) &- 0x61
    return letter < 6 ? letter &+ 10 : 255
  }

  /// Converts an ASCII letter to lower case. Other bytes are unchanged.
  @inline(__always)
  static func lower(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }

  /// The byte of a field name as lenient services read it: lower case, with `-` for all but letters and digits.
  @inline(__always)
  static func folded(_ byte: UInt8) -> UInt8 {
    let low = lower(byte)
    return low &- 0x61 < 26 || isDigit(low) ? low : 0x2d
  }

  /// A field name as lenient services read it.
  static func folded(_ name: String) -> [UInt8] { name.utf8.map { folded($0) } }

  /// Whether the range equals the text, ignoring the case of ASCII letters. `lowered` must be in lower case.
  static func equal(_ bytes: Span<UInt8>, _ range: Range<Int>, _ lowered: StaticString) -> Bool {
    guard range.count == lowered.utf8CodeUnitCount else { return false }
    let start = lowered.utf8Start
    for offset in 0..<range.count where lower(bytes[range.lowerBound + offset]) != start[offset] { return false }
    return true
  }

  /// Whether the folded range equals the text (see `folded(_:)`).
  static func foldedEqual(_ bytes: Span<UInt8>, _ range: Range<Int>, _ folded: StaticString) -> Bool {
    guard range.count == folded.utf8CodeUnitCount else { return false }
    return foldedPrefix(bytes, range, folded)
  }

  /// Whether the folded range begins with the text.
  static func foldedPrefix(_ bytes: Span<UInt8>, _ range: Range<Int>, _ prefix: StaticString) -> Bool {
    guard range.count >= prefix.utf8CodeUnitCount else { return false }
    let start = prefix.utf8Start
    for offset in 0..<prefix.utf8CodeUnitCount where folded(bytes[range.lowerBound + offset]) != start[offset] {
      return false
    }
    return true
  }

  /// The range without leading and trailing spaces and tabs.
  @inline(__always)
  static func trimmed(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Range<Int> {
    var start = range.lowerBound
    var end = range.upperBound
    while start < end, isSpace(bytes[start]) { start += 1 }
    while end > start, isSpace(bytes[end - 1]) { end -= 1 }
    return start..<end
  }
}

extension ByteClass {
  /// Whether the range equals the text, including case.
  static func equalCase(_ bytes: Span<UInt8>, _ range: Range<Int>, _ text: StaticString) -> Bool {
    guard range.count == text.utf8CodeUnitCount else { return false }
    for offset in 0..<range.count where bytes[range.lowerBound + offset] != text.utf8Start[offset] { return false }
    return true
  }
}
