/// The header fields that tell whether a browser opens a page with a request. Only such a request is redirected to
/// sign-in: a script or a prefetch would read the sign-in page in place of its answer.
///
/// Browsers say so in Fetch Metadata (W3C, `Sec-Fetch-Mode`), except on plain http. Without it, `Accept` must name
/// `text/html`, and the request must not name a script library.
package struct NavigationHeaders: Sendable {
  private enum Mode {
    case unknown, navigate, other
  }

  private var mode = Mode.unknown
  private var hasFetchMetadata = false
  private var isPrefetch = false
  private var isScripted = false
  private var acceptsHTML = false

  package init() {}

  /// Whether the request opens a page.
  package var isNavigation: Bool {
    if isPrefetch { return false }
    return hasFetchMetadata ? mode == .navigate : acceptsHTML && !isScripted
  }

  /// Reads a field of the request. Other fields have no effect.
  package mutating func read(_ name: Span<UInt8>, _ value: Span<UInt8>) {
    switch name.count {
    case 6 where Self.equals(name, "accept"): acceptsHTML = acceptsHTML || AcceptHeader.containsHTML(value)
    case 10 where Self.equals(name, "hx-request"): isScripted = true
    case 16 where Self.equals(name, "x-requested-with"): isScripted = true
    case 11 where Self.equals(name, "sec-purpose"): isPrefetch = isPrefetch || Self.contains(value, "prefetch")
    case 14 where Self.equals(name, "sec-fetch-mode"):
      hasFetchMetadata = true
      mode = mode == .unknown && Self.equals(value, "navigate") ? .navigate : .other
    case 11... where Self.isAt(0, name, "sec-fetch-"): hasFetchMetadata = true
    default: break
    }
  }

  private static func equals(_ bytes: Span<UInt8>, _ lowered: StaticString) -> Bool {
    bytes.count == lowered.utf8CodeUnitCount && isAt(0, bytes, lowered)
  }

  private static func contains(_ bytes: Span<UInt8>, _ lowered: StaticString) -> Bool {
    guard bytes.count >= lowered.utf8CodeUnitCount else { return false }
    return (0...(bytes.count - lowered.utf8CodeUnitCount)).contains { isAt($0, bytes, lowered) }
  }

  /// Whether the text is at the index, in any case.
  private static func isAt(_ start: Int, _ bytes: Span<UInt8>, _ lowered: StaticString) -> Bool {
    for offset in 0..<lowered.utf8CodeUnitCount {
      let byte = bytes[start + offset]
      let isUpper = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
      if (isUpper ? byte | 0x20 : byte) != lowered.utf8Start[offset] { return false }
    }
    return true
  }
}
