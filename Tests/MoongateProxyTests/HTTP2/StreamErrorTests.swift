import Foundation
import MoongateCore
import MoongateTesting
import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import MoongateProxy

/// Malformed requests and errors of single streams, all frames in one read, so that nothing depends on a race.
@Suite struct StreamErrorTests {
  private typealias Frame = EmbeddedStreams.Frame

  private static let hidden = "GET /hidden HTTP/1.1\r\nHost: h\r\nX-Evil: 1\r\n\r\n"
  private static let hiddenOwn = "POST /api/auth/flows HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}"

  /// Calls the closure with a client, and returns how many requests for the gateway itself it has made.
  @discardableResult
  private func onOneThread(
    of parameters: [(UInt16, UInt32)] = [], trusted: Bool = false, _ body: (EmbeddedStreams) throws -> Void
  ) async throws -> Int {
    var settings = GatewaySettings.test()
    if trusted { settings.trustedProxies = [AddressBlock(network: [192, 0, 2, 1], prefix: 32)] }
    let gateway = try await TestGateway(routes: [.test(ports: [1], open: true)], settings: settings)
    let own = Mutex(0)
    try {
      let client = try EmbeddedStreams(gateway, settings: parameters) { _ in own.withLock { $0 += 1 } }
      defer { client.end() }
      _ = try client.frames()
      try body(client)
    }()
    await gateway.stop()
    return own.withLock { $0 }
  }

  private func resets(_ frames: [Frame]) -> [[Int]] { frames.filter { $0.type == 3 }.map { [$0.stream, $0.code] } }

  /// Attack: request smuggling. DATA that looks like a request follows a malformed head, of which only HTTP/2 sees that
  /// it is malformed, before the stream's reset is written. A proxy in front passes both on, and neither its rules nor
  /// its `X-Forwarded-For` apply to the hidden request.
  @Test(arguments: [
    ("x", " a"), ("x", "a "), ("x", "a\t"), ("x", "\ta"), ("x", "a\u{7f}"), ("x", "a\u{1}b"), ("cookie", "a=1 "),
    ("host", " h"), (":scheme", "ftp"), (":method", ""), (":method", "G T"), (":path", "x"),
  ]) func dataOfAMalformedRequestIsNoRequest(name: String, value: String) async throws {
    for hidden in [Self.hidden, Self.hiddenOwn] {
      let own = try await onOneThread { client in
        try client.send(
          client.head(1, "POST", path: "/outer", [(name, value)], end: false)
            + EmbeddedStreams.data(1, hidden) + EmbeddedStreams.data(1, hidden, end: true))
        #expect(try resets(client.frames()) == [[1, 1]])
        #expect(try client.asked() == "" && client.channel.isActive)
        // The connection serves on.
        try client.send(client.head(3, path: "/fine"))
        #expect(try client.asked().hasPrefix("GET /fine HTTP/1.1\r\n"))
      }
      #expect(own == 0)
    }
  }

  /// Attack: the same with a head that the head decoder refuses, or that is answered before its body has arrived.
  @Test(arguments: [
    ("/../x", "content-length", "5"), ("/x", "host", "other"), ("/x", "content-length", "+\(hidden.utf8.count)"),
    ("/auth/x", "content-length", "99999"),
  ]) func dataOfARefusedRequestIsNoRequest(path: String, name: String, value: String) async throws {
    let own = try await onOneThread { client in
      try client.send(
        client.head(1, "POST", path: path, [(name, value)], end: false)
          + EmbeddedStreams.data(1, Self.hidden) + EmbeddedStreams.data(1, Self.hiddenOwn, end: true))
      client.channel.embeddedEventLoop.advanceTime(by: .seconds(1))
      try client.send(EmbeddedStreams.data(1, Self.hidden))
      #expect(try client.asked() == "")
    }
    #expect(own == 0)
  }

  /// Attack: DATA that looks like a request, in the body of one. It stays a body.
  @Test func requestInABodyStaysABody() async throws {
    let own = try await onOneThread { client in
      try client.send(
        client.head(1, "POST", path: "/outer", end: false) + EmbeddedStreams.data(1, "0\r\n\r\n")
          + EmbeddedStreams.data(1, Self.hidden, end: true))
      let asked = try client.asked()
      #expect(asked.hasPrefix("POST /outer HTTP/1.1\r\n"))
      #expect(asked.hasSuffix("\r\n\r\n5\r\n0\r\n\r\n\r\n2c\r\n\(Self.hidden)\r\n0\r\n\r\n"))
    }
    #expect(own == 0)
  }

  /// Attack: one malformed request of a stranger cuts the downloads of all users of a proxy in front, which share
  /// its connection.
  @Test(arguments: [
    ("te", "gzip"), ("connection", "close"), ("X-Upper", "a"), ("x", "a\nb"), ("content-length", "x"), (":path", ""),
    (":status", "200"), ("x", " a"),
  ]) func malformedRequestEndsItsStreamOnly(name: String, value: String) async throws {
    try await onOneThread { client in
      try client.send(client.head(1, path: "/download"))
      try client.answer("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf")
      _ = try client.frames()
      try client.send(client.head(3, "POST", path: "/x", [(name, value)]))
      #expect(try resets(client.frames()) == [[3, 1]])
      try client.answer("rest")
      #expect(try client.frames().contains { $0.type == 0 && $0.stream == 1 && $0.text == "rest" && $0.flags == 1 })
      #expect(client.channel.isActive)
    }
  }

  @Test func errorsOfFramesEndTheirStreamOnly() async throws {
    try await onOneThread { client in
      try client.send(client.head(1, path: "/download"))
      let overflow: [UInt8] = [0x7f, 0xff, 0xff, 0xff]
      for (stream, frame) in [
        (3, EmbeddedStreams.data(3, "123456")), (5, EmbeddedStreams.data(5, "1234", end: true)),
        (7, EmbeddedStreams.frame(8, stream: 7, [0, 0, 0, 0])), (9, EmbeddedStreams.frame(8, stream: 9, overflow)),
        (11, []),
      ] {
        try client.send(client.head(stream, "POST", path: "/auth/x", [("content-length", "5")], end: false) + frame)
      }
      try client.send(client.head(11, "POST", path: "/again", end: false))
      let found = try client.frames()
      #expect(resets(found).map { $0[0] } == [3, 5, 7, 9, 11] && !found.contains { $0.type == 7 })
      try client.answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      #expect(try client.frames().contains { $0.type == 0 && $0.stream == 1 && $0.flags == 1 })
      #expect(client.channel.isActive)
    }
  }

  /// Attack: trailers that were on their way when the gateway reset their stream. To the library, they are an error of
  /// the connection. RFC 9113 section 5.1: they are ignored.
  @Test(arguments: [("/x", "x", " a", 1), ("/../x", "x", "a", 0)]) func trailersOfAResetStreamEndNothing(
    path: String, name: String, value: String, code: Int
  ) async throws {
    try await onOneThread { client in
      try client.send(client.head(1, path: "/download"))
      try client.send(client.head(3, "POST", path: path, [(name, value)], end: false))
      #expect(try resets(client.frames()) == [[3, code]])
      try client.send(EmbeddedStreams.data(3, Self.hidden))
      try client.send(client.trailers(3))
      try client.answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      let found = try client.frames()
      #expect(resets(found).isEmpty && !found.contains { $0.type == 7 })
      #expect(found.contains { $0.type == 0 && $0.stream == 1 && $0.flags == 1 })
      // The library resets it too, of which the client hears nothing.
      client.channel.embeddedEventLoop.advanceTime(by: .seconds(5))
      #expect(try client.frames().isEmpty && client.channel.isActive)
      #expect(try client.asked().components(separatedBy: "HTTP/1.1").count == 2)
    }
  }

  /// Attack: more such streams than the gateway keeps, and far more than may be open.
  @Test func resetStreamsAreBounded() async throws {
    try await onOneThread(trusted: true) { client in
      for number in 0..<3000 {
        try client.send(client.head(2 * number + 1, "POST", [("x", " a")], end: false))
        #expect(try resets(client.frames()) == [[2 * number + 1, 1]])
      }
      client.channel.embeddedEventLoop.advanceTime(by: .seconds(5))
      #expect(try client.frames().isEmpty && client.channel.isActive)
      for number in 3000..<3129 { try client.send(client.head(2 * number + 1, "POST", path: "/auth/x", end: false)) }
      #expect(try resets(client.frames()) == [[6257, 7]])
    }
  }

  /// RFC 9113 section 5.1.2: a stream above the limit is refused, and the client may try it again.
  @Test func streamsAboveTheLimitAreRefused() async throws {
    try await onOneThread { client in
      var bytes: [UInt8] = []
      for number in 0..<150 { bytes += try client.head(2 * number + 1, "POST", path: "/auth/x", end: false) }
      // Attack: frames of a refused stream, of which one looks like a new request.
      bytes += EmbeddedStreams.data(299, Self.hidden) + (try client.head(299, path: "/hidden"))
      try client.send(bytes)
      let found = try client.frames()
      #expect(resets(found) == [[299, 1]] + (128..<149).map { [2 * $0 + 1, 7] })
      #expect(!found.contains { $0.type == 7 } && client.channel.isActive)
      #expect(try client.asked() == "")
    }
  }

  /// RFC 9113 section 5.4.1.
  @Test func errorsOfTheConnectionSayGoAwayFirst() async throws {
    for frame in [
      EmbeddedStreams.frame(0, stream: 0, [1]), EmbeddedStreams.frame(3, stream: 99, [0, 0, 0, 8]),
      EmbeddedStreams.frame(9, stream: 1, [0x82]), EmbeddedStreams.frame(8, stream: 0, [0, 0, 0, 0]),
    ] {
      try await onOneThread { client in
        try client.send(client.head(1, path: "/download"))
        _ = try client.asked()
        try client.send(frame + (try client.head(3, path: "/hidden")))
        let found = try client.frames()
        #expect(found.last?.type == 7 && found.last?.code != 0)
        #expect(try client.asked() == "" && !client.channel.isActive)
      }
    }
  }

  /// The library does not say GOAWAY again after that of a shutdown.
  @Test func errorsOfADrainingConnectionSayGoAwayToo() async throws {
    try await onOneThread { client in
      try client.send(client.head(1, path: "/download"))
      client.channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
      let ping = try #require(client.frames().first { $0.type == 6 })
      try client.send(EmbeddedStreams.frame(6, flags: 1, ping.payload))
      #expect(try client.frames().map(\.type) == [7])
      try client.send(EmbeddedStreams.frame(8, stream: 0, [0, 0, 0, 0]))
      let last = try client.frames().last
      #expect(last?.type == 7 && last?.code != 0 && !client.channel.isActive)
    }
  }

  /// Attack, or a race: while the gateway shuts down, a request that begins on the connection of a proxy, with a body
  /// or cancelled, ends the downloads of all users. RFC 9113 section 6.8.
  @Test(arguments: [true, false]) func lateRequestOfADrainingConnectionEndsNothing(isCancelled: Bool) async throws {
    try await onOneThread { client in
      try client.send(client.head(1, path: "/download"))
      try client.answer("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf")
      _ = try client.frames()
      client.channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
      let cancel = EmbeddedStreams.frame(3, stream: 3, [0, 0, 0, 8])
      let rest = isCancelled ? cancel : EmbeddedStreams.data(3, "x", end: true)
      try client.send(client.head(3, "POST", path: "/late", end: false) + rest)
      #expect(try resets(client.frames()) == [[3, 7]])
      try client.answer("rest")
      let found = try client.frames()
      #expect(found.contains { $0.type == 0 && $0.stream == 1 && $0.text == "rest" && $0.flags == 1 })
      #expect(!found.contains { $0.type == 7 && $0.code != 0 })
    }
  }

  /// Attack: a client takes nothing, and resets a stream whose head the library still holds. To the library, the head
  /// belongs to no stream then.
  @Test func headOfAResetStreamEndsNothing() async throws {
    try await onOneThread { client in
      try client.send(client.head(1, path: "/download"))
      client.channel.isWritable = false
      client.channel.pipeline.fireChannelWritabilityChanged()
      try client.answer("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf")
      client.channel.embeddedEventLoop.run()
      try client.send(EmbeddedStreams.frame(3, stream: 1, [0, 0, 0, 8]))
      client.channel.isWritable = true
      client.channel.pipeline.fireChannelWritabilityChanged()
      client.channel.embeddedEventLoop.run()
      #expect(client.channel.isActive)
      #expect(try !client.frames().contains { $0.type == 7 })
    }
  }

  /// RFC 9113 sections 5.3.2 and 6.3: priorities are ignored, and one of a wrong length is an error of its stream.
  @Test func prioritiesEndTheirStreamAtMost() async throws {
    try await onOneThread { client in
      try client.send(client.head(1, path: "/download"))
      let priority = EmbeddedStreams.frame(2, stream: 1, [0, 0, 0, 3, 1])
      for _ in 0..<1000 { try client.send(priority + EmbeddedStreams.frame(2, stream: 99, [0, 0, 0, 3, 1])) }
      try client.send(
        client.head(3, "POST", path: "/auth/x", end: false) + EmbeddedStreams.frame(2, stream: 3, [1, 2, 3, 4])
          + EmbeddedStreams.frame(2, stream: 7, []))
      // The parts of a frame arrive one by one.
      for byte in priority { try client.send([byte]) }
      try client.answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      let found = try client.frames()
      #expect(resets(found) == [[3, 6]] && !found.contains { $0.type == 7 })
      #expect(found.contains { $0.type == 0 && $0.stream == 1 && $0.flags == 1 } && client.channel.isActive)
    }
  }

  /// Attack: a frame within a header block, which other programs read in another way (RFC 9113 section 4.3).
  @Test(arguments: [0, 2, 4] as [UInt8]) func onlyContinuationFollowsAnOpenHead(type: UInt8) async throws {
    try await onOneThread { client in
      var head = try client.head(1, path: "/x")
      // END_STREAM without END_HEADERS.
      head[4] = 1
      let within =
        switch type {
        case 2: EmbeddedStreams.frame(2, stream: 1, [0, 0, 0, 3, 1])
        case 4: EmbeddedStreams.frame(4, flags: 1)
        default: EmbeddedStreams.frame(0, stream: 1, [0])
        }
      // The error may also reach the end of the pipeline.
      try? client.send(head + within + EmbeddedStreams.frame(9, flags: 4, stream: 1))
      let isEnded = try client.frames().contains { $0.type == 7 && $0.code != 0 }
      #expect(isEnded || !client.channel.isActive)
      #expect(try client.asked().isEmpty)
    }
  }

  /// What a service sent before its response broke waits for the client's window, and the reset waits for that.
  @Test func whatWasGoodGoesOutBeforeTheReset() async throws {
    for reads in [true, false] {
      try await onOneThread(of: [(4, 10)]) { client in
        try client.send(client.head(1, path: "/x"))
        try client.answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n14\r\n01234567890123456789\r\n")
        try client.answer("9z\r\n")
        var found = try client.frames()
        #expect(found.contains { $0.type == 0 && $0.text == "0123456789" } && resets(found).isEmpty)
        if reads {
          try client.send(EmbeddedStreams.frame(8, stream: 1, [0, 0, 0, 10]))
          found = try client.frames()
          #expect(found.first { $0.type == 0 }?.text == "0123456789" && resets(found) == [[1, 2]])
        } else {
          // Attack: a client that never opens its window.
          client.channel.embeddedEventLoop.advanceTime(by: .seconds(55))
          #expect(try resets(client.frames()).isEmpty)
          client.channel.embeddedEventLoop.advanceTime(by: .seconds(6))
          #expect(try resets(client.frames()) == [[1, 2]])
        }
      }
    }
  }

  /// Attack: a response head that is larger than a frame, which a long path can cause, ends the connection with all its
  /// streams. RFC 9113 section 6.10.
  @Test func largeHeadIsContinued() async throws {
    try await onOneThread { client in
      try client.send(client.head(1, path: "/large"))
      let value = String(repeating: "0a1B~^", count: 8000)
      try client.answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Large: \(value)\r\nX-Last: 1\r\n\r\nok")
      let found = try client.frames()
      #expect(found.first?.fields.contains("x-large=\(value)") ?? false)
      #expect(found.first?.fields.contains("x-last=1") ?? false)
      #expect(found.contains { $0.type == 0 && $0.text == "ok" } && client.lengths.allSatisfy { $0 <= 16_384 })
      // The state of the header compression is still right.
      try client.send(client.head(3, path: "/small"))
      try client.answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Last: 1\r\n\r\n")
      #expect(try client.frames().first?.fields.contains("x-last=1") ?? false)
    }
  }

  private func windows(_ frames: [Frame], of stream: Int) -> Int {
    frames.filter { $0.type == 8 && $0.stream == stream }.reduce(0) { $0 + $1.code }
  }

  /// Sends as much as the window allows, in frames.
  private func fill(_ client: EmbeddedStreams, _ window: inout Int) throws {
    let part = String(repeating: "x", count: 8192)
    while window > 0 {
      let count = min(window, part.utf8.count)
      try client.send(EmbeddedStreams.data(1, String(part.prefix(count))))
      window -= count
    }
  }

  /// Attack: uploads for a service that reads nothing. The gateway holds a window of each, so the window is small until
  /// the service has read.
  @Test func windowGrowsOnlyWhileTheUpstreamReads() async throws {
    try await onOneThread { client in
      var window = 65_536
      try client.send(client.head(1, "POST", path: "/upload", end: false))
      _ = try client.asked()
      client.upstream?.isWritable = false
      client.upstream?.pipeline.fireChannelWritabilityChanged()
      try fill(client, &window)
      #expect(try windows(client.frames(), of: 1) == 0)
      client.upstream?.isWritable = true
      client.upstream?.pipeline.fireChannelWritabilityChanged()
      client.channel.embeddedEventLoop.run()
      window = try windows(client.frames(), of: 1)
      #expect(window == 131_072)
      for _ in 0..<20 {
        try fill(client, &window)
        window = try windows(client.frames(), of: 1)
      }
      #expect(window >= 524_288 && window <= 1_048_576)
      // It stands still with the upstream.
      client.upstream?.isWritable = false
      client.upstream?.pipeline.fireChannelWritabilityChanged()
      try fill(client, &window)
      let last = try windows(client.frames(), of: 1)
      #expect(last <= 1_048_576 / 2)
    }
  }

  /// Attack: the windows of many streams grow, and then the services read nothing.
  @Test func windowsOfAllStreamsGrowByFourMebibytes() async throws {
    try await onOneThread { client in
      let half = String(repeating: "x", count: 16_384)
      let ids = (0..<128).map { 2 * $0 + 1 }
      for id in ids {
        let body = EmbeddedStreams.data(id, half) + EmbeddedStreams.data(id, half)
        try client.send(client.head(id, "POST", path: "/auth/x", end: false) + body)
      }
      let found = try client.frames()
      let grown = ids.map { windows(found, of: $0) }
      #expect(grown.filter { $0 == 98_304 }.count == 64 && grown.filter { $0 == 32_768 }.count == 64)
      // Ended streams give theirs back.
      try client.send(EmbeddedStreams.frame(3, stream: 1, [0, 0, 0, 8]))
      let body = EmbeddedStreams.data(257, half) + EmbeddedStreams.data(257, half)
      try client.send(client.head(257, "POST", path: "/auth/x", end: false) + body)
      #expect(try windows(client.frames(), of: 257) == 98_304)
    }
  }
}
