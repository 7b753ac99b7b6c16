import NIOCore
import Testing

@testable import MoongateProxy

/// Responses of upstreams are parsed as strictly as requests.
@Suite struct ResponseDecoderTests {
  private func read(_ text: String, toHead: Bool = false, step: Int = .max) throws(MessageFault) -> ResponseHead? {
    var decoder = ResponseDecoder()
    var spare: [HeadField] = []
    var input = ByteBuffer()
    var head: ResponseHead?
    let bytes = Array(text.utf8)
    var start = 0
    while start < bytes.count, head == nil {
      let end = step == .max ? bytes.count : min(bytes.count, start + step)
      input.writeBytes(bytes[start..<end])
      head = try decoder.next(&input, spare: &spare, toHead: toHead)
      start = end
    }
    return head
  }

  @Test(
    arguments: [
      ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", BodyFraming.length(5), true),
      ("HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n", .chunked, true),
      ("HTTP/1.1 200\r\nContent-Length: 5\r\n\r\n", .length(5), true), ("HTTP/1.1 200\r\n\r\n", .untilClose, true),
      ("HTTP/1.1 200 OK\r\n\r\n", .untilClose, true), ("HTTP/1.1 204 No Content\r\n\r\n", .none, true),
      ("HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n", .none, false),
      ("HTTP/1.1 100 Continue\r\n\r\n", .none, true),
      ("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", .length(5), false),
      ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", .length(0), false),
      ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\n", .length(5), true),
    ]) func framesAnswers(_ text: String, _ framing: BodyFraming, _ keepsAlive: Bool) throws
  {
    for step in [1, 3, .max] {
      let head = try #require(try read(text, step: step))
      #expect(head.framing == framing)
      #expect(head.keepsAlive == keepsAlive)
    }
    #expect(try read(text, toHead: true)?.framing == BodyFraming.none)
  }

  @Test(
    arguments: [
      "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.2 200 OK\r\n\r\n", "HTTP/1.1 200\n\n", "HTTP/1.1 200\rOK\r\n\r\n",
      "HTTP/1.1 200\tOK\r\n\r\n", "HTTP/1.1 20\r\n\r\n", "HTTP/1.1 2000\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n",
      "HTTP/1.1 099 OK\r\n\r\n",
      "HTTP/1.1  200 OK\r\n\r\n",
      "HTTP/1.1 200 OK\n\n", "HTTP/1.1 200 OK\nA: b\r\n\r\n", "ICY 200 OK\r\n\r\n", "HTTP/1.1 200 O\0K\r\n\r\n",
      "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
      "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
      "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "\r\nHTTP/1.1 200 OK\r\n\r\n",
    ]) func ambiguousResponsesAreRefused(_ text: String)
  {
    for step in [1, .max] {
      #expect(throws: MessageFault.self) { _ = try read(text, step: step) }
    }
  }

  @Test func connectionHasABoundedNumberOfOptions() throws {
    let head = { (count: Int) in
      "HTTP/1.1 200 OK\r\nConnection: \(Array(repeating: "a", count: count).joined(separator: ", "))\r\n\r\n"
    }
    #expect(try read(head(64)) != nil)
    #expect(throws: MessageFault.malformed("Connection has too many options")) { _ = try read(head(65)) }
  }

  @Test func headsAreBounded() throws {
    #expect(throws: MessageFault.headTooLarge) {
      _ = try read("HTTP/1.1 200 OK\r\n" + String(repeating: "A: \(Array(repeating: "b", count: 30))\r\n", count: 700))
    }
    // Attack: thousands of fields, for each of which HTTP/2 searches its tables.
    let head = { (count: Int) in "HTTP/1.1 204 OK\r\n" + String(repeating: "A: b\r\n", count: count) + "\r\n" }
    #expect(try read(head(1000)) != nil)
    #expect(throws: MessageFault.malformed("the head has too many fields")) { _ = try read(head(1001)) }
  }

  @Test(arguments: 0..<4 as Range<UInt64>) func splitOfTheBytesDoesNotMatter(_ seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let corpus = [
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nSet-Cookie: a=b\r\n\r\n",
      "HTTP/1.1 304 Not\r\nConnection: close, x\r\nX: y\r\n\r\n",
    ]
    for _ in 0..<1000 {
      var bytes = Array((corpus.randomElement(using: &generator) ?? "").utf8)
      for _ in 0..<Int.random(in: 0...3, using: &generator) {
        bytes[Int.random(in: bytes.indices, using: &generator)] = UInt8.random(in: 0..<128, using: &generator)
      }
      let text = String(decoding: bytes, as: UTF8.self)
      #expect(
        Result { try read(text, step: 1) }.summary == Result { try read(text) }.summary, "\(text.debugDescription)")
    }
  }
}

extension Result where Success == ResponseHead?, Failure == any Error {
  fileprivate var summary: String {
    switch self {
    case .success(let head):
      head.map { "\($0.status) \($0.framing) \($0.keepsAlive) \($0.fields.count)" } ?? "incomplete"
    case .failure(let fault): "\(fault)"
    }
  }
}
