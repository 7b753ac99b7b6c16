import MoongateCore
import NIOCore

/// Trailers (RFC 9110 section 6.5), as far as they pass through.
///
/// Attack: trailers that a lenient program merges into the fields of the head (CVE-2013-5704), such as `Remote-User` of
/// a client or `Set-Cookie` of a service. Only fields that mean nothing to the gateway pass.
extension ClientConnection {
  /// Whether the client gets trailers: with HTTP/2, and if it has asked for them (RFC 9110 section 10.1.4).
  var passesTrailers: Bool {
    isStream || state.exchange.acceptsTrailers && state.exchange.framing == .chunked
  }

  func answerTrailers(_ lines: ByteBuffer) {
    guard passesTrailers, let route = state.service?.route.rule else { return }
    let changed = route.responseHeaders.map { $0.name.utf8.map { ByteClass.lower($0) } }
    let passed = Self.passed(lines) { field, bytes in
      for name in changed where Self.isNamed(field, name, bytes) { return false }
      return true
    }
    guard let passed else { return }
    if state.exchange.framing == .chunked { state.exchange.trailers = passed } else { wire?.trail(passed) }
  }

  /// The trailers of the request for an upstream of HTTP/2. With HTTP/1.1, it is not known whether the service reads
  /// them, and how.
  var trailersForService: ByteBuffer? {
    guard let lines = state.exchange.body.trailers, let route = state.service?.route else { return nil }
    return Self.passed(lines) { field, bytes in !route.replaces(bytes, field.name) }
  }

  private static func isNamed(_ field: HeadField, _ lowered: [UInt8], _ bytes: Span<UInt8>) -> Bool {
    guard field.name.count == lowered.count else { return false }
    for offset in lowered.indices where ByteClass.lower(bytes[field.name.lowerBound + offset]) != lowered[offset] {
      return false
    }
    return true
  }

  /// - Parameter lines: lines that were read by `FieldLine`.
  private static func passed(
    _ lines: ByteBuffer, _ passes: (HeadField, Span<UInt8>) -> Bool
  ) -> ByteBuffer? {
    let bytes = lines.readableBytesUInt8Span
    var out = ByteBuffer()
    let isRead = FieldLine.forEach(bytes) { field in
      guard field.kind == .other, passes(field, bytes) else { return }
      out.writeBytes(bytes.extracting(field.name.lowerBound..<field.value.upperBound).bytes)
      out.writeStaticString("\r\n")
    }
    return isRead && out.readableBytes > 0 ? out : nil
  }
}
