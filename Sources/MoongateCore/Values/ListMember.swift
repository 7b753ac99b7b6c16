/// The members of a header field that is a list (RFC 9110 section 5.6.1).
package enum ListMember {
  /// Finds the last member of a line. Empty members are ignored.
  /// - Parameters:
  ///   - bytes: the bytes that contain the line.
  ///   - line: the value of the line, or the part of it in which to search.
  /// - Returns: the range without surrounding spaces and tabs; nil if every member is empty.
  package static func last(in bytes: Span<UInt8>, _ line: Range<Int>) -> Range<Int>? {
    var end = line.upperBound
    while end > line.lowerBound, isSeparator(bytes[end - 1]) { end -= 1 }
    guard end > line.lowerBound else { return nil }
    var start = end
    while start > line.lowerBound, bytes[start - 1] != UInt8(ascii: ",") { start -= 1 }
    while isSpace(bytes[start]) { start += 1 }
    return start..<end
  }

  private static func isSeparator(_ byte: UInt8) -> Bool { byte == UInt8(ascii: ",") || isSpace(byte) }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
}
