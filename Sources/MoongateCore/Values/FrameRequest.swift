/// What a browser says about a request with the cookies of a frame (W3C Fetch Metadata). A page cannot set these
/// headers.
///
/// The cookies of a frame (`GatewayCookies.isFramed`) need `SameSite=None`, so browsers also add them to what other
/// pages in the same tab send: the embedding site itself, and everything that it embeds.
///
/// Attack: such a page posts a form to the service, opens a WebSocket to it, or includes an answer as a script.
/// Therefore the cookies count only for requests of the service's own pages, and for what is opened as a page:
/// `frame-ancestors` decides whether that is shown.
package struct FrameRequest: Sendable {
  private enum Value {
    case missing
    /// `Sec-Fetch-Site: same-origin`, `Sec-Fetch-Mode: navigate` or `Sec-Fetch-Dest: document`.
    case expected
    case other
  }

  private var site = Value.missing
  private var mode = Value.missing
  private var destination = Value.missing

  package init() {}

  /// Whether the browser opens the answer as a page in a tab or window, and not in a frame.
  package var isTopLevel: Bool { destination == .expected }

  /// Reads a field of the request. Other fields have no effect.
  package mutating func read(_ name: Span<UInt8>, _ value: Span<UInt8>) {
    guard name.count == 14, Self.equals(name.extracting(0..<10), "sec-fetch-") else { return }
    let rest = name.extracting(10..<14)
    if Self.equals(rest, "site") {
      site = Self.next(site, Self.equals(value, "same-origin"))
    } else if Self.equals(rest, "mode") {
      mode = Self.next(mode, Self.equals(value, "navigate"))
    } else if Self.equals(rest, "dest") {
      destination = Self.next(destination, Self.equals(value, "document"))
    }
  }

  /// Whether the cookies of a frame count for the request.
  /// - Parameters:
  ///   - isReading: whether its method only reads (RFC 9110 section 9.2.1), and it asks for no upgrade.
  ///   - hasOwnOrigin: whether it has exactly one Origin header, with the gateway's origin or its own.
  package func admitsCookies(isReading: Bool, hasOwnOrigin: Bool) -> Bool {
    switch site {
    case .expected: isReading || hasOwnOrigin
    // Some browsers send no Fetch Metadata with the handshake of a WebSocket.
    case .missing: hasOwnOrigin
    case .other: isReading && mode == .expected
    }
  }

  /// - Returns: `other` for a field that occurs twice.
  private static func next(_ known: Value, _ isExpected: Bool) -> Value {
    known == .missing && isExpected ? .expected : .other
  }

  private static func equals(_ bytes: Span<UInt8>, _ lowered: StaticString) -> Bool {
    guard bytes.count == lowered.utf8CodeUnitCount else { return false }
    for index in 0..<bytes.count {
      let byte = bytes[index]
      let isUpper = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
      if (isUpper ? byte | 0x20 : byte) != lowered.utf8Start[index] { return false }
    }
    return true
  }
}
