import MoongateCore

/// The position of one field in the bytes of a head. No bytes are copied.
package struct HeadField: Sendable, Equatable {
  /// The offset of the name in the head. A head has at most 65,535 bytes.
  let start: UInt16
  let nameLength: UInt16
  /// The offset of the value, without surrounding whitespace.
  let valueStart: UInt16
  let valueLength: UInt16
  package let kind: FieldKind

  package var name: Range<Int> { Int(start)..<Int(start) + Int(nameLength) }
  package var value: Range<Int> { Int(valueStart)..<Int(valueStart) + Int(valueLength) }
}

extension HeadField {
  /// Whether the field is `Content-Type: application/grpc`, with any suffix or parameter.
  func isCallType(_ bytes: Span<UInt8>) -> Bool {
    kind == .other && nameLength == 12 && valueLength >= 16 && ByteClass.equal(bytes, name, "content-type")
      && ByteClass.equal(bytes, value.prefix(16), "application/grpc")
  }
}

/// The fields that the gateway processes.
package enum FieldKind: UInt8, Sendable {
  case other
  case host, contentLength, transferEncoding, connection, upgrade, expect
  case cookie, authorization, origin, accept, setCookie
  /// What browsers send with the request for a service worker's script, and what widens the worker's scope (Service
  /// Workers, sections "Update" and "Service-Worker-Allowed").
  case serviceWorker, serviceWorkerAllowed
  /// W3C Trace Context.
  case traceparent, tracestate
  /// What the client accepts of trailers, and which trailers follow (RFC 9110 sections 10.1.4 and 6.6.2).
  case te, trailer
  /// Valid for one connection only (RFC 9110 section 7.6.1).
  case hopByHop
  /// Exactly these names. They are read only from a trusted proxy, and never forwarded as received.
  case forwardedFor, forwardedProto, forwardedHost
  /// Names that identify the client, or that a service may read as such. Only the gateway may set them.
  case reserved

  /// The kind of the field with the name at `name`, which must be a token.
  static func of(_ bytes: Span<UInt8>, _ name: Range<Int>) -> FieldKind {
    switch ByteClass.folded(bytes[name.lowerBound]) {
    case UInt8(ascii: "h"): ByteClass.equal(bytes, name, "host") ? .host : reservedKind(bytes, name)
    case UInt8(ascii: "c"):
      switch name.count {
      case 6: ByteClass.equal(bytes, name, "cookie") ? .cookie : .other
      case 10: ByteClass.equal(bytes, name, "connection") ? .connection : .other
      case 14: framingKind(bytes, name, "content-length", .contentLength)
      default: .other
      }
    case UInt8(ascii: "a"):
      switch name.count {
      case 6: ByteClass.equal(bytes, name, "accept") ? .accept : .other
      case 13: ByteClass.equal(bytes, name, "authorization") ? .authorization : .other
      default: .other
      }
    case UInt8(ascii: "t"):
      switch name.count {
      case 2: ByteClass.equal(bytes, name, "te") ? .te : .other
      case 7: ByteClass.equal(bytes, name, "trailer") ? .trailer : .other
      case 10: ByteClass.equal(bytes, name, "tracestate") ? .tracestate : .other
      case 11: ByteClass.equal(bytes, name, "traceparent") ? .traceparent : .other
      case 17: framingKind(bytes, name, "transfer-encoding", .transferEncoding)
      default: reservedKind(bytes, name)
      }
    case UInt8(ascii: "u"): ByteClass.equal(bytes, name, "upgrade") ? .upgrade : .other
    case UInt8(ascii: "e"): ByteClass.equal(bytes, name, "expect") ? .expect : .other
    case UInt8(ascii: "o"): ByteClass.equal(bytes, name, "origin") ? .origin : .other
    case UInt8(ascii: "k"): ByteClass.equal(bytes, name, "keep-alive") ? .hopByHop : .other
    case UInt8(ascii: "s"):
      switch name.count {
      case 10: ByteClass.equal(bytes, name, "set-cookie") ? .setCookie : .other
      case 14: ByteClass.equal(bytes, name, "service-worker") ? .serviceWorker : .other
      case 22: ByteClass.equal(bytes, name, "service-worker-allowed") ? .serviceWorkerAllowed : .other
      default: .other
      }
    case UInt8(ascii: "p"): proxyKind(bytes, name)
    case UInt8(ascii: "f"), UInt8(ascii: "m"), UInt8(ascii: "r"): reservedKind(bytes, name)
    case UInt8(ascii: "x"): extensionKind(bytes, name)
    default: .other
    }
  }

  /// Attack: `Transfer_Encoding`. It is not a framing field here, but it is for services that treat `_` like `-`.
  private static func framingKind(_ bytes: Span<UInt8>, _ name: Range<Int>, _ text: StaticString, _ kind: FieldKind)
    -> FieldKind
  {
    if ByteClass.equal(bytes, name, text) { return kind }
    return ByteClass.foldedEqual(bytes, name, text) ? .reserved : .other
  }

  private static func proxyKind(_ bytes: Span<UInt8>, _ name: Range<Int>) -> FieldKind {
    let isHop =
      ByteClass.equal(bytes, name, "proxy-connection") || ByteClass.equal(bytes, name, "proxy-authorization")
      || ByteClass.equal(bytes, name, "proxy-authenticate")
    return isHop ? .hopByHop : reservedKind(bytes, name)
  }

  private static func extensionKind(_ bytes: Span<UInt8>, _ name: Range<Int>) -> FieldKind {
    switch name.count {
    case 15 where ByteClass.equal(bytes, name, "x-forwarded-for"): .forwardedFor
    case 17 where ByteClass.equal(bytes, name, "x-forwarded-proto"): .forwardedProto
    case 16 where ByteClass.equal(bytes, name, "x-forwarded-host"): .forwardedHost
    default: reservedKind(bytes, name)
    }
  }

  /// Looks the name up in `ReservedHeaders`. Called only for possible first letters, which a test compares with it.
  private static func reservedKind(_ bytes: Span<UInt8>, _ name: Range<Int>) -> FieldKind {
    for prefix in ReservedHeaders.prefixes where ByteClass.foldedPrefix(bytes, name, prefix) { return .reserved }
    for known in ReservedHeaders.names where ByteClass.foldedEqual(bytes, name, known) { return .reserved }
    return .other
  }

  /// Whether a request field of this kind is removed or rewritten before the request is sent upstream.
  var isDroppedFromRequests: Bool {
    switch self {
    case .other, .authorization, .origin, .accept, .setCookie, .serviceWorker, .serviceWorkerAllowed, .expect,
      .traceparent, .tracestate:
      false
    case .host, .contentLength, .transferEncoding, .connection, .upgrade, .cookie, .te, .trailer, .hopByHop,
      .forwardedFor,
      .forwardedProto, .forwardedHost,
      .reserved:
      true
    }
  }
}

/// Reads the fields of heads and trailers, one line at a time.
enum FieldLine {
  /// The line is incomplete.
  case incomplete
  /// The empty line after the fields, with the offset of the byte after it.
  case end(Int)
  /// A field, with the offset of the next line.
  case field(HeadField, Int)

  /// Reads the line at the offset.
  /// - Parameter bytes: the bytes of the head, at most 65,535.
  /// - Throws: a fault unless the line is `field-line CRLF` (RFC 9112 section 5). Attack: request smuggling. Programs
  ///   disagree about line folding, whitespace before the colon, a bare CR or LF, NUL and other control bytes.
  @inline(__always)
  static func read(_ bytes: Span<UInt8>, at start: Int) throws(MessageFault) -> FieldLine {
    let count = bytes.count
    var index = start
    while index < count, ByteClass.isToken(bytes[index]) { index += 1 }
    guard index < count else { return .incomplete }
    if index == start {
      guard bytes[index] == 0x0d else { throw .malformed("a header line does not start with a name") }
      guard index + 1 < count else { return .incomplete }
      guard bytes[index + 1] == 0x0a else { throw .malformed("a line ends without CRLF") }
      return .end(index + 2)
    }
    guard bytes[index] == UInt8(ascii: ":") else {
      throw .malformed("a header's name is not a token followed by a colon")
    }
    let nameEnd = index
    index += 1
    while index < count, ByteClass.isSpace(bytes[index]) { index += 1 }
    let valueStart = index
    index = endOfValue(bytes, from: index)
    guard index < count else { return .incomplete }
    guard bytes[index] == 0x0d else { throw .malformed("a control byte in a header's value") }
    guard index + 1 < count else { return .incomplete }
    guard bytes[index + 1] == 0x0a else { throw .malformed("a line ends without CRLF") }
    var valueEnd = index
    while valueEnd > valueStart, ByteClass.isSpace(bytes[valueEnd - 1]) { valueEnd -= 1 }
    let field = HeadField(
      start: UInt16(start), nameLength: UInt16(nameEnd - start), valueStart: UInt16(valueStart),
      valueLength: UInt16(valueEnd - valueStart),
      kind: FieldKind.of(bytes, start..<nameEnd))
    return .field(field, index + 2)
  }

  /// Calls the closure for each field, from the offset to the end or to an empty line.
  /// - Returns: false if the bytes are not complete lines, or are more than the offsets of fields can tell.
  static func forEach(_ bytes: Span<UInt8>, from start: Int = 0, _ body: (HeadField) -> Void) -> Bool {
    guard bytes.count <= Int(UInt16.max) else { return false }
    var index = start
    while index < bytes.count {
      guard let line = try? read(bytes, at: index) else { return false }
      switch line {
      case .incomplete: return false
      case .end: return true
      case .field(let field, let next):
        body(field)
        index = next
      }
    }
    return true
  }

  /// The offset of the first byte that a value cannot contain, eight bytes at a time.
  @inline(__always)
  private static func endOfValue(_ bytes: Span<UInt8>, from start: Int) -> Int {
    var index = start
    let raw = bytes.bytes
    let ones: UInt64 = 0x0101_0101_0101_0101
    let highs: UInt64 = 0x8080_8080_8080_8080
    while true {
      while index + 8 <= raw.byteCount {
        let word = unsafe raw.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self)
        // Bytes under 0x20 or equal to 0x7f. The tests may also mark a valid byte above an invalid one.
        let low = (word &- ones &* 0x20) & ~word & highs
        let del = word ^ (ones &* 0x7f)
        let isDel = (del &- ones) & ~del & highs
        if low | isDel != 0 { break }
        index += 8
      }
      // Check the rest of this word byte by byte, because a tab and some marked bytes are valid.
      let stop = min(index + 8, bytes.count)
      while index < stop, ByteClass.isValue(bytes[index]) { index += 1 }
      if index < stop || index == bytes.count { return index }
    }
  }
}
