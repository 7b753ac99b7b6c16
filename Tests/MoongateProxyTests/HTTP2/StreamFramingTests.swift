import NIOCore
import NIOHPACK
import NIOHTTP2
import Testing

@testable import MoongateProxy

/// An HTTP/2 stream as a connection with one request: input, output and end.
@Suite struct StreamFramingTests {
  private let stream = FramedStream()

  private func ask(_ method: String = "GET", end: Bool = true, _ more: [(String, String)] = []) -> String {
    let head = [(":method", method), (":scheme", "https"), (":authority", "a"), (":path", "/")] + more
    return stream.receive(.headers(.init(headers: HPACKHeaders(head), endStream: end)))
  }

  private func send(_ text: String, end: Bool = false) -> String {
    stream.receive(.data(.init(data: .byteBuffer(ByteBuffer(string: text)), endStream: end)))
  }

  /// The written frames.
  private func answer(_ texts: String...) -> [String] {
    for text in texts { stream.write(ByteBuffer(string: text)) }
    return stream.frames()
  }

  @Test func contentLengthEndsTheStream() {
    #expect(ask() == "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    let found = answer("HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhe", "llo")
    #expect(found == [":status=200 x-a=b content-length=5", "'he'", "'llo' end"])
  }

  @Test func chunksEndWithAnEmptyFrame() {
    _ = ask()
    #expect(
      answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "5\r\nhello\r\n", "0\r\n\r\n") == [
        ":status=200", "'hello'", "'' end",
      ])
  }

  @Test(arguments: [
    "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 304 Not Modified\r\n\r\n",
  ])
  func responseWithoutABodyIsOneFrame(text: String) {
    _ = ask()
    let found = answer(text)
    #expect(found.count == 1 && found[0].hasSuffix(" end"))
  }

  @Test func responseToHEADHasNoBody() {
    _ = ask("HEAD")
    #expect(answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n") == [":status=200 content-length=5 end"])
  }

  /// Values that are not UTF-8 are treated as Latin-1 and are not replaced by question marks.
  @Test func latin1ValuesAreConverted() {
    _ = ask()
    let head = Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-A: \u{fc}\u{20ac}\r\nX-B: ".utf8)
    stream.write(ByteBuffer(bytes: head + [0xfc, 0x62] + Array("\r\n\r\n".utf8)))
    #expect(stream.frames() == [":status=200 content-length=0 x-a=\u{fc}\u{20ac} x-b=\u{fc}b end"])
  }

  @Test func continueResponseComesFirst() {
    _ = ask("POST", end: false, [("content-length", "5"), ("expect", "100-continue")])
    #expect(answer("HTTP/1.1 100 Continue\r\n\r\n") == [":status=100"])
    #expect(send("hello", end: true) == "hello")
    #expect(answer("HTTP/1.1 204 No Content\r\n\r\n") == [":status=204 end"])
  }

  @Test func bodiesOfUnknownLengthAreChunks() {
    #expect(ask("POST", end: false).hasSuffix("transfer-encoding: chunked\r\n\r\n"))
    #expect(send("hello") == "5\r\nhello\r\n")
    // An empty frame is not the last chunk.
    #expect(send("") == "")
    #expect(send("", end: true) == "0\r\n\r\n")
  }

  /// What of them may go on is up to `ClientConnection.trailersForService`.
  @Test func requestTrailersEndTheBody() {
    _ = ask("POST", end: false)
    let trailers = HPACKHeaders([("x-sum", "1"), ("x-b", "c")])
    #expect(
      stream.receive(.headers(.init(headers: trailers, endStream: true))) == "0\r\nx-sum: 1\r\nx-b: c\r\n\r\n")
  }

  @Test func trailersBehindADeclaredLengthAreDropped() {
    _ = ask("POST", end: false, [("content-length", "5")])
    #expect(send("hello") == "hello")
    #expect(stream.receive(.headers(.init(headers: HPACKHeaders([("x-sum", "1")]), endStream: true))) == "")
  }

  @Test func responseTrailersAreTheLastFrame() {
    _ = ask()
    #expect(
      answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", "0\r\ngrpc-status: 0\r\n", "\r\n") == [
        ":status=200", "'ok'", "grpc-status=0 end",
      ])
  }

  @Test func incompleteResponseIsReset() {
    _ = ask()
    _ = answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe")
    stream.close()
    #expect(stream.frames() == ["reset 2"])
  }

  /// RFC 9113 section 8.1: a complete response stays valid, and a client that is still sending is asked to stop.
  @Test(arguments: [true, false]) func completeResponseStaysValid(requestEnded: Bool) {
    _ = ask("POST", end: requestEnded, [("content-length", requestEnded ? "0" : "5")])
    _ = answer("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
    stream.close()
    #expect(stream.frames() == (requestEnded ? [] : ["reset 0"]))
  }

  /// Attack: DATA that looks like a request, on a stream whose head is malformed.
  @Test func malformedHeadsAreResetAndNothingFollows() {
    #expect(ask("GET", end: false, [("x", "a\r\nremote-user: root")]) == "")
    #expect(stream.frames() == ["reset 1"])
    #expect(send("GET /hidden HTTP/1.1\r\nhost: a\r\n\r\n", end: true) == "")
    #expect(ask() == "")
  }

  /// Attack: DATA after the end of the request, or after a reset. Nothing of it becomes bytes of HTTP/1.1.
  @Test func nothingFollowsTheEndOfARequest() {
    #expect(ask("POST", end: false, [("content-length", "5")]).hasSuffix("content-length: 5\r\n\r\n"))
    #expect(send("hello", end: true) == "hello")
    #expect(send("GET /hidden HTTP/1.1\r\n\r\n") == "")
    #expect(ask() == "")
  }

  @Test func nothingFollowsAReset() {
    #expect(ask("POST", end: false).hasSuffix("transfer-encoding: chunked\r\n\r\n"))
    stream.close()
    #expect(stream.frames() == ["reset 2"])
    #expect(send("hello") == "" && send("", end: true) == "")
  }

  /// Attack: a body that is longer or shorter than declared. The library checks it too.
  @Test func bodyOfAnotherLengthIsReset() {
    _ = ask("POST", end: false, [("content-length", "5")])
    #expect(send("hello GET /hidden HTTP/1.1\r\n\r\n") == "")
    #expect(stream.frames() == ["reset 1"])
    #expect(send("hello") == "")
  }

  @Test func bodyThatIsTooShortIsReset() {
    _ = ask("POST", end: false, [("content-length", "5")])
    #expect(send("hell", end: true) == "hell")
    #expect(stream.frames() == ["reset 1"])
  }

  /// `RequestDecoder` refuses such a head, and its body is dropped.
  @Test(arguments: ["+5", "", "5 ", "0x5", "99999999999999999999", "5,5"]) func lengthThatIsNoNumberHasNoBody(
    _ length: String
  ) {
    _ = ask("POST", end: false, [("content-length", length)])
    #expect(send("hello", end: true) == "")
  }

  /// RFC 9113 section 4.2: a larger frame needs the client's consent.
  @Test func dataIsSplitIntoFramesThatEveryClientAccepts() {
    _ = ask()
    let body = String(repeating: "x", count: 40_000)
    let found = answer("HTTP/1.1 200 OK\r\nContent-Length: 40000\r\n\r\n", body)
    #expect(found.dropFirst().map(\.utf8.count) == [16_386, 16_386, 7_238])
    #expect(found.dropFirst().map { $0.hasSuffix(" end") } == [false, false, true])
  }

  /// Attack: an upstream sends bytes that are not a response.
  @Test func invalidResponseResetsTheStream() {
    _ = ask()
    #expect(answer("no answer\r\n\r\n") == ["reset 2"])
  }

  private func ask(_ method: String, _ more: [(String, String)]) -> String { ask(method, end: true, more) }
}

/// The framing of a stream whose frames are written at once.
private final class FramedStream {
  private var framing = StreamFraming()
  private var spare: [HeadField] = []
  private var written: [HTTP2Frame.FramePayload] = []

  /// Returns the bytes that the frame becomes.
  func receive(_ payload: HTTP2Frame.FramePayload) -> String {
    var parts: [ByteBuffer] = []
    var isRight = true
    switch payload {
    case .headers(let frame) where framing.awaitsHead:
      if let text = framing.receiveHead(frame.headers, isWhole: frame.endStream) {
        parts.append(text)
      } else {
        isRight = false
      }
    case .headers(let frame):
      guard frame.endStream else { break }
      isRight = framing.receiveEnd(trailers: FieldText.trailers(frame.headers), into: &parts)
    case .data(let frame):
      if case .byteBuffer(let bytes) = frame.data { isRight = framing.receiveBody(bytes, into: &parts) }
      if isRight, frame.endStream { isRight = framing.receiveEnd(into: &parts) }
    default: break
    }
    if !isRight { reset(framing.reset(.protocolError)) }
    return parts.map { String(buffer: $0) }.joined()
  }

  func write(_ bytes: ByteBuffer) {
    var made: [HTTP2Frame.FramePayload] = []
    let isAnswer = framing.write(bytes, spare: &spare) { made.append($0) }
    written += made
    if framing.answerHasEnded { framing.wroteEnd() }
    if !isAnswer { reset(framing.reset(.internalError)) }
  }

  func close() { reset(framing.end()) }

  private func reset(_ code: HTTP2ErrorCode?) { if let code { written.append(.rstStream(code)) } }

  /// Returns the frames written since the last call.
  func frames() -> [String] {
    var found: [String] = []
    for frame in written {
      switch frame {
      case .headers(let headers):
        found.append(
          headers.headers.map { "\($0.name)=\($0.value)" }.joined(separator: " ") + (headers.endStream ? " end" : ""))
      case .data(let data):
        guard case .byteBuffer(let bytes) = data.data else { continue }
        found.append("'\(String(buffer: bytes))'" + (data.endStream ? " end" : ""))
      case .rstStream(let code): found.append("reset \(code.networkCode)")
      default: found.append("other")
      }
    }
    written = []
    return found
  }
}
