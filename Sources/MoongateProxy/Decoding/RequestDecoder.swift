import NIOCore

/// Parses the heads of HTTP/1 requests. Any deviation from the grammar of RFC 9112 is refused.
///
/// The decoder does not store bytes. For an incomplete head, it stores only the position up to which it has parsed. The
/// result does not depend on how the bytes are split.
package struct RequestDecoder: Sendable {
  /// The maximum length of request line and fields together, in bytes.
  package static let limit = 32 * 1024
  /// The maximum number of fields of a request or a response. Attack: thousands of tiny fields within the limit of the
  /// bytes. HTTP/2 searches its tables of header compression for each.
  static let maxFields = 1000

  private var head = RequestHead()
  private var options = ConnectionOptions()
  private var hosts = 0
  private var lengths = 0
  private var codings = 0
  private var hasUpgrade = false
  /// The offset of the first unread line.
  private var position = 0
  private var hasSkippedEmptyLine = false

  package init() {}

  /// Whether part of a head has been read.
  package var isInsideHead: Bool { position > 0 }

  /// Reads a head and removes it from the front of the input.
  /// - Parameters:
  ///   - input: all received bytes that are not yet consumed. Must start with the same bytes as in the last call.
  ///   - spare: an array whose memory is reused for the fields.
  /// - Returns: nil if more bytes are needed. Then at most an empty line before the head is consumed.
  package mutating func next(_ input: inout ByteBuffer, spare: inout [HeadField]) throws(MessageFault) -> RequestHead? {
    if position == 0, !hasSkippedEmptyLine, try Self.beginsWithEmptyLine(input.readableBytesUInt8Span) {
      input.moveReaderIndex(forwardBy: 2)
      hasSkippedEmptyLine = true
    }
    guard let end = try read(input, spare: &spare) else { return nil }
    var done = head
    self = RequestDecoder()
    guard let bytes = input.readSlice(length: end) else { throw .malformed("the head is incomplete") }
    done.bytes = bytes
    return done
  }

  /// The part of a head that was read before a fault or a timeout: the request line, and the fields of complete lines.
  /// - Parameter input: the bytes of the last call.
  /// - Returns: nil if the request line was not read.
  func partialHead(_ input: ByteBuffer) -> RequestHead? {
    guard isInsideHead else { return nil }
    var partial = head
    partial.bytes = input
    return partial
  }

  private mutating func read(_ input: ByteBuffer, spare: inout [HeadField]) throws(MessageFault) -> Int? {
    let all = input.readableBytesUInt8Span
    let isTooLong = all.count > Self.limit
    let bytes = isTooLong ? all.extracting(0..<Self.limit) : all
    if position == 0 {
      guard try readRequestLine(bytes) else {
        if isTooLong { throw .headTooLarge }
        return nil
      }
      swap(&head.fields, &spare)
      head.fields.removeAll(keepingCapacity: true)
    }
    while true {
      switch try FieldLine.read(bytes, at: position) {
      case .incomplete:
        if isTooLong { throw .headTooLarge }
        return nil
      case .end(let end):
        try finish(bytes)
        return end
      case .field(let field, let next):
        position = next
        guard head.fields.count < Self.maxFields else { throw .headTooLarge }
        head.fields.append(field)
        if field.kind != .other { try process(field, bytes) }
      }
    }
  }

  /// Whether an empty line precedes the request line. Old clients send one after a body (RFC 9112 section 2.2).
  /// A single CRLF is skipped. A second one, or a bare CR or LF, is a malformed request line.
  ///
  /// Attack: an endless sequence of empty lines keeps a connection busy.
  private static func beginsWithEmptyLine(_ bytes: Span<UInt8>) throws(MessageFault) -> Bool {
    guard bytes.count > 1, bytes[0] == 0x0d else { return false }
    guard bytes[1] == 0x0a else { throw .malformed("a line ends without CRLF") }
    return true
  }

  /// Reads `method SP request-target SP HTTP-version CRLF`, with single spaces and no other whitespace.
  private mutating func readRequestLine(_ bytes: Span<UInt8>) throws(MessageFault) -> Bool {
    let count = bytes.count
    // A single CR may be the start of an empty line.
    if count == 1, bytes[0] == 0x0d, !hasSkippedEmptyLine { return false }
    var index = 0
    while index < count, ByteClass.isToken(bytes[index]) { index += 1 }
    guard index < count else { return false }
    guard index > 0, bytes[index] == 0x20 else {
      throw .malformed("the request line does not start with a method and a space")
    }
    head.methodEnd = index
    index += 1
    let start = index
    while index < count, bytes[index] &- 0x21 < 0x5e { index += 1 }
    guard index < count else { return false }
    guard index > start, bytes[index] == 0x20 else {
      throw .malformed("the request's target contains an invalid byte")
    }
    head.target = start..<index
    index += 1
    // HTTP-version = "HTTP" "/" DIGIT "." DIGIT, upper case.
    let version = index
    guard try Self.expect("HTTP/", bytes, at: version), count >= version + 10 else {
      return try Self.mayStillBeVersion(bytes, version)
    }
    guard ByteClass.isDigit(bytes[version + 5]), bytes[version + 6] == UInt8(ascii: "."),
      ByteClass.isDigit(bytes[version + 7]),
      bytes[version + 8] == 0x0d, bytes[version + 9] == 0x0a
    else { throw .malformed("the request line does not end with a version and CRLF") }
    guard bytes[version + 5] == UInt8(ascii: "1"), bytes[version + 7] <= UInt8(ascii: "1") else {
      throw .versionNotSupported
    }
    head.minorVersion = bytes[version + 7] - UInt8(ascii: "0")
    position = version + 10
    try readTarget(bytes)
    return true
  }

  /// Whether the bytes at the offset are the text; false if they are incomplete. Throws if they differ.
  private static func expect(_ text: StaticString, _ bytes: Span<UInt8>, at start: Int) throws(MessageFault) -> Bool {
    for offset in 0..<text.utf8CodeUnitCount {
      guard start + offset < bytes.count else { return false }
      guard bytes[start + offset] == text.utf8Start[offset] else {
        throw .malformed("the request line does not end with a version and CRLF")
      }
    }
    return true
  }

  /// Checks an incomplete version. Throws as soon as it cannot become valid, so that a bad client gets its 400 at once.
  private static func mayStillBeVersion(_ bytes: Span<UInt8>, _ version: Int) throws(MessageFault) -> Bool {
    for index in (version + 5)..<max(version + 5, bytes.count) {
      let isRight =
        switch index - version {
        case 5, 7: ByteClass.isDigit(bytes[index])
        case 6: bytes[index] == UInt8(ascii: ".")
        default: bytes[index] == 0x0d
        }
      guard isRight else { throw .malformed("the request line does not end with a version and CRLF") }
    }
    return false
  }

  private mutating func readTarget(_ bytes: Span<UInt8>) throws(MessageFault) {
    let target = head.target
    switch head.methodEnd {
    case 3: if ByteClass.equalCase(bytes, head.methodName, "GET") { head.method = .get }
    case 4: if ByteClass.equalCase(bytes, head.methodName, "HEAD") { head.method = .head }
    case 5: if ByteClass.equalCase(bytes, head.methodName, "TRACE") { throw .methodNotAllowed }
    case 7:
      if ByteClass.equalCase(bytes, head.methodName, "OPTIONS") { head.method = .options }
      if ByteClass.equalCase(bytes, head.methodName, "CONNECT") { throw .methodNotAllowed }
    default: break
    }
    var start = target.lowerBound
    if head.method == .options, target.count == 1, bytes[start] == UInt8(ascii: "*") {
      head.isAboutServer = true
      head.path = target
      return
    }
    if bytes[start] != UInt8(ascii: "/") {
      // The absolute form (RFC 9112 section 3.2.2). A bare authority is not supported.
      if ByteClass.equal(bytes, start..<min(start + 7, target.upperBound), "http://") {
        start += 7
      } else if ByteClass.equal(bytes, start..<min(start + 8, target.upperBound), "https://") {
        start += 8
      } else {
        throw .malformed("the request's target is neither a path nor an http or https URL")
      }
      var end = start
      while end < target.upperBound, bytes[end] != UInt8(ascii: "/"), bytes[end] != UInt8(ascii: "?") { end += 1 }
      head.authority = start..<end
      start = end
    }
    var end = start
    while end < target.upperBound, bytes[end] != UInt8(ascii: "?") { end += 1 }
    head.path = start..<end
    guard end < target.upperBound else {
      // RFC 9112 section 3.2.4: the absolute form of `*` has no path.
      head.isAboutServer = head.method == .options && head.path.isEmpty
      return
    }
    head.query = end + 1..<target.upperBound
    for index in end..<target.upperBound where bytes[index] == UInt8(ascii: "#") {
      throw .malformed("a fragment in the request's target")
    }
  }

  private mutating func process(_ field: HeadField, _ bytes: Span<UInt8>) throws(MessageFault) {
    switch field.kind {
    case .host:
      hosts += 1
      head.host = field.value
    case .contentLength:
      lengths += 1
      head.framing = .length(try Framing.length(bytes, field.value))
    case .transferEncoding:
      codings += 1
      guard ByteClass.equal(bytes, field.value, "chunked") else {
        throw .malformed("a transfer coding other than a single chunked")
      }
    case .connection: options.read(bytes, field.value)
    case .upgrade: hasUpgrade = true
    case .serviceWorker: head.isForServiceWorker = true
    case .te: if ConnectionOptions.contains(bytes, field.value, "trailers") { head.acceptsTrailers = true }
    case .expect: head.expectsContinue = head.minorVersion == 1 && ByteClass.equal(bytes, field.value, "100-continue")
    default: break
    }
  }

  private mutating func finish(_ bytes: Span<UInt8>) throws(MessageFault) {
    // RFC 9112 section 3.2: HTTP/1.0 had no Host.
    guard hosts == 1 || hosts == 0 && head.minorVersion == 0 else {
      throw .malformed(hosts == 0 ? "no Host" : "more than one Host")
    }
    guard lengths <= 1 else { throw .malformed("more than one Content-Length") }
    guard codings <= 1 else { throw .malformed("more than one Transfer-Encoding") }
    guard !options.isTooLong else { throw .malformed("Connection has too many options") }
    if codings == 1 {
      // Attack: request smuggling by Transfer-Encoding with Content-Length or in HTTP/1.0 (RFC 9112 section 6.1).
      guard lengths == 0 else { throw .malformed("Transfer-Encoding with Content-Length") }
      guard head.minorVersion == 1 else { throw .malformed("Transfer-Encoding in HTTP/1.0") }
      head.framing = .chunked
    }
    head.keepsAlive = head.minorVersion == 1 ? !options.close : options.keepAlive && !options.close
    head.wantsUpgrade = options.upgrade && hasUpgrade && head.minorVersion == 1
    head.connectionNamesFields = options.others
  }
}

/// Parses framing fields of requests and responses.
enum Framing {
  /// Parses `Content-Length = 1*DIGIT` (RFC 9110 section 8.6). Signs, lists and overflow are refused.
  static func length(_ bytes: Span<UInt8>, _ value: Range<Int>) throws(MessageFault) -> Int {
    guard !value.isEmpty else { throw .malformed("an empty Content-Length") }
    var length = 0
    for index in value {
      guard ByteClass.isDigit(bytes[index]) else { throw .malformed("a Content-Length that is not a number") }
      let (tens, overflow) = length.multipliedReportingOverflow(by: 10)
      let (sum, carry) = tens.addingReportingOverflow(Int(bytes[index] - UInt8(ascii: "0")))
      guard !overflow, !carry else { throw .malformed("a Content-Length that is too large") }
      length = sum
    }
    return length
  }
}
