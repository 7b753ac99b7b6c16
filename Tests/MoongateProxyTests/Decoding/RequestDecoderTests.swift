import MoongateCore
import NIOCore
import Testing

@testable import MoongateProxy

@Suite struct RequestDecoderTests {
  @Test func readsAllPartsOfAValidRequest() {
    let read = readOurs([
      Array(
        "POST /a/b?c=d HTTP/1.1\r\nHost: example.com\r\nX-Empty:\r\nX-Space:  \t a b \t\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.0\r\nhost:x\r\n\r\n"
          .utf8)
    ])
    #expect(read.fault == nil)
    #expect(
      read.messages == [
        DecodedMessage(
          method: "POST", target: "/a/b?c=d", minorVersion: 1,
          fields: ["Host: example.com", "X-Empty: ", "X-Space: a b", "Content-Length: 3"],
          body: Array("abc".utf8), isComplete: true),
        DecodedMessage(method: "GET", target: "/", minorVersion: 0, fields: ["host: x"], body: [], isComplete: true),
      ])
  }

  /// RFC 9112 section 2.2: one empty line before each request, regardless of how the bytes are split.
  @Test(arguments: [1, 2, 3, 1000]) func oneEmptyLineBeforeARequestIsIgnored(piece: Int) {
    let text =
      "\r\nGET /a HTTP/1.1\r\nHost: x\r\n\r\n\r\nPOST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab\r\nGET /c HTTP/1.1\r\nHost: x\r\n\r\n"
    let bytes = Array(text.utf8)
    let read = readOurs(
      stride(from: 0, to: bytes.count, by: piece).map { Array(bytes[$0..<min($0 + piece, bytes.count)]) })
    #expect(
      read.fault == nil && read.messages.map(\.target) == ["/a", "/b", "/c"] && read.messages.allSatisfy(\.isComplete))
    #expect(read.messages.map(\.body) == [[], Array("ab".utf8), []])
  }

  /// Each of these could make two programs interpret two different requests.
  @Test(
    arguments: [
      // Request line.
      "GET  / HTTP/1.1\r\nHost: x\r\n\r\n", "GET /  HTTP/1.1\r\nHost: x\r\n\r\n", " GET / HTTP/1.1\r\nHost: x\r\n\r\n",
      "\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", "\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
      "\rGET / HTTP/1.1\r\nHost: x\r\n\r\n",
      "\r\n\rGET / HTTP/1.1\r\nHost: x\r\n\r\n", "\r\n GET / HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET\t/ HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET / HTTP/1.1 \r\nHost: x\r\n\r\n",
      "GET / http/1.1\r\nHost: x\r\n\r\n", "GET / HTTP/1.10\r\nHost: x\r\n\r\n", "GET / HTTP/11\r\nHost: x\r\n\r\n",
      "GET /\r\nHost: x\r\n\r\n",
      "GET / RTSP/1.0\r\nHost: x\r\n\r\n", "G(T / HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET /\u{7f} HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET /é HTTP/1.1\r\nHost: x\r\n\r\n", "GET * HTTP/1.1\r\nHost: x\r\n\r\n",
      "OPTIONS ** HTTP/1.1\r\nHost: x\r\n\r\n", "OPTIONS *?a HTTP/1.1\r\nHost: x\r\n\r\n",
      "OPTIONS */ HTTP/1.1\r\nHost: x\r\n\r\n", "options * HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET x:80 HTTP/1.1\r\nHost: x\r\n\r\n", "GET ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET /?a#b HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET / HTTP/1.1\nHost: x\r\n\r\n", "GET / HTTP/1.1\rHost: x\r\n\r\n",
      // Fields.
      "GET / HTTP/1.1\r\nHost : x\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
      "GET / HTTP/1.1\r\n Host: x\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\rA: b\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: x\r\n\n",
      "GET / HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\nA: b\u{7f}c\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: x\r\nA\0: b\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\n: b\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: x\r\nA: 12345678\u{1}\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: x\r\nÄ: b\r\n\r\n",
      // Host.
      "GET / HTTP/1.1\r\n\r\n", "OPTIONS * HTTP/1.1\r\n\r\n", "GET / HTTP/1.0\r\nHost: x\r\nHost: x\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: x\r\nhost: x\r\n\r\n",
      // Framing.
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1, 1\r\n\r\na",
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\na",
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0x1\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \"chunked\"\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n",
      "POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\u{b}\r\n\r\n",
    ]) func refusesInvalidGrammar(_ text: String)
  {
    let read = readOurs([Array(text.utf8)])
    guard case .malformed = read.fault else {
      Issue.record("accepted: \(read)")
      return
    }
  }

  @Test(
    arguments: [
      "5\n", "5 \r\nabcde", "5\r\nabcdef", "5\r\nabcde\n", "\r\n", "g\r\n", "-1\r\n", "+1\r\n", "0x5\r\n", "5;\r\n",
      "5;a b\r\n", "5;a=\r\n",
      "5;a=\"b\r\n",
      "5;a=\"\u{1}\"\r\n", "ffffffffffffffff\r\n", "5;=a\r\n", "5;a\n\r\n", "0\r\n a: b\r\n\r\n", "0\r\na b: c\r\n\r\n",
      "0\r\n\n", "5 ;a \r\n",
    ]) func refusesMalformedChunks(_ chunks: String)
  {
    let read = readOurs([Array("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\(chunks)".utf8)])
    guard case .malformed = read.fault else {
      Issue.record("accepted: \(read)")
      return
    }
  }

  @Test func readsChunksWithExtensionsAndTrailers() {
    let read = readOurs([
      Array(
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n5;a;b=c ; d = \"e \\\" f\"\r\nabcde\r\n0A\r\n0123456789\r\n000;z\r\nRemote-User: mallory\r\n\r\n"
          .utf8)
    ])
    #expect(read.fault == nil)
    #expect(read.messages.first?.body == Array("abcde0123456789".utf8))
    #expect(read.messages.first?.isComplete == true)
  }

  /// RFC 9112 section 3.2: only HTTP/1.1 must have Host.
  @Test(arguments: ["GET /a HTTP/1.0\r\n\r\n", "GET http://x/a HTTP/1.0\r\n\r\n"])
  func oldRequestsNeedNoHost(_ text: String) throws {
    let read = readOurs([Array(text.utf8)])
    #expect(read.fault == nil && read.messages.map(\.isComplete) == [true])
  }

  /// RFC 9110 section 9.3.7, and RFC 9112 section 3.2.4 for the absolute form.
  @Test(arguments: [
    ("OPTIONS *", true), ("OPTIONS http://x", true), ("OPTIONS /", false), ("OPTIONS http://x/", false),
    ("OPTIONS http://x?a", false), ("GET http://x", false), ("OPTIONS /*", false),
  ])
  func optionsMayBeAboutTheServer(_ start: String, _ isAboutServer: Bool) throws {
    var decoder = RequestDecoder()
    var input = ByteBuffer(string: "\(start) HTTP/1.1\r\nHost: x\r\n\r\n")
    var spare: [HeadField] = []
    #expect(try decoder.next(&input, spare: &spare)?.isAboutServer == isAboutServer)
  }

  /// Attack (request smuggling): white space behind a chunk's size, which services may send and clients may not.
  @Test(
    arguments: [
      ("5 \r\nhello\r\n0\r\n\r\n", "hello"), ("5 \t \r\nhello\r\n0  \r\n\r\n", "hello"),
      ("5 ;a\r\nhello\r\n0\r\n\r\n", "hello"), ("05\r\nhello\r\n0\r\n\r\n", "hello"),
      ("5 a\r\nhello\r\n0\r\n\r\n", nil), (" 5\r\nhello\r\n0\r\n\r\n", nil), ("5 \n\r\nhello\r\n0\r\n\r\n", nil),
      ("5" + String(repeating: " ", count: 1100) + "\r\nhello\r\n0\r\n\r\n", nil),
    ] as [(String, String?)])
  func onlyResponsesMayHaveSpacesBehindAChunksSize(_ chunks: String, _ body: String?) {
    for step in [1, 3, .max] {
      #expect(readBody(chunks, step: step, isResponse: true) == body)
      let isPlain = chunks.hasPrefix("05") || chunks.hasPrefix("5 ;")
      #expect(readBody(chunks, step: step, isResponse: false) == (isPlain ? body : nil), "a request")
    }
  }

  @Test(arguments: ["two\r\nok\r\n", "9z\r\nok\r\n", "\r\n", "-1\r\n", ";a\r\n", "0x5\r\n"])
  func aMalformedChunkIsNamed(_ chunks: String) {
    for isResponse in [true, false] {
      var decoder = BodyDecoder(.chunked, isResponse: isResponse)
      var input = ByteBuffer(string: chunks)
      #expect(throws: MessageFault.malformed("a chunk's size is not a hexadecimal number")) {
        _ = try decoder.next(&input)
      }
    }
  }

  /// The body in pieces of `step` bytes; nil if it is refused or incomplete.
  private func readBody(_ text: String, step: Int, isResponse: Bool) -> String? {
    var decoder = BodyDecoder(.chunked, isResponse: isResponse)
    var input = ByteBuffer()
    var body = ""
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let piece = rest.prefix(step)
      rest = rest.dropFirst(piece.count)
      input.writeBytes(piece)
      reading: while true {
        switch try? decoder.next(&input) {
        case .data(let data): body += String(buffer: data)
        case .end: return body
        case .incomplete: break reading
        case nil: return nil
        }
      }
    }
    return nil
  }

  @Test(arguments: ["HTTP/2.0", "HTTP/1.2", "HTTP/0.9", "HTTP/3.0", "HTTP/9.9"]) func knowsVersionsOnePointZeroAndOne(
    _ version: String
  ) {
    #expect(readOurs([Array("GET / \(version)\r\nHost: x\r\n\r\n".utf8)]).fault == .versionNotSupported)
  }

  @Test(arguments: ["CONNECT example.com:443", "TRACE /"]) func connectAndTraceAreRefused(_ start: String) {
    #expect(readOurs([Array("\(start) HTTP/1.1\r\nHost: x\r\n\r\n".utf8)]).fault == .methodNotAllowed)
  }

  @Test func headsEndAt32KiB() {
    let start = "GET / HTTP/1.1\r\nHost: x\r\nA: "
    let fits = start + String(repeating: "a", count: 32 * 1024 - start.utf8.count - 4) + "\r\n\r\n"
    #expect(readOurs([Array(fits.utf8)]).messages.count == 1)
    #expect(
      readOurs([Array((start + String(repeating: "a", count: 32 * 1024 - start.utf8.count - 3) + "\r\n\r\n").utf8)])
        .fault == .headTooLarge)
    #expect(readOurs([Array(("GET /" + String(repeating: "a", count: 40_000)).utf8)]).fault == .headTooLarge)
    #expect(readOurs([Array((start + String(repeating: "a\r\nA: ", count: 10_000)).utf8)]).fault == .headTooLarge)
  }

  /// Attack: thousands of tiny fields.
  @Test func headsHaveAtMostAThousandFields() {
    let head = { (count: Int) in
      "GET / HTTP/1.1\r\nHost: x\r\n" + String(repeating: "A: b\r\n", count: count) + "\r\n"
    }
    #expect(readOurs([Array(head(999).utf8)]).messages.count == 1)
    #expect(readOurs([Array(head(1000).utf8)]).fault == .headTooLarge)
  }

  /// Attack: many connection options and many fields would each be compared with each other.
  @Test func connectionHasABoundedNumberOfOptions() {
    let head = { (options: Int, fields: Int) in
      "GET / HTTP/1.1\r\nHost: x\r\nConnection: \(Array(repeating: "a", count: options).joined(separator: ","))\r\n"
        + String(repeating: "b:\r\n", count: fields) + "\r\n"
    }
    #expect(readOurs([Array(head(64, 900).utf8)]).messages.count == 1)
    for bad in [
      head(65, 0), head(1, 0).replacing("Connection: a", with: "Connection: " + String(repeating: ",", count: 64)),
    ] {
      #expect(readOurs([Array(bad.utf8)]).fault == .malformed("Connection has too many options"))
    }
    let many = "GET / HTTP/1.1\r\nHost: x\r\n" + String(repeating: "Connection: a\r\n", count: 65) + "\r\n"
    #expect(readOurs([Array(many.utf8)]).fault == .malformed("Connection has too many options"))
  }

  /// Input that cannot become a request is refused at once, for example bare line feeds.
  @Test(arguments: ["GET / HTTP/1.1\n", "GET / HTTP/x", "\u{16}\u{3}\u{1}", "GET / HTTP/1.1\r\nA: b\n", "GET / HTTQ"])
  func refusesAtOnce(
    _ text: String
  ) {
    #expect(readOurs([Array(text.utf8)]).fault != nil)
  }

  @Test func tokenBytesAreThoseOfTheRFC() {
    let tokens = Set("!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
    for byte in UInt8.min ... .max { #expect(ByteClass.isToken(byte) == tokens.contains(byte), "\(byte)") }
  }

  @Test(
    arguments: [
      "Remote-User", "remote_user", "REMOTE.USER", "Remote~Email", "X-Forwarded-Server", "x_forwarded_for",
      "X.Forwarded.Host", "Forwarded",
      "X-Real-IP",
      "X_Real_IP", "X-Moongate-Assertion", "x!moongate!anything", "X-Original-URL", "X-Rewrite-Url",
      "X-HTTP-Method-Override", "Proxy", "PROXY",
      "True-Client-IP",
      "X-Client-IP", "X-Remote-User", "Transfer_Encoding", "transfer.encoding", "Content_Length", "content~length",
    ]) func namesOfClientIdentityAreReserved(_ name: String)
  {
    let bytes = Array(name.utf8)
    #expect(FieldKind.of(bytes.span, 0..<bytes.count) == .reserved)
    #expect(FieldKind.of(bytes.span, 0..<bytes.count).isDroppedFromRequests)
  }

  /// The decoder looks up only names with certain first letters, so all names of the list must be found.
  @Test(
    arguments: ReservedHeaders.names.map(\.description)
      + ReservedHeaders.prefixes.flatMap { ["\($0)", "\($0)anything"] },
    [{ $0 }, { $0.uppercased() }, { $0.replacing("-", with: "_") }, { $0.replacing("-", with: "!") }]
      as [@Sendable (String) -> String])
  func decoderReservesTheWholeList(_ name: String, _ spelled: @Sendable (String) -> String) {
    let bytes = Array(spelled(name).utf8)
    let kind = FieldKind.of(bytes.span, 0..<bytes.count)
    #expect(kind.isDroppedFromRequests, "\(spelled(name))")
    #expect(ReservedHeaders.contains(spelled(name)))
  }

  /// The decoder compares each of these names itself.
  @Test(
    arguments: HopByHopHeaders.names.map(\.description),
    [{ $0 }, { $0.uppercased() }] as [@Sendable (String) -> String])
  func decoderKnowsAllHopByHopHeaders(_ name: String, _ spelled: @Sendable (String) -> String) {
    let bytes = Array(spelled(name).utf8)
    let kind = FieldKind.of(bytes.span, 0..<bytes.count)
    #expect([.connection, .upgrade, .transferEncoding, .te, .trailer, .hopByHop].contains(kind), "\(spelled(name))")
  }

  @Test(arguments: [
    "Remote", "X-Forwardeds", "X-HTTP-Methods", "X-WEBAUTH", "Moongate-Devices", "HTTP2-Setting", "X-Real-IPs",
    "Proxys", "Forwarded-By",
    "XX-Forwarded-For", "Hosts", "Content-Type", "X-Tenant",
  ])
  func otherNamesAreNot(_ name: String) {
    let bytes = Array(name.utf8)
    #expect(FieldKind.of(bytes.span, 0..<bytes.count) == .other)
  }
}
