import Foundation
import MoongateCore
import MoongateTesting
import NIOCore
import NIOEmbedded
import NIOHPACK
import Testing

@testable import MoongateProxy

/// Clients of HTTP/1.1 and HTTP/2 with an upstream of HTTP/2.
@Suite struct HTTP2UpstreamTests {
  private typealias Bytes = EmbeddedStreams

  private func withGateway(_ route: Route, _ body: (TestGateway) throws -> Void) async throws {
    let gateway = try await TestGateway(routes: [route])
    try body(gateway)
    await gateway.stop()
  }

  /// A client of HTTP/1.1, and the connection that its first requests use.
  private func withClient(
    _ route: Route = .test(ports: [1], open: true, http2: true),
    _ body: (TestGateway, EmbeddedExchange, EmbeddedUpstream) throws -> Void
  ) async throws {
    try await withGateway(route) { gateway in
      let client = try EmbeddedExchange(gateway)
      let upstream = try upstream(gateway, client.client)
      // Without a request, nothing connects again.
      defer {
        client.end()
        upstream.end()
      }
      try body(gateway, client, upstream)
    }
  }

  /// A client of HTTP/2.
  private func withStreams(
    _ route: Route = .test(ports: [1], open: true, http2: true),
    _ body: (TestGateway, EmbeddedStreams, EmbeddedUpstream) throws -> Void
  ) async throws {
    try await withGateway(route) { gateway in
      let client = try EmbeddedStreams(gateway)
      let upstream = try upstream(gateway, client.channel)
      defer {
        client.end()
        upstream.end()
      }
      _ = try client.frames()
      try body(gateway, client, upstream)
    }
  }

  /// Another connection to the upstream of the gateway's only route.
  private func upstream(_ gateway: TestGateway, _ client: EmbeddedChannel) throws -> EmbeddedUpstream {
    let target = gateway.proxy.loop(for: client.eventLoop).currentPlan().routes[0].targets[0]
    let upstream = try EmbeddedUpstream(of: target, on: EmbeddedChannel(handlers: [], loop: client.embeddedEventLoop))
    _ = try upstream.frames()
    return upstream
  }

  private func told(_ gateway: TestGateway) -> String {
    gateway.log.lines.filter { $0.contains("an upstream failed") }.joined()
  }

  private let get = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n"
  private let post = "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
  private let call = [("content-type", "application/grpc+proto"), ("te", "trailers")]

  // MARK: HTTP/1.1

  @Test func aRequestAndItsResponsePass() async throws {
    try await withClient { gateway, client, upstream in
      try client.send("GET /a?b HTTP/1.1\r\nHost: h\r\nRemote-User: root\r\nX-Own: 1\r\nConnection: X-Own\r\n\r\n")
      let asked = try upstream.asked().joined()
      #expect(asked.hasPrefix("1 :method=GET :scheme=http :path=/a?b :authority=h "))
      #expect(asked.hasSuffix(" x-forwarded-for=192.0.2.1 x-forwarded-proto=http x-forwarded-host=h end"))
      #expect(!asked.contains("root") && !asked.contains("x-own") && !asked.contains("te="))
      try upstream.answer(
        upstream.head(1, "200", [("content-length", "2"), ("x-a", "b")]) + Bytes.data(1, "ok", end: true))
      let got = try client.got()
      #expect(got.hasPrefix("HTTP/1.1 200 \r\nx-a: b\r\n") && got.hasSuffix("Content-Length: 2\r\n\r\nok"))
      // The next request of the client has the next stream.
      try client.send(get)
      #expect(try upstream.asked().joined().hasPrefix("3 :method=GET ") && told(gateway).isEmpty)
    }
  }

  @Test func aBodyOfUnknownLengthHasNoChunks() async throws {
    try await withClient { _, client, upstream in
      try client.send(post + "3\r\nabc\r\n")
      #expect(try upstream.asked().last == "1 'abc'")
      try client.send("1\r\nd\r\n0\r\n\r\n")
      #expect(try upstream.asked() == ["1 'd' end"])
      try upstream.answer(upstream.head(1, "200") + Bytes.data(1, "ef"))
      #expect(try client.got().hasSuffix("Transfer-Encoding: chunked\r\n\r\n2\r\nef\r\n"))
      try upstream.answer(Bytes.data(1, "", end: true))
      #expect(try client.got() == "0\r\n\r\n")
    }
  }

  @Test(arguments: [
    ("TE: trailers\r\n", true), ("TE: deflate;q=0.5, Trailers\r\n", true), ("TE: trailersx\r\n", false), ("", false),
  ]) func trailersPassToClientsThatAcceptThem(_ field: String, _ pass: Bool) async throws {
    try await withClient { _, client, upstream in
      try client.send("GET /x HTTP/1.1\r\nHost: h\r\n\(field)\r\n")
      #expect(try upstream.asked().joined().contains(" te=trailers ") == pass)
      let trailers = [("x-sum", "1"), ("set-cookie", "moongate=x"), ("remote-user", "root"), ("host", "h")]
      try upstream.answer(
        upstream.head(1, "200", [("trailer", "x-sum")]) + Bytes.data(1, "a")
          + upstream.head(1, nil, trailers, end: true))
      let got = try client.got()
      #expect(got.contains("trailer: x-sum\r\n") == pass)
      #expect(got.hasSuffix("\r\n\r\n1\r\na\r\n0\r\n" + (pass ? "x-sum: 1\r\n\r\n" : "\r\n")))
    }
  }

  @Test func aClientOfHTTP10GetsNoTrailers() async throws {
    try await withClient { _, client, upstream in
      try client.send("GET /x HTTP/1.0\r\nHost: h\r\nTE: trailers\r\n\r\n")
      _ = try upstream.asked()
      try upstream.answer(upstream.head(1) + Bytes.data(1, "a") + upstream.head(1, nil, [("x-sum", "1")], end: true))
      #expect(try client.got().hasSuffix("\r\n\r\na"))
    }
  }

  /// Attack: trailers that a lenient service merges into the fields of the request (CVE-2013-5704).
  @Test func trailersOfClientsCannotSetWhatServicesTrust() async throws {
    let route = Route.test(ports: [1], open: true, headers: [("X-Tenant", "demo")], http2: true)
    try await withClient(route) { _, client, upstream in
      let forged = [
        "Remote-User", "remote_user", "X-Forwarded-For", "X_Tenant", "Cookie", "Authorization", "Host", "TE",
      ]
      let lines = forged.map { "\($0): mallory\r\n" }.joined()
      try client.send(post + "1\r\na\r\n0\r\n\(lines)X-Sum: 1\r\n\r\n")
      let asked = try upstream.asked()
      #expect(asked.suffix(2) == ["1 'a'", "1 x-sum=1 end"] && !asked.joined().contains("mallory"))
    }
  }

  @Test func anUpstreamOfHTTP11GetsNoTrailers() async throws {
    try await withGateway(.test(ports: [1], open: true)) { gateway in
      let client = try EmbeddedExchange(gateway)
      defer { client.end() }
      try client.send(post + "1\r\na\r\n0\r\nX-Sum: 1\r\n\r\n")
      let asked = try client.asked()
      #expect(asked.hasSuffix("\r\n\r\n1\r\na\r\n0\r\n\r\n"))
    }
  }

  /// Other protocols are spoken on a connection of HTTP/1.1 to the same upstream.
  @Test func anUpgradeGoesByHTTP11() async throws {
    try await withClient(.test(ports: [1], open: true, upgrade: true, http2: true)) { _, client, upstream in
      try client.send("GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
      #expect(try upstream.asked().isEmpty)
      #expect(try client.asked().hasPrefix("GET /ws HTTP/1.1\r\n"))
      try client.answer("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhi")
      #expect(try client.got().hasSuffix("\r\n\r\nhi"))
    }
  }

  // MARK: failures

  /// Any request may be repeated that the upstream says it has not handled, with the body as far as it was sent.
  @Test(arguments: ["goaway", "refused"]) func whatWasNotHandledIsRepeated(_ kind: String) async throws {
    for request in [get, "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", post, post + "1\r\na\r\n"] {
      try await withClient { gateway, client, first in
        let second = try upstream(gateway, client.client)
        try client.send(request)
        let sent = try first.asked()
        try first.answer(
          kind == "goaway" ? EmbeddedUpstream.goAway(last: 0, 0) : EmbeddedUpstream.code(3, stream: 1, 7))
        let used = kind == "goaway" ? second : first
        let id = kind == "goaway" ? 1 : 3
        let again = try used.asked().map { "1" + $0.dropFirst() }
        #expect(again == sent, "\(request)")
        if request.hasPrefix(post) {
          try client.send("1\r\nb\r\n0\r\nX-Sum: 1\r\n\r\n")
          #expect(try used.asked() == ["\(id) 'b'", "\(id) x-sum=1 end"])
        }
        try used.answer(used.head(id, "204", end: true))
        #expect(try client.got().hasPrefix("HTTP/1.1 204 ") && told(gateway).isEmpty)
        second.end()
      }
    }
  }

  /// A request whose body has been sent to its end, and its trailers.
  @Test func aWholeBodyIsSentAgain() async throws {
    try await withClient { gateway, client, upstream in
      try client.send(post + "3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n")
      #expect(try upstream.asked().suffix(2) == ["1 'abc'", "1 x-sum=1 end"])
      try upstream.answer(EmbeddedUpstream.code(3, stream: 1, 7))
      #expect(try upstream.asked().suffix(2) == ["3 'abc'", "3 x-sum=1 end"])
      try upstream.answer(upstream.head(3, "204", end: true))
      #expect(try client.got().hasPrefix("HTTP/1.1 204 "))
    }
  }

  /// Attack, or a broken service: refusals without end.
  @Test func aRequestIsNotRepeatedForEver() async throws {
    try await withClient { gateway, client, upstream in
      try client.send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\na")
      var asked = 0
      while let head = try upstream.asked().first(where: { $0.contains(":method") }), asked < 20 {
        asked += 1
        let id = Int(head.prefix { $0 != " " }) ?? 0
        try upstream.answer(EmbeddedUpstream.code(3, stream: id, 7))
      }
      #expect(try asked == 5 && client.got().hasPrefix("HTTP/1.1 502 "))
      #expect(told(gateway).contains("REFUSED_STREAM"))
    }
  }

  /// A body that is not kept, and an upstream that does not say that it has not handled the request.
  @Test(arguments: [(70_000, 7), (1, 2)]) func whatMayHaveBeenHandledIsNot(_ length: Int, _ code: UInt8) async throws {
    try await withClient { gateway, client, upstream in
      let body = String(repeating: "x", count: length)
      try client.send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: \(length)\r\n\r\n\(body)")
      _ = try upstream.asked()
      try upstream.answer(EmbeddedUpstream.code(3, stream: 1, code))
      #expect(try client.got().hasPrefix("HTTP/1.1 502 "))
      #expect(try upstream.asked().allSatisfy { !$0.contains(":method") })
      #expect(told(gateway).contains(code == 7 ? "REFUSED_STREAM" : "INTERNAL_ERROR"))
      #expect(told(gateway).contains("h2c://127.0.0.1:1"))
    }
  }

  @Test(arguments: [
    ("reset", "it reset the stream: INTERNAL_ERROR"), ("malformed", "a malformed head"),
    ("length", "the body is longer than its Content-Length"),
  ]) func aResponseThatCannotBeReadIs502(_ kind: String, _ reason: String) async throws {
    try await withClient { gateway, client, upstream in
      try client.send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\na")
      _ = try upstream.asked()
      switch kind {
      case "reset": try upstream.answer(EmbeddedUpstream.code(3, stream: 1, 2))
      case "malformed": try upstream.answer(upstream.head(1, "200", [("x", "a\r\nb: c")], end: true))
      default: try upstream.answer(upstream.head(1, "200", [("content-length", "1")]) + Bytes.data(1, "ab"))
      }
      let got = try client.got()
      #expect(got.hasPrefix("HTTP/1.1 502 ") && got.components(separatedBy: "HTTP/1.1").count == 2)
      #expect(told(gateway).contains(reason) && told(gateway).contains("h2c://127.0.0.1:1"), "\(told(gateway))")
      #expect(upstream.channel.isActive)
    }
  }

  /// Attack, or accident: a cut response that looks complete.
  @Test func aResponseThatIsCutLooksCut() async throws {
    try await withClient { gateway, client, upstream in
      try client.send(get)
      _ = try upstream.asked()
      try upstream.answer(upstream.head(1) + Bytes.data(1, "half"))
      #expect(try client.got().hasSuffix("4\r\nhalf\r\n"))
      try upstream.answer(EmbeddedUpstream.code(3, stream: 1, 0))
      #expect(try client.got() == "")
      client.pass(.seconds(3))
      #expect(!client.client.isActive && told(gateway).contains("NO_ERROR"))
    }
  }

  @Test func silenceEndsTheRequestAndNotTheConnection() async throws {
    try await withClient(.test(ports: [1], open: true, timeout: .seconds(5), http2: true)) {
      gateway, client, upstream in
      try client.send(get)
      client.pass(.milliseconds(5200))
      #expect(try client.got().hasPrefix("HTTP/1.1 504 ") && told(gateway).contains("does not respond in time"))
      let frames = try upstream.frames()
      #expect(frames.contains { $0.type == 3 && $0.code == 8 } && frames.contains { $0.type == 6 })
      #expect(upstream.channel.isActive)
    }
  }

  // MARK: HTTP/2 and gRPC

  @Test func aUnaryCallPassesWithItsTrailers() async throws {
    try await withStreams { _, client, upstream in
      try client.send(client.head(1, "POST", path: "/a.B/C", call, end: false) + Bytes.data(1, "ask", end: true))
      let asked = try upstream.asked()
      #expect(asked[0].hasPrefix("1 :method=POST :scheme=http :path=/a.B/C :authority=h "))
      #expect(asked[0].contains(" content-type=application/grpc+proto ") && asked[0].contains(" te=trailers"))
      #expect(asked.dropFirst() == ["1 'ask' end"])
      try upstream.answer(
        upstream.head(1, "200", [("content-type", "application/grpc")]) + Bytes.data(1, "answer")
          + upstream.head(1, nil, [("grpc-status", "0"), ("x-bin", "AAE=")], end: true))
      let frames = try client.frames().filter { $0.stream == 1 && $0.type != 8 }
      #expect(frames.map(\.type) == [1, 0, 1] && frames.map { $0.flags & 1 } == [0, 0, 1])
      #expect(frames[0].fields.first == ":status=200" && frames[0].fields.contains("content-type=application/grpc"))
      #expect(frames[1].text == "answer" && frames[2].fields == ["grpc-status=0", "x-bin=AAE="])
    }
  }

  @Test func aBodyOfKnownLengthHasTrailersToo() async throws {
    try await withStreams { _, client, upstream in
      try client.send(client.head(1, path: "/x"))
      _ = try upstream.asked()
      try upstream.answer(
        upstream.head(1, "200", [("content-length", "2")]) + Bytes.data(1, "ok")
          + upstream.head(1, nil, [("x-sum", "1"), ("remote-user", "root")], end: true))
      let frames = try client.frames().filter { $0.stream == 1 && $0.type != 8 }
      #expect(frames.map(\.type) == [1, 0, 1] && frames.map { $0.flags & 1 } == [0, 0, 1])
      #expect(frames[0].fields.contains("content-length=2") && frames[2].fields == ["x-sum=1"])
      // To a client of HTTP/1.1, such a body has none.
    }
    try await withClient { _, client, upstream in
      try client.send("GET /x HTTP/1.1\r\nHost: h\r\nTE: trailers\r\n\r\n")
      _ = try upstream.asked()
      try upstream.answer(
        upstream.head(1, "200", [("content-length", "2")]) + Bytes.data(1, "ok")
          + upstream.head(1, nil, [("x-sum", "1")], end: true))
      #expect(try client.got().hasSuffix("Content-Length: 2\r\n\r\nok"))
    }
  }

  /// "Trailers-Only" of gRPC: clients accept the status only with the end of the stream.
  @Test func aCallThatFailsAtOnceIsOneFrame() async throws {
    try await withStreams { _, client, upstream in
      try client.send(client.head(1, "POST", path: "/a.B/C", call, end: false) + Bytes.data(1, "ask", end: true))
      _ = try upstream.asked()
      try upstream.answer(
        upstream.head(1, "200", [("content-type", "application/grpc"), ("grpc-status", "12")], end: true))
      let frames = try client.frames().filter { $0.stream == 1 && $0.type != 8 }
      #expect(frames.map(\.type) == [1] && frames[0].flags & 1 == 1 && frames[0].fields.contains("grpc-status=12"))
    }
  }

  @Test func messagesPassBothWaysAsTheyCome() async throws {
    try await withStreams { _, client, upstream in
      try client.send(client.head(1, "POST", path: "/a.B/C", call, end: false))
      _ = try upstream.asked()
      try upstream.answer(upstream.head(1, "200", [("content-type", "application/grpc")]))
      #expect(try client.frames().contains { $0.type == 1 && $0.flags & 1 == 0 })
      for number in 1...3 {
        try client.send(Bytes.data(1, "ask \(number)"))
        #expect(try upstream.asked() == ["1 'ask \(number)'"])
        try upstream.answer(Bytes.data(1, "answer \(number)"))
        #expect(try client.frames().filter { $0.type == 0 }.map(\.text) == ["answer \(number)"])
      }
      try client.send(Bytes.data(1, "", end: true))
      #expect(try upstream.asked() == ["1 '' end"])
      try upstream.answer(upstream.head(1, nil, [("grpc-status", "0")], end: true))
      #expect(try client.frames().last?.fields == ["grpc-status=0"])
    }
  }

  @Test func aCallThatTheServiceEndsFirstIsComplete() async throws {
    try await withStreams { _, client, upstream in
      try client.send(client.head(1, "POST", path: "/a.B/C", call, end: false) + Bytes.data(1, "ask"))
      _ = try upstream.asked()
      try upstream.answer(
        upstream.head(1, "200", [("content-type", "application/grpc"), ("grpc-status", "8")], end: true))
      let frames = try client.frames().filter { $0.stream == 1 }
      #expect(frames.contains { $0.type == 1 && $0.flags & 1 == 1 })
      #expect(frames.filter { $0.type == 3 }.map(\.code) == [0])
      #expect(try upstream.asked() == ["1 reset 0"])
    }
  }

  @Test func aCancelledCallIsCancelledThere() async throws {
    try await withStreams { _, client, upstream in
      try client.send(client.head(1, "POST", path: "/a.B/C", call, end: false))
      _ = try upstream.asked()
      try client.send(EmbeddedUpstream.code(3, stream: 1, 8))
      #expect(try upstream.asked() == ["1 reset 8"] && upstream.connection.hasRoom(forBody: true))
    }
  }

  @Test func trailersOfAServiceOfHTTP11PassToo() async throws {
    try await withStreams(.test(ports: [1], open: true)) { _, client, _ in
      try client.send(client.head(1, path: "/x"))
      #expect(try client.asked().hasPrefix("GET /x HTTP/1.1\r\n"))
      try client.answer(
        "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 1\r\nSet-Cookie: a=b\r\n\r\n"
      )
      let frames = try client.frames().filter { $0.stream == 1 }
      #expect(frames.map(\.type) == [1, 0, 1] && frames[0].fields.contains("trailer=X-Sum"))
      #expect(frames[2].fields == ["x-sum=1"] && frames[2].flags & 1 == 1)
    }
  }

  /// A field that `response_headers` sets or removes, in the trailers.
  @Test func trailersCannotSetWhatTheRouteSets() async throws {
    var route = Route.test(ports: [1], open: true, http2: true)
    route.responseHeaders = [("Server", nil), ("X-Frame-Options", "DENY")]
    try await withStreams(route) { _, client, upstream in
      try client.send(client.head(1, path: "/x"))
      _ = try upstream.asked()
      let trailers = [("server", "secret/1"), ("x-frame-options", "x"), ("x-sum", "1")]
      try upstream.answer(upstream.head(1) + upstream.head(1, nil, trailers, end: true))
      let frames = try client.frames().filter { $0.stream == 1 }
      #expect(frames.last?.fields == ["x-sum=1"], "\(frames)")
    }
  }

  // MARK: time

  private func pass(_ time: TimeAmount, _ client: EmbeddedStreams) {
    client.channel.embeddedEventLoop.advanceTime(by: time)
  }

  @Test func messagesOfACallMayTakeAnyTime() async throws {
    let route = Route.test(ports: [1], open: true, timeout: .seconds(5), bodyRate: .standard, http2: true)
    try await withStreams(route) { gateway, client, upstream in
      try client.send(client.head(1, "POST", path: "/a.B/C", call, end: false) + Bytes.data(1, "ask"))
      _ = try upstream.asked()
      try upstream.answer(upstream.head(1, "200", [("content-type", "application/grpc")]))
      _ = try client.frames()
      for _ in 0..<30 {
        pass(.seconds(50), client)
        // The client answers the PING that finds out whether it is there.
        for ping in try client.frames() where ping.type == 6 {
          try client.send(EmbeddedStreams.frame(6, flags: 1, ping.payload))
        }
      }
      try client.send(Bytes.data(1, "more"))
      #expect(try upstream.asked() == ["1 'more'"] && told(gateway).isEmpty)
      try upstream.answer(Bytes.data(1, "answer") + upstream.head(1, nil, [("grpc-status", "0")], end: true))
      let frames = try client.frames().filter { $0.stream == 1 && $0.type == 1 }
      #expect(frames.last?.fields == ["grpc-status=0"], "\(frames)")
    }
  }

  /// Attack: an upload that names itself a call, and that neither side goes on with.
  @Test func aCallMustBeginInTime() async throws {
    let route = Route.test(ports: [1], open: true, timeout: .seconds(70), bodyRate: .standard, http2: true)
    try await withStreams(route) { _, client, upstream in
      try client.send(client.head(1, "POST", path: "/a.B/C", call, end: false) + Bytes.data(1, "ask"))
      _ = try upstream.asked()
      _ = try client.frames()
      pass(.seconds(55), client)
      #expect(try upstream.asked().isEmpty)
      for ping in try client.frames() where ping.type == 6 {
        try client.send(EmbeddedStreams.frame(6, flags: 1, ping.payload))
      }
      pass(.seconds(16), client)
      #expect(try client.frames().contains { $0.type == 1 && $0.fields.first == ":status=408" })
      #expect(try upstream.asked().first == "1 reset 8")
    }
  }

  /// `body_rate` of the route holds for calls, and the usual one for everything else.
  @Test(arguments: [true, false]) func anUploadMustNotBeSlow(_ isCall: Bool) async throws {
    let rate = isCall ? BodyRate(bytes: 512, window: .seconds(10)) : BodyRate.standard
    let route = Route.test(ports: [1], open: true, bodyRate: rate, http2: true)
    try await withStreams(route) { _, client, upstream in
      try client.send(client.head(1, "POST", path: "/x", isCall ? call : [], end: false) + Bytes.data(1, "slow"))
      _ = try upstream.asked()
      pass(.seconds(11), client)
      #expect(try upstream.asked() == ["1 reset 8"])
    }
  }
}
