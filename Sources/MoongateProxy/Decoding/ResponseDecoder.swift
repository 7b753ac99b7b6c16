import NIOCore

/// The head of an upstream response: its received bytes, and the positions of its parts in them.
package struct ResponseHead: Sendable {
  /// The status line, the fields and the empty line.
  package internal(set) var bytes = ByteBuffer()
  package internal(set) var fields: [HeadField] = []
  /// The status code, 100...999.
  package internal(set) var status = 0
  /// The position of the status code and reason phrase.
  package internal(set) var statusText = 0..<0
  package internal(set) var framing = BodyFraming.none
  /// The value of Content-Length, also for responses without a body, for example to HEAD.
  package internal(set) var contentLength: Int?
  /// The index of the `Date` field; nil if it is missing.
  package internal(set) var date: Int?
  /// Whether the upstream connection can be used for another request.
  package internal(set) var keepsAlive = true
  /// Whether `Connection` names other fields, which are not forwarded then.
  package internal(set) var connectionNamesFields = false

  package init() {}

  /// Whether another head follows for the same request (RFC 9110 section 15.2).
  package var isInterim: Bool { status < 200 }

  /// The names of the fields that `Connection` names, which are not forwarded (RFC 9110 section 7.6.1).
  func fieldsOfConnection(_ bytes: Span<UInt8>) -> [Range<Int>] {
    connectionNamesFields ? ConnectionOptions.names(in: fields, of: bytes) : []
  }
}

/// Parses the heads of HTTP/1 responses as strictly as requests. Attack: a response with ambiguous framing makes one
/// client receive the response of another (response splitting).
package struct ResponseDecoder: Sendable {
  /// The maximum length of status line and fields together, in bytes.
  package static let limit = 64 * 1024 - 1

  private var head = ResponseHead()
  private var options = ConnectionOptions()
  private var minorVersion: UInt8 = 1
  private var codings = 0
  private var position = 0

  package init() {}

  /// Whether part of a head has been read.
  package var isInsideHead: Bool { position > 0 }

  /// Reads a head and removes it from the front of the input.
  /// - Parameters:
  ///   - input: all received bytes that are not yet consumed. Must start with the same bytes as in the last call.
  ///   - spare: an array whose memory is reused for the fields.
  ///   - toHead: whether the request was HEAD. Its response has no body, regardless of its fields.
  /// - Returns: nil if more bytes are needed.
  package mutating func next(_ input: inout ByteBuffer, spare: inout [HeadField], toHead: Bool) throws(MessageFault)
    -> ResponseHead?
  {
    guard let end = try read(input, spare: &spare, toHead: toHead) else { return nil }
    var done = head
    self = ResponseDecoder()
    guard let bytes = input.readSlice(length: end) else { throw .malformed("the head is incomplete") }
    done.bytes = bytes
    return done
  }

  private mutating func read(_ input: ByteBuffer, spare: inout [HeadField], toHead: Bool) throws(MessageFault) -> Int? {
    let all = input.readableBytesUInt8Span
    let isTooLong = all.count > Self.limit
    let bytes = isTooLong ? all.extracting(0..<Self.limit) : all
    if position == 0 {
      guard try readStatusLine(bytes) else {
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
        try finish(toHead: toHead)
        return end
      case .field(let field, let next):
        position = next
        guard head.fields.count < RequestDecoder.maxFields else { throw .malformed("the head has too many fields") }
        head.fields.append(field)
        try process(field, bytes)
      }
    }
  }

  /// `HTTP-version SP status-code SP [ reason-phrase ] CRLF`. Some servers omit the second space if there is no phrase.
  /// A recipient may accept that (RFC 9112 section 4), and the line has no other meaning.
  private mutating func readStatusLine(_ bytes: Span<UInt8>) throws(MessageFault) -> Bool {
    let text: StaticString = "HTTP/1."
    for index in 0..<min(bytes.count, 7) where bytes[index] != text.utf8Start[index] {
      throw .malformed("no HTTP/1 status line")
    }
    guard bytes.count >= 13 else { return false }
    guard bytes[7] == UInt8(ascii: "0") || bytes[7] == UInt8(ascii: "1"), bytes[8] == 0x20 else {
      throw .malformed("no HTTP/1 status line")
    }
    minorVersion = bytes[7] - UInt8(ascii: "0")
    guard ByteClass.isDigit(bytes[9]), ByteClass.isDigit(bytes[10]), ByteClass.isDigit(bytes[11]),
      bytes[9] != UInt8(ascii: "0"), bytes[12] == 0x20 || bytes[12] == 0x0d
    else { throw .malformed("no three-digit status followed by a space") }
    head.status = Int(bytes[9] - 0x30) * 100 + Int(bytes[10] - 0x30) * 10 + Int(bytes[11] - 0x30)
    var index = bytes[12] == 0x0d ? 12 : 13
    while index < bytes.count, ByteClass.isValue(bytes[index]) { index += 1 }
    guard index < bytes.count else { return false }
    guard bytes[index] == 0x0d else { throw .malformed("a control byte in the status line") }
    guard index + 1 < bytes.count else { return false }
    guard bytes[index + 1] == 0x0a else { throw .malformed("a line ends without CRLF") }
    head.statusText = 9..<index
    position = index + 2
    return true
  }

  private mutating func process(_ field: HeadField, _ bytes: Span<UInt8>) throws(MessageFault) {
    switch field.kind {
    case .contentLength:
      guard head.contentLength == nil else { throw .malformed("more than one Content-Length") }
      head.contentLength = try Framing.length(bytes, field.value)
    case .transferEncoding:
      codings += 1
      guard codings == 1, ByteClass.equal(bytes, field.value, "chunked") else {
        throw .malformed("a transfer coding other than a single chunked")
      }
    case .connection: options.read(bytes, field.value)
    case .other:
      if field.nameLength == 4, ByteClass.equal(bytes, field.name, "date") { head.date = head.fields.count - 1 }
    default: break
    }
  }

  private mutating func finish(toHead: Bool) throws(MessageFault) {
    if codings == 1 {
      guard head.contentLength == nil else { throw .malformed("Transfer-Encoding with Content-Length") }
      guard minorVersion == 1 else { throw .malformed("Transfer-Encoding in HTTP/1.0") }
    }
    head.keepsAlive = minorVersion == 1 ? !options.close : options.keepAlive && !options.close
    head.connectionNamesFields = options.others
    guard !options.isTooLong else { throw .malformed("Connection has too many options") }
    // RFC 9112 section 6.3: these have no body, regardless of their fields.
    if toHead || head.status < 200 || head.status == 204 || head.status == 304 {
      head.framing = .none
      // Attack: an upstream that sends a body anyway. It would be read as the response to the next request of the
      // connection.
      if codings == 1 || head.contentLength ?? 0 > 0 { head.keepsAlive = false }
    } else if codings == 1 {
      head.framing = .chunked
    } else if let length = head.contentLength {
      head.framing = .length(length)
    } else {
      head.framing = .untilClose
    }
  }
}
