/// The header field `Accept` (RFC 9110 section 12.5.1), as far as it tells browsers from programs.
package enum AcceptHeader {
  /// Whether a value of the field names `text/html` with a weight above 0 (RFC 9110 section 12.4.2). Such a client can
  /// be shown a page.
  package static func containsHTML(_ value: Span<UInt8>) -> Bool {
    var start = 0
    while start < value.count {
      var end = start
      while end < value.count, value[end] != UInt8(ascii: ","), value[end] != UInt8(ascii: ";") { end += 1 }
      let isHTML = equals(value, start..<end, "text/html")
      var isAcceptable = true
      while end < value.count, value[end] != UInt8(ascii: ",") {
        let parameter = end + 1
        end = parameter
        while end < value.count, value[end] != UInt8(ascii: ","), value[end] != UInt8(ascii: ";") { end += 1 }
        if isHTML, isZeroWeight(value, parameter..<end) { isAcceptable = false }
      }
      if isHTML, isAcceptable { return true }
      start = end + 1
    }
    return false
  }

  /// Whether the range is `q=0`, with or without decimals.
  private static func isZeroWeight(_ value: Span<UInt8>, _ range: Range<Int>) -> Bool {
    let weight = trimmed(value, range)
    guard weight.count > 2, equals(value, weight.prefix(2), "q=") else { return false }
    let digits = weight.dropFirst(2)
    return value[digits.lowerBound] == UInt8(ascii: "0")
      && digits.allSatisfy { value[$0] == UInt8(ascii: "0") || value[$0] == UInt8(ascii: ".") }
  }

  /// Whether the range is the text, with spaces and tabs around it, in any case.
  private static func equals(_ value: Span<UInt8>, _ range: Range<Int>, _ lowered: StaticString) -> Bool {
    let text = trimmed(value, range)
    guard text.count == lowered.utf8CodeUnitCount else { return false }
    for offset in 0..<text.count {
      let byte = value[text.lowerBound + offset]
      let isUpper = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
      if (isUpper ? byte | 0x20 : byte) != lowered.utf8Start[offset] { return false }
    }
    return true
  }

  private static func trimmed(_ value: Span<UInt8>, _ range: Range<Int>) -> Range<Int> {
    var start = range.lowerBound
    var end = range.upperBound
    while start < end, isSpace(value[start]) { start += 1 }
    while end > start, isSpace(value[end - 1]) { end -= 1 }
    return start..<end
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
}
