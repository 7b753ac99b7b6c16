import MoongateCore

/// Where one field lies in the bytes of a head: nothing is copied.
package struct HeadField: Sendable, Equatable {
  /// Of the name, counted from the head's first byte; a head is never longer than 65,535 bytes.
  let start: UInt16
  let nameLength: UInt16
  /// Of the value without the space around it.
  let valueStart: UInt16
  let valueLength: UInt16
  package let kind: FieldKind

  package var name: Range<Int> { Int(start)..<Int(start) + Int(nameLength) }
  package var value: Range<Int> { Int(valueStart)..<Int(valueStart) + Int(valueLength) }
}

/// The fields that the gateway acts upon.
package enum FieldKind: UInt8, Sendable {
  case other
  case host, contentLength, transferEncoding, connection, upgrade, expect
  case cookie, authorization, origin, accept, setCookie
  /// W3C Trace Context.
  case traceparent, tracestate
  /// Meant for one connection only (RFC 9110 section 7.6.1).
  case hopByHop
  /// Exactly so named; from a trusted proxy they are read, and from no one are they passed on.
  case forwardedFor, forwardedProto, forwardedHost
  /// Says who the client is, or looks so to some service: only the gateway may say that.
  case reserved

  /// The kind of the field whose name lies in `name`. Names were checked to be tokens.
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
      case 2: ByteClass.equal(bytes, name, "te") ? .hopByHop : .other
      case 7: ByteClass.equal(bytes, name, "trailer") ? .hopByHop : .other
      case 10: ByteClass.equal(bytes, name, "tracestate") ? .tracestate : .other
      case 11: ByteClass.equal(bytes, name, "traceparent") ? .traceparent : .other
      case 17: framingKind(bytes, name, "transfer-encoding", .transferEncoding)
      default: reservedKind(bytes, name)
      }
    case UInt8(ascii: "u"): ByteClass.equal(bytes, name, "upgrade") ? .upgrade : .other
    case UInt8(ascii: "e"): ByteClass.equal(bytes, name, "expect") ? .expect : .other
    case UInt8(ascii: "o"): ByteClass.equal(bytes, name, "origin") ? .origin : .other
    case UInt8(ascii: "k"): ByteClass.equal(bytes, name, "keep-alive") ? .hopByHop : .other
    case UInt8(ascii: "s"): ByteClass.equal(bytes, name, "set-cookie") ? .setCookie : .other
    case UInt8(ascii: "p"): proxyKind(bytes, name)
    case UInt8(ascii: "f"), UInt8(ascii: "m"), UInt8(ascii: "r"): reservedKind(bytes, name)
    case UInt8(ascii: "x"): extensionKind(bytes, name)
    default: .other
    }
  }

  /// Attack: `Transfer_Encoding`, which is no framing here, and is to services that read names like variables.
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

  /// By the one list. Asked only for names that begin like one of them: a test holds the two against each other.
  private static func reservedKind(_ bytes: Span<UInt8>, _ name: Range<Int>) -> FieldKind {
    for prefix in ReservedHeaders.prefixes where ByteClass.foldedPrefix(bytes, name, prefix) { return .reserved }
    for known in ReservedHeaders.names where ByteClass.foldedEqual(bytes, name, known) { return .reserved }
    return .other
  }

  /// Whether a request's field of this kind never goes upstream as the client sent it: removed, or written anew.
  var isDroppedFromRequests: Bool {
    switch self {
    case .other, .authorization, .origin, .accept, .setCookie, .expect, .traceparent, .tracestate: false
    case .host, .contentLength, .transferEncoding, .connection, .upgrade, .cookie, .hopByHop, .forwardedFor,
      .forwardedProto, .forwardedHost,
      .reserved:
      true
    }
  }
}

/// Reads the fields of heads and trailers, one line at a time.
enum FieldLine {
  /// The line is not all there yet.
  case incomplete
  /// The empty line that ends the fields; what follows begins here.
  case end(Int)
  /// A field, and where the next line begins.
  case field(HeadField, Int)

  /// - Parameter bytes: of the head, from its first byte; at most 65,535.
  /// - Throws: for whatever is not `field-line CRLF` (RFC 9112 section 5): a fold, space before the colon, a bare CR
  ///   or LF, NUL and other control bytes. Each of them is read in different ways by different programs, which is what
  ///   request smuggling lives on.
  @inline(__always)
  static func read(_ bytes: Span<UInt8>, at start: Int) throws(MessageFault) -> FieldLine {
    let count = bytes.count
    var index = start
    while index < count, ByteClass.isToken(bytes[index]) { index += 1 }
    guard index < count else { return .incomplete }
    if index == start {
      guard bytes[index] == 0x0d else { throw .malformed("a header line does not begin with a name") }
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

  /// The first byte that no value may hold, eight bytes at a time.
  @inline(__always)
  private static func endOfValue(_ bytes: Span<UInt8>, from start: Int) -> Int {
    var index = start
    let raw = bytes.bytes
    let ones: UInt64 = 0x0101_0101_0101_0101
    let highs: UInt64 = 0x8080_8080_8080_8080
    while true {
      while index + 8 <= raw.byteCount {
        let word = unsafe raw.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self)
        // A byte under 0x20, or equal to 0x7f: the tests may also mark a good byte above a bad one, never miss one.
        let low = (word &- ones &* 0x20) & ~word & highs
        let del = word ^ (ones &* 0x7f)
        let isDel = (del &- ones) & ~del & highs
        if low | isDel != 0 { break }
        index += 8
      }
      // Byte by byte to the end of this word (or of the bytes): a tab is good, anything else that was marked is not.
      let stop = min(index + 8, bytes.count)
      while index < stop, ByteClass.isValue(bytes[index]) { index += 1 }
      if index < stop || index == bytes.count { return index }
    }
  }
}
