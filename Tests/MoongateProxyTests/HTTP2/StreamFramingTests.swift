import NIOCore
import NIOEmbedded
import NIOHPACK
import NIOHTTP2
import Testing

@testable import MoongateProxy

/// An HTTP/2 stream as a connection with one request: input, output and end.
@Suite struct StreamFramingTests {
  private let channel = EmbeddedChannel(handler: StreamFraming())

  private func ask(_ method: String = "GET", end: Bool = true, _ more: [(String, String)] = []) throws -> String {
    let head = [(":method", method), (":scheme", "https"), (":authority", "a"), (":path", "/")] + more
    try channel.writeInbound(HTTP2Frame.FramePayload.headers(.init(headers: HPACKHeaders(head), endStream: end)))
    return try inbound()
  }

  private func send(_ text: String, end: Bool = false) throws -> String {
    try channel.writeInbound(
      HTTP2Frame.FramePayload.data(.init(data: .byteBuffer(ByteBuffer(string: text)), endStream: end)))
    return try inbound()
  }

  private func inbound() throws -> String {
    var text = ""
    while let part = try channel.readInbound(as: ByteBuffer.self) { text += String(buffer: part) }
    return text
  }

  /// The written frames.
  private func answer(_ texts: String...) throws -> [String] {
    for text in texts { try channel.writeOutbound(ByteBuffer(string: text)) }
    return try frames()
  }

  private func frames() throws -> [String] {
    var found: [String] = []
    while let frame = try channel.readOutbound(as: HTTP2Frame.FramePayload.self) {
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
    return found
  }

  @Test func aLengthEndsWithItsLastByte() throws {
    #expect(try ask() == "GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    let found = try answer("HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhe", "llo")
    #expect(found == [":status=200 x-a=b content-length=5", "'he'", "'llo' end"])
  }

  @Test func chunksEndWithAnEmptyFrame() throws {
    _ = try ask()
    #expect(
      try answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "5\r\nhello\r\n", "0\r\n\r\n") == [
        ":status=200", "'hello'", "'' end",
      ])
  }

  @Test(arguments: [
    "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 304 Not Modified\r\n\r\n",
  ])
  func whatHasNoBodyIsOneFrame(text: String) throws {
    _ = try ask()
    let found = try answer(text)
    #expect(found.count == 1 && found[0].hasSuffix(" end"))
  }

  @Test func anAnswerToHEADHasNoBodyWhateverItSays() throws {
    _ = try ask("HEAD")
    #expect(try answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n") == [":status=200 content-length=5 end"])
  }

  /// Values that are not UTF-8 are treated as Latin-1 and are not replaced by question marks.
  @Test func valuesAreNotSpoiled() throws {
    _ = try ask()
    let head = Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-A: \u{fc}\u{20ac}\r\nX-B: ".utf8)
    try channel.writeOutbound(ByteBuffer(bytes: head + [0xfc, 0x62] + Array("\r\n\r\n".utf8)))
    #expect(try frames() == [":status=200 content-length=0 x-a=\u{fc}\u{20ac} x-b=\u{fc}b end"])
  }

  @Test func aContinueComesFirst() throws {
    _ = try ask("POST", end: false, [("content-length", "5"), ("expect", "100-continue")])
    #expect(try answer("HTTP/1.1 100 Continue\r\n\r\n") == [":status=100"])
    #expect(try send("hello", end: true) == "hello")
    #expect(try answer("HTTP/1.1 204 No Content\r\n\r\n") == [":status=204 end"])
  }

  @Test func bodiesOfUnknownLengthAreChunks() throws {
    #expect(try ask("POST", end: false).hasSuffix("transfer-encoding: chunked\r\n\r\n"))
    #expect(try send("hello") == "5\r\nhello\r\n")
    // An empty frame is not the last chunk.
    #expect(try send("") == "")
    #expect(try send("", end: true) == "0\r\n\r\n")
  }

  @Test func trailersEndTheBodyAndNoMore() throws {
    _ = try ask("POST", end: false)
    try channel.writeInbound(
      HTTP2Frame.FramePayload.headers(.init(headers: HPACKHeaders([("remote-user", "root")]), endStream: true)))
    #expect(try inbound() == "0\r\n\r\n")
  }

  @Test func halfAnAnswerIsReset() throws {
    _ = try ask()
    _ = try answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe")
    channel.close(promise: nil)
    #expect(try frames() == ["reset 2"])
  }

  /// RFC 9113 section 8.1: a complete response stays valid, and a client that is still sending is asked to stop.
  @Test(arguments: [true, false]) func aWholeAnswerStays(requestEnded: Bool) throws {
    _ = try ask("POST", end: requestEnded, [("content-length", requestEnded ? "0" : "5")])
    _ = try answer("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
    channel.close(promise: nil)
    #expect(try frames() == (requestEnded ? [] : ["reset 0"]))
  }

  @Test func malformedHeadsAreReset() throws {
    #expect(try ask("GET", [("x", "a\r\nremote-user: root")]) == "")
    #expect(try frames() == ["reset 1"])
  }

  private func ask(_ method: String, _ more: [(String, String)]) throws -> String { try ask(method, end: true, more) }
}
