import MoongateCore
import NIOCore
import NIOEmbedded
import NIOTLS
import Testing

@testable import MoongateProxy

/// Upstreams of HTTP/2 that break rules, end streams and connections, or do not answer.
@Suite struct UpstreamFaultTests {
  private typealias Bytes = EmbeddedStreams

  private final class Told {
    var reasons: [String] = []
  }

  private func withUpstream(
    _ settings: [(UInt16, UInt32)]? = [], _ body: (EmbeddedUpstream, Told) throws -> Void
  ) throws {
    let upstream = try EmbeddedUpstream(settings: settings)
    defer { upstream.end() }
    let told = Told()
    upstream.target.report = { told.reasons.append($0) }
    _ = try upstream.frames()
    try body(upstream, told)
  }

  // MARK: malformed responses

  /// Attack: request or response splitting by fields whose text would be another line.
  @Test(arguments: [
    [(":status", "200"), ("x", "a\r\nset-cookie: b")], [(":status", "200"), ("x", "a\nb")],
    [(":status", "200"), ("x", " a")],
    [(":status", "200"), ("x", "a\u{0}b")], [(":status", "200"), ("X-Upper", "a")], [(":status", "200"), ("a b", "c")],
    [(":status", "200"), ("a:", "c")], [(":status", "200"), (":status", "201")], [("x", "a"), (":status", "200")],
    [("x", "a")], [(":status", "20")], [(":status", "0200")], [(":status", "+20")], [(":status", "099")],
    [(":status", "200"), (":path", "/")], [(":status", "200"), ("connection", "close")],
    [(":status", "200"), ("transfer-encoding", "chunked")], [(":status", "200"), ("keep-alive", "1")],
    [(":status", "200"), ("upgrade", "x")], [(":status", "200"), ("proxy-connection", "x")], [(":status", "101")],
    [(":status", "200"), ("content-length", "x")], [(":status", "200"), ("content-length", "-1")],
    [(":status", "200"), ("content-length", "1"), ("content-length", "1")],
  ]) func aMalformedHeadResetsItsStreamOnly(_ fields: [(String, String)]) throws {
    try withUpstream { upstream, told in
      let bad = try upstream.ask("/bad")
      let good = try upstream.ask("/good")
      _ = try upstream.asked()
      try upstream.answer(upstream.head(1, nil, fields) + Bytes.data(1, "HTTP/1.1 200 OK\r\n\r\n", end: true))
      #expect(bad.events.count == 1 && bad.events[0].hasPrefix("failed: "), "\(bad.events)")
      #expect(try upstream.asked() == ["1 reset 1"])
      try upstream.answer(upstream.head(3, "204", end: true))
      #expect(good.events == ["204", "end"] && upstream.channel.isActive && told.reasons.isEmpty)
    }
  }

  @Test(arguments: [
    ("5", ["hell"], true, "shorter"), ("5", ["hello", "x"], false, "longer"), ("0", ["x"], false, "longer"),
    ("1", ["x", "y"], false, "longer"),
    ("5", [], true, "shorter"),
  ]) func aBodyOfAnotherLengthIsMalformed(_ length: String, _ parts: [String], _ ends: Bool, _ reason: String) throws {
    try withUpstream { upstream, _ in
      let exchange = try upstream.ask()
      try upstream.answer(upstream.head(1, "200", [("content-length", length)]))
      for part in parts { try upstream.answer(Bytes.data(1, part)) }
      if ends { try upstream.answer(Bytes.data(1, "", end: true)) }
      #expect(exchange.events.last == "failed: the body is \(reason) than its Content-Length", "\(exchange.events)")
      #expect(try upstream.asked().last == "1 reset 1")
    }
  }

  @Test func aBodyWithoutAHeadIsMalformed() throws {
    try withUpstream { upstream, _ in
      let exchange = try upstream.ask()
      try upstream.answer(Bytes.data(1, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", end: true))
      #expect(exchange.events == ["failed: a body without a head"])
    }
  }

  /// Attack: bytes in a body that look like a response.
  @Test func aResponseInABodyStaysABody() throws {
    try withUpstream { upstream, _ in
      let first = try upstream.ask("/1")
      let second = try upstream.ask("/2")
      let hidden = "0\r\n\r\nHTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n"
      try upstream.answer(upstream.head(1) + Bytes.data(1, hidden) + Bytes.data(1, hidden, end: true))
      try upstream.answer(upstream.head(3, "204", end: true))
      #expect(
        first.events == ["200 (chunked)", "'\(hidden)'", "'\(hidden)'", "end"] && second.events == ["204", "end"])
    }
  }

  @Test(arguments: [
    ([("x", "a")], false, "trailers do not end the response"), ([(":status", "200")], true, "malformed trailers"),
    ([("x", "a\r\nb: c")], true, "malformed trailers"), ([("connection", "x")], true, "malformed trailers"),
  ]) func malformedTrailersAreRefused(_ fields: [(String, String)], _ ends: Bool, _ reason: String) throws {
    try withUpstream { upstream, _ in
      let exchange = try upstream.ask()
      try upstream.answer(upstream.head(1) + Bytes.data(1, "a") + upstream.head(1, nil, fields, end: ends))
      #expect(exchange.events == ["200 (chunked)", "'a'", "failed: \(reason)"])
      #expect(try upstream.asked().last == "1 reset 1")
    }
  }

  /// An upstream that sends trailers twice: the first ones end the response, and the second ones the connection.
  @Test func whatFollowsTheEndOfAResponseEndsTheConnection() throws {
    for after in [0, 1] as [UInt8] {
      try withUpstream { upstream, told in
        let first = try upstream.ask("/1")
        let trailers = try upstream.head(1, nil, [("x", "a")], end: true)
        let more = after == 1 ? try upstream.head(1, nil, [("x", "b")], end: true) : Bytes.data(1, "more", end: true)
        try upstream.answer(upstream.head(1) + trailers)
        #expect(first.events == ["200 (chunked)", #"trailers "x: a\r\n""#, "end"])
        try upstream.answer(more)
        #expect(try upstream.asked().last == "goaway 5" && !upstream.channel.isActive)
        #expect(told.reasons == ["it sends on after the end of a response"])
        #expect(upstream.pool.take(forBody: false) == nil)
      }
    }
  }

  @Test func endlessInterimResponsesAreRefused() throws {
    try withUpstream { upstream, _ in
      let exchange = try upstream.ask()
      for _ in 0..<17 { try upstream.answer(upstream.head(1, "102")) }
      #expect(exchange.events.count == 17 && exchange.events.last == "failed: too many interim responses")
    }
  }

  // MARK: resets and GOAWAY

  @Test(arguments: [
    (7, true, "REFUSED_STREAM"), (2, false, "INTERNAL_ERROR"), (8, false, "CANCEL"), (99, false, "error 99"),
  ])
  func aResetEndsItsExchange(_ code: UInt8, _ isUnhandled: Bool, _ name: String) throws {
    for hasBody in [false, true] {
      try withUpstream { upstream, _ in
        let exchange = try upstream.ask(hasBody: hasBody)
        let other = try upstream.ask()
        if hasBody { exchange.stream.write(ByteBuffer(string: "a")) }
        _ = try upstream.asked()
        try upstream.answer(EmbeddedUpstream.code(3, stream: 1, code))
        #expect(exchange.events == ["failed: it reset the stream: \(name)"])
        #expect(exchange.isUnhandled == isUnhandled)
        #expect(try upstream.asked().isEmpty && other.events.isEmpty && upstream.connection.hasRoom(forBody: false))
      }
    }
  }

  @Test func aResetWithinAResponseIsNotItsEnd() throws {
    try withUpstream { upstream, _ in
      let exchange = try upstream.ask()
      try upstream.answer(upstream.head(1) + Bytes.data(1, "a") + EmbeddedUpstream.code(3, stream: 1, 0))
      #expect(exchange.events == ["200 (chunked)", "'a'", "failed: it reset the stream: NO_ERROR"])
    }
  }

  @Test func afterGOAWAYOnlyHandledRequestsGoOn() throws {
    try withUpstream { upstream, told in
      let first = try upstream.ask("/1")
      let second = try upstream.ask("/2")
      try upstream.answer(EmbeddedUpstream.goAway(last: 1, 0))
      #expect(first.events.isEmpty && second.isUnhandled)
      #expect(second.events == ["failed: it ended the connection: GOAWAY NO_ERROR"])
      #expect(!upstream.connection.hasRoom(forBody: false) && upstream.pool.take(forBody: false) == nil)
      try upstream.answer(upstream.head(1, "204", end: true))
      #expect(first.events == ["204", "end"])
      // The last one has ended.
      #expect(try upstream.asked().last == "goaway 0" && !upstream.channel.isActive && told.reasons.isEmpty)
    }
  }

  @Test func theReasonOfGOAWAYIsTold() throws {
    try withUpstream { upstream, told in
      let exchange = try upstream.ask()
      try upstream.answer(EmbeddedUpstream.goAway(last: 1, 11, "too_many\r\n_pings"))
      let reason = "it ended the connection: GOAWAY ENHANCE_YOUR_CALM, too_many_pings"
      #expect(told.reasons == [reason] && exchange.events.isEmpty)
      upstream.end()
      #expect(exchange.events == ["failed: \(reason)"] && !exchange.isUnhandled)
    }
  }

  @Test func aConnectionThatClosesEndsItsExchanges() throws {
    try withUpstream { upstream, _ in
      let exchange = try upstream.ask()
      upstream.end()
      #expect(exchange.events == ["failed: closed"] && !exchange.isUnhandled && !exchange.stream.isOpen)
    }
  }

  // MARK: errors of the connection

  @Test(
    arguments: [
      ("settings with a stream", EmbeddedStreams.frame(4, stream: 1), 1),
      ("settings of a wrong length", EmbeddedStreams.frame(4, [1]), 6),
      ("an acknowledgement with content", EmbeddedStreams.frame(4, flags: 1, [0, 1, 0, 0, 0, 0]), 6),
      ("a window of 2 GiB", EmbeddedStreams.settings([(4, 0x8000_0000)]), 3),
      ("a frame size of 5", EmbeddedStreams.settings([(5, 5)]), 1),
      ("pushes", EmbeddedStreams.settings([(2, 1)]), 1),
      ("a push", EmbeddedStreams.frame(5, flags: 4, stream: 1, [0, 0, 0, 2, 0x88]), 1),
      ("a large frame", EmbeddedStreams.frame(0, stream: 1, Array(repeating: 0, count: 16_385)), 6),
      ("a ping of a wrong length", EmbeddedStreams.frame(6, [1, 2, 3]), 6),
      ("a ping on a stream", EmbeddedStreams.frame(6, stream: 1, Array(repeating: 0, count: 8)), 1),
      ("a reset of no stream", EmbeddedStreams.frame(3, [0, 0, 0, 0]), 1),
      ("a reset of a wrong length", EmbeddedStreams.frame(3, stream: 1, [0]), 6),
      ("a reset of a stream that has not begun", EmbeddedStreams.frame(3, stream: 99, [0, 0, 0, 0]), 1),
      ("a window of no bytes", EmbeddedStreams.frame(8, [0, 0, 0, 0]), 1),
      ("a window of a wrong length", EmbeddedStreams.frame(8, [0, 0]), 6),
      ("a window that is too large", EmbeddedStreams.frame(8, [0x7f, 0xff, 0xff, 0xff]), 3),
      ("a short goaway", EmbeddedStreams.frame(7, [0, 0, 0, 0]), 6),
      ("data of no stream", EmbeddedStreams.frame(0, [1]), 1),
      ("data of a stream that has not begun", EmbeddedStreams.data(99, "x"), 1),
      ("data of a stream of the upstream", EmbeddedStreams.data(2, "x"), 1),
      ("padding beyond the frame", EmbeddedStreams.frame(0, flags: 8, stream: 1, [5, 0]), 1),
      ("padding without a length", EmbeddedStreams.frame(0, flags: 8, stream: 1), 1),
      ("padding of a head", EmbeddedStreams.frame(1, flags: 12, stream: 1, [5, 0x88]), 1),
      ("a continuation of nothing", EmbeddedStreams.frame(9, flags: 4, stream: 1, [0x88]), 1),
      (
        "another frame in a head",
        EmbeddedStreams.frame(1, stream: 1, [0x88]) + EmbeddedStreams.data(1, "x"), 1
      ),
      (
        "a continuation of another stream",
        EmbeddedStreams.frame(1, stream: 1, [0x88]) + EmbeddedStreams.frame(9, flags: 4, stream: 3, [0x88]), 1
      ),
      ("a head that cannot be decompressed", EmbeddedStreams.frame(1, flags: 4, stream: 1, [0xff, 0xff]), 9),
      (
        "empty continuations",
        EmbeddedStreams.frame(1, stream: 1) + (0..<17).flatMap { _ in EmbeddedStreams.frame(9, stream: 1) }, 11
      ),
    ] as [(String, [UInt8], Int)]) func anErrorEndsTheConnection(_ name: String, _ bytes: [UInt8], _ code: Int) throws
  {
    try withUpstream { upstream, told in
      let exchange = try upstream.ask()
      _ = try upstream.asked()
      try upstream.answer(bytes)
      #expect(try upstream.asked().last == "goaway \(code)" && !upstream.channel.isActive, "\(name)")
      #expect(exchange.events.count == 1 && exchange.events[0].hasPrefix("failed: ") && told.reasons.isEmpty)
      // Without an exchange, the operator is told.
      try withUpstream { idle, told in
        if bytes.count > 8, bytes[3] == 0 || bytes[3] == 1 || bytes[3] == 3 { return }
        try idle.answer(bytes)
        #expect(told.reasons.count == 1 && !idle.channel.isActive, "\(name)")
      }
    }
  }

  /// Attack (HPACK bomb): a small frame that becomes megabytes of fields.
  @Test func aHeadThatGrowsIsRefused() throws {
    try withUpstream { upstream, _ in
      let exchange = try upstream.ask()
      // An entry of the table with 4,060 bytes, and its number twenty times.
      let large: [UInt8] = [0x40, 1, 0x78, 0x7f, 0xdd, 0x1e] + Array(repeating: 0x61, count: 4_060)
      let block = [0x88] + large + Array(repeating: 0xbe, count: 20)
      try upstream.answer(EmbeddedStreams.frame(1, flags: 4, stream: 1, block))
      #expect(try upstream.asked().last == "goaway 11")
      #expect(exchange.events == ["failed: a head is too large"])
    }
  }

  @Test func moreThanTheWindowIsRefused() throws {
    try withUpstream { upstream, _ in
      let exchange = try upstream.ask()
      exchange.takesAnswer = false
      try upstream.answer(upstream.head(1))
      for _ in 0..<4 { try upstream.answer(Bytes.data(1, String(repeating: "x", count: 16_384))) }
      #expect(exchange.events == ["200 (chunked)", "failed: it sends more than it may"])
      #expect(try upstream.asked().last == "1 reset 3" && upstream.channel.isActive)
    }
  }

  @Test(arguments: ["HTTP/1.1 400 Bad Request\r\n\r\n", "\u{15}\u{3}\u{3}\u{0}\u{2}\u{2}F_______", "SSH-2.0-OpenSSH"])
  func anUpstreamThatDoesNotSpeakHTTP2IsTold(_ text: String) throws {
    try withUpstream(nil) { upstream, told in
      try upstream.answer(Array(text.utf8))
      #expect(told.reasons == ["it does not speak HTTP/2 here"] && !upstream.channel.isActive)
    }
  }

  // MARK: limits

  @Test func aConnectionTakesAsManyStreamsAsTheUpstreamAllows() throws {
    try withUpstream([(3, 2)]) { upstream, _ in
      let first = try upstream.ask()
      _ = try upstream.ask()
      #expect(upstream.pool.take(forBody: false) == nil)
      try upstream.answer(Bytes.settings([(3, 3)]))
      #expect(upstream.connection.hasRoom(forBody: false))
      try upstream.answer(Bytes.settings([(3, 1)]))
      #expect(!upstream.connection.hasRoom(forBody: false))
      first.stream.close()
      #expect(!upstream.connection.hasRoom(forBody: false))
      try upstream.answer(Bytes.settings([(3, 0xffff_ffff)]))
      for _ in 0..<255 { _ = try upstream.ask() }
      #expect(!upstream.connection.hasRoom(forBody: false))
    }
  }

  /// Attack: a client that cancels requests. Upstreams count resets, and would end the connection of all users.
  @Test func aConnectionIsReplacedAfterManyCancelledRequests() throws {
    try withUpstream { upstream, _ in
      let other = try upstream.ask()
      for _ in 0..<101 {
        #expect(upstream.connection.hasRoom(forBody: false))
        try upstream.ask().stream.close()
      }
      #expect(!upstream.connection.hasRoom(forBody: false) && upstream.channel.isActive)
      try upstream.answer(upstream.head(1, "204", end: true))
      #expect(other.events == ["204", "end"])
      #expect(try upstream.asked().last == "goaway 0" && !upstream.channel.isActive)
    }
  }

  /// Attack: frames that each need a reply, from an upstream that reads none.
  @Test func repliesThatNobodyReadsAreBounded() throws {
    try withUpstream { upstream, told in
      let ping = Bytes.frame(6, [1, 2, 3, 4, 5, 6, 7, 8])
      for _ in 0..<2000 { try upstream.answer(ping) }
      let replies = try upstream.frames()
      #expect(replies.count == 2000 && replies.allSatisfy { $0.flags == 1 && $0.payload == [1, 2, 3, 4, 5, 6, 7, 8] })
      upstream.channel.isWritable = false
      for _ in 0..<1000 { try upstream.answer(ping) }
      #expect(upstream.channel.isActive)
      try upstream.answer(ping)
      #expect(!upstream.channel.isActive && told.reasons == ["it does not read the replies to PING"])
    }
  }

  // MARK: time

  /// A connection whose other end has vanished, which only a request that gets no answer shows.
  @Test(arguments: [true, false]) func aConnectionIsDoubtedAfterSilence(_ answers: Bool) throws {
    try withUpstream { upstream, told in
      let exchange = try upstream.ask()
      let other = try upstream.ask()
      upstream.channel.embeddedEventLoop.advanceTime(by: .seconds(2))
      exchange.stream.close()
      #expect(try upstream.frames().contains { $0.type == 6 && $0.flags == 0 && $0.payload.count == 8 })
      #expect(!upstream.connection.hasRoom(forBody: false))
      if answers {
        try upstream.answer(Bytes.frame(6, flags: 1, Array(repeating: 0, count: 8)))
        upstream.channel.embeddedEventLoop.advanceTime(by: .seconds(10))
        #expect(upstream.connection.hasRoom(forBody: false) && other.events.isEmpty)
      } else {
        upstream.channel.embeddedEventLoop.advanceTime(by: .seconds(6))
        #expect(!upstream.channel.isActive && other.events == ["failed: it does not answer a PING"])
      }
      #expect(told.reasons.isEmpty)
    }
  }

  @Test func aConnectionThatWorksIsNotDoubted() throws {
    try withUpstream { upstream, _ in
      let slow = try upstream.ask()
      let fast = try upstream.ask()
      upstream.channel.embeddedEventLoop.advanceTime(by: .seconds(2))
      try upstream.answer(upstream.head(3, "204", end: true))
      slow.stream.close()
      // A request that is given up at once says nothing either.
      try upstream.ask().stream.close()
      let pings = try upstream.frames().filter { $0.type == 6 }
      #expect(fast.events == ["204", "end"] && pings.isEmpty && upstream.connection.hasRoom(forBody: false))
    }
  }

  @Test func idleConnectionsCloseAndBusyOnesDoNot() throws {
    try withUpstream { upstream, _ in
      let exchange = try upstream.ask()
      let loop = upstream.channel.embeddedEventLoop
      loop.advanceTime(by: .seconds(60))
      upstream.pool.closeIdle(before: loop.now)
      #expect(upstream.channel.isActive && upstream.pool.idle == 0)
      try upstream.answer(upstream.head(1, "204", end: true))
      #expect(exchange.events == ["204", "end"] && upstream.pool.idle == 1)
      upstream.pool.closeIdle(before: loop.now)
      #expect(upstream.channel.isActive)
      loop.advanceTime(by: .seconds(31))
      upstream.pool.closeIdle(before: loop.now - .seconds(30))
      #expect(try upstream.asked().last == "goaway 0" && !upstream.channel.isActive && upstream.pool.idle == 0)
    }
  }

  @Test func aTargetWithoutRoutesServesItsRequestsToTheEnd() throws {
    try withUpstream { upstream, _ in
      let exchange = try upstream.ask()
      upstream.pool.retire()
      #expect(upstream.pool.take(forBody: false) == nil && upstream.channel.isActive)
      try upstream.answer(upstream.head(1, "204", end: true))
      #expect(exchange.events == ["204", "end"] && !upstream.channel.isActive)
    }
  }
}

/// The agreement on HTTP/2 (ALPN), and the wait for the upstream's SETTINGS.
@Suite struct UpstreamHTTP2BeginTests {
  private func begin(
    isSecure: Bool, _ body: (EmbeddedChannel, _ outcome: () -> String) throws -> Void
  ) throws {
    let channel = EmbeddedChannel()
    var upstream = Upstream(isSecure: isSecure, host: "192.0.2.2", port: 2)
    upstream.usesHTTP2 = true
    let target = UpstreamTarget(
      upstream, eventLoop: channel.eventLoop, tls: UpstreamTLS(), spare: SpareFields())
    let pool = try #require(target.http2)
    let ready = channel.eventLoop.makePromise(of: Void.self)
    var outcome = "waits"
    ready.futureResult.assumeIsolated().whenComplete { result in
      switch result {
      case .success: outcome = "ready"
      case .failure(let error): outcome = ConnectFailure(error).reason
      }
    }
    try channel.pipeline.syncOperations.addHandler(
      UpstreamHTTP2(target: target, pool: pool, eventLoop: channel.eventLoop, ready: ready))
    channel.connect(to: try SocketAddress(ipAddress: "192.0.2.2", port: 2), promise: nil)
    try body(channel) { outcome }
    _ = try? channel.finish(acceptAlreadyClosed: true)
  }

  @Test(arguments: ["http/1.1", nil]) func withoutAgreementNothingIsSent(_ agreed: String?) throws {
    try begin(isSecure: true) { channel, outcome throws in
      channel.pipeline.fireUserInboundEventTriggered(TLSUserEvent.handshakeCompleted(negotiatedProtocol: agreed))
      #expect(try channel.readOutbound(as: ByteBuffer.self) == nil && !channel.isActive)
      #expect(outcome() == "it cannot be reached: it does not agree to HTTP/2 by ALPN")
    }
  }

  @Test func withAgreementTheUpstreamsSettingsAreAwaited() throws {
    try begin(isSecure: true) { channel, outcome in
      #expect(try channel.readOutbound(as: ByteBuffer.self) == nil)
      channel.pipeline.fireUserInboundEventTriggered(TLSUserEvent.handshakeCompleted(negotiatedProtocol: "h2"))
      let sent = try #require(try channel.readOutbound(as: ByteBuffer.self))
      #expect(sent.readableBytesView.starts(with: EmbeddedUpstream.preface) && outcome() == "waits")
      try channel.writeInbound(ByteBuffer(bytes: EmbeddedStreams.settings([(3, 100)])))
      #expect(outcome() == "ready")
    }
  }

  @Test(arguments: [
    ("HTTP/1.1 400 Bad Request\r\n\r\n", "it cannot be reached: it does not speak HTTP/2 here"),
    ("", "it cannot be reached: it closed the connection at once"),
  ]) func anotherUpstreamIsNotReady(_ answer: String, _ reason: String) throws {
    try begin(isSecure: false) { channel, outcome in
      if answer.isEmpty { _ = try channel.finish() } else { try channel.writeInbound(ByteBuffer(string: answer)) }
      #expect(outcome() == reason && !channel.isActive)
    }
  }
}
