/// The header field `Accept` (RFC 9110 section 12.5.1), as far as it tells browsers from programs.
package enum AcceptHeader {
  /// Whether a value of the field contains `text/html`. Such a client is treated as a browser.
  package static func containsHTML(_ value: Span<UInt8>) -> Bool {
    var start = 0
    while start < value.count {
      var end = start
      while end < value.count, value[end] != UInt8(ascii: ","), value[end] != UInt8(ascii: ";") { end += 1 }
      if isHTML(value, start..<end) { return true }
      while end < value.count, value[end] != UInt8(ascii: ",") { end += 1 }
      start = end + 1
    }
    return false
  }

  /// Whether the range is `text/html`, with spaces and tabs around it, in any case.
  private static func isHTML(_ value: Span<UInt8>, _ range: Range<Int>) -> Bool {
    var start = range.lowerBound
    var end = range.upperBound
    while start < end, isSpace(value[start]) { start += 1 }
    while end > start, isSpace(value[end - 1]) { end -= 1 }
    let html: StaticString = "text/html"
    guard end - start == html.utf8CodeUnitCount else { return false }
    for offset in 0..<html.utf8CodeUnitCount {
      let byte = value[start + offset]
      let isUpper = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
      if (isUpper ? byte | 0x20 : byte) != html.utf8Start[offset] { return false }
    }
    return true
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
}
