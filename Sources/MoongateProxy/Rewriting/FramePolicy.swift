import NIOCore

/// Which sites may show a page in a frame, as a Content-Security-Policy (Content Security Policy Level 3, section
/// 6.4.2).
enum FramePolicy {
  private static let name: StaticString = "frame-ancestors"

  /// The directive for the responses of a route: these sites, and pages of the same origin, because services show parts
  /// of themselves in frames.
  static func directive(for sites: [String]) -> String { "frame-ancestors 'self' \(sites.joined(separator: " "))" }

  /// Writes the policies of a service without their own `frame-ancestors`, which would apply in addition.
  /// - Parameter value: policies that are separated by commas, as a serialized policy list.
  /// - Returns: false if nothing is left; nothing was written then.
  static func write(_ bytes: Span<UInt8>, _ value: Range<Int>, to out: inout ByteBuffer) -> Bool {
    var isEmpty = true
    forEachPart(bytes, value, separator: UInt8(ascii: ",")) { policy in
      var isFirst = true
      forEachPart(bytes, policy, separator: UInt8(ascii: ";")) { directive in
        guard !isAboutFrames(bytes, directive) else { return }
        if isFirst {
          if !isEmpty { out.writeStaticString(", ") }
        } else {
          out.writeStaticString("; ")
        }
        out.copy(bytes, directive)
        (isFirst, isEmpty) = (false, false)
      }
    }
    return !isEmpty
  }

  /// Whether the directive is `frame-ancestors`, in any case.
  private static func isAboutFrames(_ bytes: Span<UInt8>, _ directive: Range<Int>) -> Bool {
    let end = directive.first { ByteClass.isSpace(bytes[$0]) } ?? directive.upperBound
    return ByteClass.equal(bytes, directive.lowerBound..<end, name)
  }

  /// The parts that are not empty, without surrounding white space.
  private static func forEachPart(
    _ bytes: Span<UInt8>, _ value: Range<Int>, separator: UInt8, _ body: (Range<Int>) -> Void
  ) {
    var start = value.lowerBound
    while start <= value.upperBound {
      var end = start
      while end < value.upperBound, bytes[end] != separator { end += 1 }
      let part = ByteClass.trimmed(bytes, start..<end)
      if !part.isEmpty { body(part) }
      start = end + 1
    }
  }
}
