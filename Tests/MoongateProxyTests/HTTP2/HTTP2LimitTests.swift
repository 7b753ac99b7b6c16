import MoongateCore
import MoongateTesting
import NIOCore
import NIOEmbedded
import Testing

@testable import MoongateProxy

/// The limits of what costs a client less than the gateway. They end no request of others: a proxy in front sends the
/// requests of all its users on one connection.
@Suite struct HTTP2LimitTests {
  private static let download = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf"

  /// Calls the closure with a client that downloads on stream 1.
  private func downloading(trusted: Bool = false, _ body: (TestGateway, EmbeddedStreams) throws -> Void) async throws {
    var settings = GatewaySettings.test()
    if trusted { settings.trustedProxies = [AddressBlock(network: [192, 0, 2, 1], prefix: 32)] }
    let gateway = try await TestGateway(routes: [.test(ports: [1], open: true)], settings: settings)
    try onOneThread(gateway, body)
    await gateway.stop()
  }

  private func onOneThread(_ gateway: TestGateway, _ body: (TestGateway, EmbeddedStreams) throws -> Void) throws {
    let client = try EmbeddedStreams(gateway)
    defer { client.end() }
    try client.send(client.head(1, path: "/download"))
    try client.answer(Self.download)
    _ = try client.frames()
    _ = try client.asked()
    try body(gateway, client)
  }

  /// Opens streams for the gateway's own paths and resets them.
  private func cancel(_ client: EmbeddedStreams, _ ids: StrideTo<Int>) throws {
    for id in ids {
      try client.send(client.head(id, "POST", path: "/auth/x", end: false) + reset(id))
    }
  }

  private func reset(_ id: Int) -> [UInt8] {
    EmbeddedStreams.frame(3, stream: id, [0, 0, 0, 8])
  }

  /// The last stream and the code of a GOAWAY frame.
  private func goAway(_ frames: [EmbeddedStreams.Frame]) -> [[Int]] {
    frames.filter { $0.type == 7 }.map { [$0.payload.prefix(4).reduce(0) { $0 << 8 | Int($1) }, $0.code] }
  }

  /// The download goes on to its end, no stream is begun, and the connection closes then.
  private func expectOnlyTheDownload(_ client: EmbeddedStreams, last: Int) throws {
    #expect(try goAway(client.frames()) == [[last, 11]])
    // The client does not know yet.
    try client.send(
      client.head(9001, "POST", path: "/late", end: false) + EmbeddedStreams.data(9001, "GET /hidden HTTP/1.1")
        + EmbeddedStreams.frame(8, stream: 9001, [0, 0, 0, 1]) + reset(9001) + client.head(9003, path: "/later")
        + reset(9003))
    try client.answer("rest")
    let found = try client.frames()
    #expect(found.filter { $0.type == 8 }.map { [$0.stream, $0.code] } == [[0, 20]], "its window of the connection")
    #expect(found.contains { $0.type == 0 && $0.stream == 1 && $0.text == "rest" && $0.flags == 1 })
    #expect(!found.contains { $0.stream > 9000 || $0.type == 7 })
    #expect(try client.asked() == "" && client.channel.isActive)
    client.channel.embeddedEventLoop.advanceTime(by: .seconds(12))
    #expect(!client.channel.isActive)
  }

  /// Attack: CVE-2023-44487, alone and behind a proxy: what it cancels must not cut the downloads of others.
  @Test func resetsEndNoOtherStream() async throws {
    try await downloading { gateway, client in
      try cancel(client, stride(from: 3, to: 403, by: 2))
      #expect(try goAway(client.frames()).isEmpty)
      // A stream that comes with the reset above the limit, in one read.
      try client.send(
        client.head(403, "POST", path: "/auth/x", end: false) + reset(403) + client.head(405, path: "/same-read"))
      try expectOnlyTheDownload(client, last: 403)
      let lines = gateway.log.lines.filter { $0.contains("takes no more requests") }
      #expect(lines.count == 1 && lines[0].contains("192.0.2.1") && lines[0].contains("reset too many streams"))
    }
  }

  /// Attack: CVE-2025-8671. The client breaks a rule on each stream, so that the gateway itself resets it.
  @Test(arguments: ["trailers", "head", "length", "window"]) func errorsEndNoOtherStream(kind: String) async throws {
    try await downloading { gateway, client in
      for id in stride(from: 3, to: 405, by: 2) {
        let field = kind == "head" ? [("x", " a")] : kind == "length" ? [("content-length", "1")] : []
        var frames = try client.head(id, "POST", path: "/auth/x", field, end: false)
        switch kind {
        case "trailers": frames += try client.trailers(id, " a")
        case "length": frames += EmbeddedStreams.data(id, "two", end: true)
        case "window": frames += EmbeddedStreams.frame(8, stream: id, [0, 0, 0, 0])
        default: break
        }
        try client.send(frames)
      }
      try expectOnlyTheDownload(client, last: 403)
      #expect(gateway.log.lines.contains { $0.contains("too many malformed requests or frames") })
    }
  }

  /// Attack: frames that the gateway has to answer.
  @Test func controlFramesEndNoOtherStream() async throws {
    for frame in [EmbeddedStreams.frame(6, Array(repeating: 1, count: 8)), EmbeddedStreams.settings([])] {
      try await downloading { _, client in
        for _ in 0..<201 { try client.send(frame) }
        try expectOnlyTheDownload(client, last: 1)
      }
    }
  }

  /// Attack: the client continues after GOAWAY.
  @Test func secondTimeEndsTheConnection() async throws {
    try await downloading { _, client in
      try cancel(client, stride(from: 3, to: 405, by: 2))
      let ping = EmbeddedStreams.frame(6, Array(repeating: 1, count: 8))
      for _ in 0..<200 { try client.send(ping) }
      #expect(client.channel.isActive)
      try client.send(ping)
      #expect(try goAway(client.frames()).last?.last == 11 && !client.channel.isActive)
    }
  }

  @Test func fewInHalfAMinuteAreNoFault() async throws {
    try await downloading { _, client in
      for round in 0..<3 {
        let first = 3 + 300 * round
        try cancel(client, stride(from: first, to: first + 300, by: 2))
        client.channel.embeddedEventLoop.advanceTime(by: .seconds(30))
      }
      #expect(try goAway(client.frames()).isEmpty && client.channel.isActive)
    }
  }

  /// A proxy in `trusted_proxies` cancels for all of its users. There is a limit even so.
  @Test func trustedProxyHasALargerLimit() async throws {
    try await downloading(trusted: true) { _, client in
      try cancel(client, stride(from: 3, to: 803, by: 2))
      #expect(try goAway(client.frames()).isEmpty && client.channel.isActive)
      let pings = Array(repeatElement(EmbeddedStreams.frame(6, Array(repeating: 1, count: 8)), count: 100).joined())
      for _ in 0..<199 { try client.send(pings) }
      #expect(try goAway(client.frames()).isEmpty)
      try client.send(pings)
      try expectOnlyTheDownload(client, last: 801)
    }
  }

  @Test func shutdownAfterGoAwayEndsNothing() async throws {
    try await downloading { _, client in
      try client.send(client.head(3, "POST", path: "/auth/x", end: false))
      try cancel(client, stride(from: 5, to: 407, by: 2))
      client.channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
      // An error of one stream is none of the connection.
      try client.send(EmbeddedStreams.frame(8, stream: 3, [0, 0, 0, 0]))
      try expectOnlyTheDownload(client, last: 405)
    }
  }
}
