import NIOCore
import NIOEmbedded
import Testing

@testable import MoongateProxy

/// Exchanges on streams of an HTTP/2 connection to an upstream.
@Suite struct UpstreamStreamTests {
  private typealias Bytes = EmbeddedStreams

  private func withUpstream(
    _ settings: [(UInt16, UInt32)] = [], _ body: (EmbeddedUpstream) throws -> Void
  ) throws {
    let upstream = try EmbeddedUpstream(settings: settings)
    defer { upstream.end() }
    _ = try upstream.frames()
    try body(upstream)
  }

  // MARK: requests

  @Test func theConnectionBeginsWithSettingsOfItsOwn() throws {
    let upstream = try EmbeddedUpstream(settings: nil)
    defer { upstream.end() }
    let frames = try upstream.frames()
    #expect(frames.map(\.type) == [4, 8])
    // No pushes, and heads of at most 64 KiB. The window of the connection is 4 MiB.
    #expect(frames[0].payload == [0, 2, 0, 0, 0, 0, 0, 6, 0, 1, 0, 0])
    #expect(frames[1].stream == 0 && frames[1].code == 4 * 1024 * 1024 - 65_535)
    // The upstream's are acknowledged.
    try upstream.answer(Bytes.settings([(3, 100)]))
    #expect(try upstream.frames().map { [$0.type, $0.flags] } == [[4, 1]])
  }

  @Test func aHeadBecomesFields() throws {
    try withUpstream { upstream in
      _ = try upstream.ask(
        "/a?b=c",
        "Accept: */*\r\nTE: trailers\r\nConnection: TE\r\nKeep-Alive: 1\r\nCookie: a=1; b=2\r\nX-Empty:\r\n"
          + "Transfer-Encoding: chunked\r\nUpgrade: x\r\nX-Forwarded-For: 192.0.2.9\r\n")
      let fields = [
        ":method=GET", ":scheme=http", ":path=/a?b=c", ":authority=h", "accept=*/*", "te=trailers", "cookie=a=1; b=2",
        "x-empty=", "x-forwarded-for=192.0.2.9",
      ]
      #expect(try upstream.asked() == ["1 \(fields.joined(separator: " ")) end"])
      _ = try upstream.ask("/second")
      #expect(try upstream.asked() == ["3 :method=GET :scheme=http :path=/second :authority=h end"])
    }
  }

  @Test func aLargeHeadIsContinued() throws {
    try withUpstream { upstream in
      let long = String(repeating: "y", count: 20_000)
      _ = try upstream.ask("/x", "X-Long: \(long)\r\n")
      #expect(try upstream.asked() == ["1 :method=GET :scheme=http :path=/x :authority=h x-long=\(long) end"])
    }
  }

  @Test func aHeadBeyondAllBoundsEndsItsExchange() throws {
    try withUpstream { upstream in
      let exchange = try upstream.ask("/x", "X-Long: \(String(repeating: "y", count: 70_000))\r\n")
      #expect(try upstream.asked().isEmpty)
      #expect(exchange.events == ["failed: the head of the request is too large for HTTP/2"])
      #expect(upstream.connection.isIdle)
    }
  }

  @Test func theLastBytesOfABodyEndIt() throws {
    try withUpstream { upstream in
      let exchange = try upstream.ask(hasBody: true)
      #expect(try upstream.asked() == ["1 :method=POST :scheme=http :path=/x :authority=h"])
      exchange.stream.write(ByteBuffer(string: "one"))
      exchange.stream.flush()
      #expect(try upstream.asked() == ["1 'one'"])
      exchange.stream.write(ByteBuffer(string: "two"))
      exchange.stream.endBody(trailers: nil)
      #expect(try upstream.asked() == ["1 'two' end"])
    }
  }

  @Test func anEmptyBodyAndTrailersEndItToo() throws {
    try withUpstream { upstream in
      let empty = try upstream.ask(hasBody: true)
      empty.stream.endBody(trailers: nil)
      #expect(try upstream.asked().suffix(1) == ["1 '' end"])
      let trailed = try upstream.ask(hasBody: true)
      trailed.stream.write(ByteBuffer(string: "body"))
      trailed.stream.endBody(trailers: ByteBuffer(string: "X-Sum: 1\r\n"))
      #expect(try upstream.asked().suffix(2) == ["3 'body'", "3 x-sum=1 end"])
    }
  }

  // MARK: responses

  @Test func aResponseOfKnownLengthPasses() throws {
    try withUpstream { upstream in
      let exchange = try upstream.ask()
      try upstream.answer(
        upstream.head(1, "200", [("content-length", "5"), ("x-a", "b")]) + Bytes.data(1, "he")
          + Bytes.data(1, "llo", end: true))
      #expect(exchange.events == ["200 content-length=5 x-a=b (5)", "'he'", "'llo'", "end"])
      // The stream is over on both sides: nothing is said about it.
      #expect(try upstream.asked().filter { $0.contains("reset") }.isEmpty && upstream.connection.isIdle)
    }
  }

  @Test func aResponseOfUnknownLengthIsChunked() throws {
    try withUpstream { upstream in
      let exchange = try upstream.ask()
      try upstream.answer(upstream.head(1) + Bytes.data(1, "a"))
      try upstream.answer(Bytes.data(1, ""))
      try upstream.answer(Bytes.data(1, "", end: true))
      #expect(exchange.events == ["200 (chunked)", "'a'", "end"] && exchange.flushes > 0)
    }
  }

  /// A call of gRPC that fails at once: "Trailers-Only". The client must get one frame of HEADERS.
  @Test func aResponseThatIsOnlyAHeadHasTheLengthZero() throws {
    try withUpstream { upstream in
      let exchange = try upstream.ask()
      try upstream.answer(upstream.head(1, "200", [("grpc-status", "5")], end: true))
      #expect(exchange.events == ["200 grpc-status=5 (0)", "end"])
    }
  }

  @Test func aResponseToHEADHasNoBody() throws {
    try withUpstream { upstream in
      let exchange = try upstream.ask("/x", "HEAD")
      try upstream.answer(upstream.head(1, "200", [("content-length", "5")], end: true))
      #expect(exchange.events == ["200 content-length=5", "end"])
    }
  }

  @Test func interimResponsesComeFirst() throws {
    try withUpstream { upstream in
      let exchange = try upstream.ask()
      try upstream.answer(
        upstream.head(1, "103", [("link", "</a>")]) + upstream.head(1, "100") + upstream.head(1, "204", end: true))
      #expect(exchange.events == ["103", "100", "204", "end"])
    }
  }

  @Test func trailersPass() throws {
    try withUpstream { upstream in
      let exchange = try upstream.ask()
      try upstream.answer(
        upstream.head(1) + Bytes.data(1, "a")
          + upstream.head(1, nil, [("grpc-status", "0"), ("x-b", "c d")], end: true))
      #expect(
        exchange.events == ["200 (chunked)", "'a'", #"trailers "grpc-status: 0\r\nx-b: c d\r\n""#, "end"])
    }
  }

  /// HTTP/2 has trailers behind a body of declared length too. A client of HTTP/2 must know them before its last bytes.
  @Test func trailersOfABodyOfKnownLengthComeBeforeItsLastBytes() throws {
    try withUpstream { upstream in
      let exchange = try upstream.ask()
      try upstream.answer(
        upstream.head(1, "200", [("content-length", "4")]) + Bytes.data(1, "ab") + Bytes.data(1, "cd"))
      #expect(exchange.events == ["200 content-length=4 (4)", "'ab'"])
      try upstream.answer(upstream.head(1, nil, [("x-a", "b")], end: true))
      #expect(exchange.events.dropFirst(2) == [#"trailers "x-a: b\r\n""#, "'cd'", "end"])
      // Without trailers, and with a body of no bytes.
      let plain = try upstream.ask()
      try upstream.answer(
        upstream.head(3, "200", [("content-length", "2")]) + Bytes.data(3, "ab") + Bytes.data(3, "", end: true))
      #expect(plain.events == ["200 content-length=2 (2)", "'ab'", "end"])
      let empty = try upstream.ask()
      try upstream.answer(
        upstream.head(5, "200", [("content-length", "0")]) + upstream.head(5, nil, [("x-a", "b")], end: true))
      #expect(empty.events == ["200 content-length=0 (chunked)", #"trailers "x-a: b\r\n""#, "end"])
    }
  }

  @Test func responsesOfManyStreamsDoNotMix() throws {
    try withUpstream { upstream in
      let first = try upstream.ask("/1")
      let second = try upstream.ask("/2")
      try upstream.answer(
        upstream.head(3) + upstream.head(1) + Bytes.data(1, "one") + Bytes.data(3, "two", end: true)
          + Bytes.data(1, "", end: true))
      #expect(first.events == ["200 (chunked)", "'one'", "end"] && second.events == ["200 (chunked)", "'two'", "end"])
    }
  }

  @Test func framesInPiecesArePutTogether() throws {
    try withUpstream { upstream in
      let exchange = try upstream.ask()
      var bytes = try upstream.head(1, "200", [("x-a", "b")])
      // With padding, and a frame of a type that does not exist.
      bytes += Bytes.frame(0, flags: 8, stream: 1, [3] + Array("hello".utf8) + [0, 0, 0])
      bytes += Bytes.frame(99, flags: 1, stream: 1, Array("unknown".utf8))
      bytes += Bytes.frame(0, flags: 9, stream: 1, [2, 0, 0])
      for byte in bytes { try upstream.answer([byte]) }
      #expect(exchange.events.first == "200 x-a=b (chunked)" && exchange.events.last == "end")
      #expect(exchange.events.dropFirst().dropLast().map { $0.filter { $0 != "'" } }.joined() == "hello")
    }
  }

  @Test func aHeadMayBeContinuedAndPadded() throws {
    try withUpstream { upstream in
      let exchange = try upstream.ask()
      let block = Array(try upstream.head(1, "200", [("x-a", "b")]).dropFirst(9))
      // Padding, a priority, and the block in three frames.
      try upstream.answer(
        Bytes.frame(1, flags: 0x28 | 1, stream: 1, [2, 0, 0, 0, 0, 1] + block.prefix(2) + [0, 0])
          + Bytes.frame(9, stream: 1) + Bytes.frame(9, flags: 4, stream: 1, Array(block.dropFirst(2))))
      #expect(exchange.events == ["200 x-a=b (0)", "end"])
    }
  }

  // MARK: ends

  /// RFC 9113 section 8.1: a service may answer before it has the body.
  @Test func aResponseMayEndBeforeItsRequest() throws {
    try withUpstream { upstream in
      let exchange = try upstream.ask(hasBody: true)
      exchange.stream.write(ByteBuffer(string: "a"))
      _ = try upstream.asked()
      try upstream.answer(upstream.head(1, "413", end: true) + EmbeddedUpstream.code(3, stream: 1, 0))
      #expect(exchange.events == ["413 (0)", "end"])
      #expect(try upstream.asked() == ["1 reset 0"] && upstream.connection.isIdle)
    }
  }

  @Test func aCancelledRequestIsReset() throws {
    try withUpstream { upstream in
      let exchange = try upstream.ask()
      _ = try upstream.asked()
      exchange.stream.close()
      #expect(try upstream.asked() == ["1 reset 8"] && exchange.events.isEmpty)
      // What was on its way is ignored, except for the table of header compression.
      try upstream.answer(upstream.head(1, "200", [("x-a", "later used")]) + Bytes.data(1, "late", end: true))
      let next = try upstream.ask()
      try upstream.answer(upstream.head(3, "200", [("x-a", "later used")], end: true))
      #expect(next.events == ["200 x-a=later used (0)", "end"] && upstream.channel.isActive)
    }
  }

  @Test func aStreamThatWasNotUsedLeavesNothing() throws {
    try withUpstream { upstream in
      let stream = upstream.connection.makeStream()
      #expect(!upstream.connection.isIdle)
      stream.end(reusable: true)
      let frames = try upstream.frames()
      #expect(upstream.connection.isIdle && frames.isEmpty)
    }
  }

  // MARK: back-pressure

  @Test func aBodyWaitsForTheWindowOfTheUpstream() throws {
    try withUpstream([(4, 10)]) { upstream in
      let exchange = try upstream.ask(hasBody: true)
      exchange.stream.write(ByteBuffer(string: "0123456789abc"))
      exchange.stream.endBody(trailers: nil)
      #expect(try upstream.asked().last == "1 '0123456789'")
      try upstream.answer(Bytes.frame(8, stream: 1, [0, 0, 0, 2]))
      #expect(try upstream.asked() == ["1 'ab'"])
      // A smaller window for all streams can make it negative (RFC 9113 section 6.9.2).
      try upstream.answer(Bytes.settings([(4, 5)]) + Bytes.frame(8, stream: 1, [0, 0, 0, 5]))
      #expect(try upstream.asked().isEmpty)
      try upstream.answer(Bytes.frame(8, stream: 1, [0, 0, 0, 9]))
      #expect(try upstream.asked() == ["1 'c' end"])
    }
  }

  @Test func anExchangeMayWriteABoundedNumberOfBytes() throws {
    try withUpstream([(4, 0)]) { upstream in
      let exchange = try upstream.ask(hasBody: true)
      #expect(exchange.stream.isWritable)
      for _ in 0..<4 { exchange.stream.write(ByteBuffer(repeating: 0x61, count: 8 * 1024)) }
      #expect(!exchange.stream.isWritable && exchange.rooms == 0)
      // 17 KiB of the 32 KiB go out.
      try upstream.answer(Bytes.frame(8, stream: 1, [0, 0, 68, 0]))
      _ = try upstream.frames()
      #expect(exchange.stream.isWritable && exchange.rooms == 1)
    }
  }

  /// Attack: an upload that the service does not read. The windows of other streams do not help when the connection has
  /// none, so requests with a body get another connection.
  @Test func bodiesTakeTurnsInTheWindowOfTheConnection() throws {
    try withUpstream([(4, 1_000_000)]) { upstream in
      let first = try upstream.ask(hasBody: true)
      let second = try upstream.ask(hasBody: true)
      for _ in 0..<2 { first.stream.write(ByteBuffer(repeating: 0x61, count: 30_000)) }
      second.stream.write(ByteBuffer(repeating: 0x62, count: 30_000))
      let sent = try upstream.frames().filter { $0.type == 0 }
      #expect(sent.reduce(0) { $0 + $1.payload.count } == 65_535)
      #expect(sent.prefix(3).map(\.stream) == [1, 3, 1] && sent.allSatisfy { $0.payload.count <= 16_384 })
      #expect(!upstream.connection.hasRoom(forBody: true) && upstream.connection.hasRoom(forBody: false))
      #expect(upstream.pool.take(forBody: true) == nil)
      try upstream.answer(Bytes.frame(8, [0, 1, 0, 0]))
      #expect(try upstream.frames().filter { $0.type == 0 }.reduce(0) { $0 + $1.payload.count } == 90_000 - 65_535)
      #expect(upstream.connection.hasRoom(forBody: true))
    }
  }

  @Test func nothingIsWrittenToASocketThatAcceptsNothing() throws {
    try withUpstream { upstream in
      let exchange = try upstream.ask(hasBody: true)
      _ = try upstream.frames()
      upstream.channel.isWritable = false
      exchange.stream.write(ByteBuffer(string: "later"))
      exchange.stream.flush()
      #expect(try upstream.frames().isEmpty)
      upstream.channel.isWritable = true
      upstream.channel.pipeline.fireChannelWritabilityChanged()
      #expect(try upstream.asked() == ["1 'later'"])
    }
  }

  @Test func aClientThatReadsNothingHoldsOneWindow() throws {
    try withUpstream { upstream in
      let exchange = try upstream.ask()
      exchange.takesAnswer = false
      try upstream.answer(upstream.head(1) + Bytes.data(1, "first"))
      for _ in 0..<3 { try upstream.answer(Bytes.data(1, String(repeating: "x", count: 16_384))) }
      #expect(exchange.events == ["200 (chunked)"])
      #expect(try upstream.frames().filter { $0.type == 8 }.isEmpty)
      exchange.takesAnswer = true
      exchange.stream.resumeReading()
      #expect(exchange.events.dropFirst().map(\.utf8.count).reduce(0, +) == 49_157 + 2 * (exchange.events.count - 1))
      // Now it may send more, and twice as much at once.
      let updates = try upstream.frames().filter { $0.type == 8 && $0.stream == 1 }
      #expect(updates.map(\.code) == [49_157 + 65_535])
      try upstream.answer(Bytes.data(1, "", end: true))
      #expect(exchange.events.last == "end")
    }
  }

  @Test func theEndWaitsForTheClientToo() throws {
    try withUpstream { upstream in
      let exchange = try upstream.ask()
      exchange.takesAnswer = false
      try upstream.answer(
        upstream.head(1) + Bytes.data(1, "body") + upstream.head(1, nil, [("x-a", "b")], end: true))
      #expect(exchange.events == ["200 (chunked)", #"trailers "x-a: b\r\n""#])
      // The response is complete, even if the connection ends.
      upstream.end()
      exchange.takesAnswer = true
      exchange.stream.resumeReading()
      #expect(exchange.events == ["200 (chunked)", #"trailers "x-a: b\r\n""#, "'body'", "end"])
    }
  }

  @Test func theWindowOfTheConnectionIsGivenBack() throws {
    try withUpstream { upstream in
      var windows: [EmbeddedUpstream.Frame] = []
      // Also for streams that are cancelled: 40 of 60 KB are more than half of 4 MiB.
      for number in 0..<40 {
        let exchange = try upstream.ask()
        if number.isMultiple(of: 2) { exchange.stream.close() }
        let id = 2 * number + 1
        try upstream.answer(upstream.head(id))
        for _ in 0..<4 { try upstream.answer(Bytes.data(id, String(repeating: "x", count: 15_000))) }
        try upstream.answer(Bytes.data(id, "", end: true))
        windows += try upstream.frames().filter { $0.type == 8 && $0.stream == 0 }
      }
      #expect(windows.count == 1 && (windows.first?.code ?? 0) >= 2 * 1024 * 1024)
    }
  }
}
