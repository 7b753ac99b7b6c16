import MoongateCore
import MoongateTesting
import NIOCore
import NIOEmbedded
import Testing

@testable import MoongateProxy

/// Connections to a listener with `proxy_protocol`, on an event loop whose clock the test controls.
///
/// The trusted proxy is 192.0.2.1; 192.0.2.9 is another one.
@Suite(.timeLimit(.minutes(2))) struct ProxyProtocolTests {
  private static let text = Array("PROXY TCP4 203.0.113.7 10.0.0.3 56324 443\r\n".utf8)
  private static let binary = ProxyHeaders.binary(0x11, ProxyHeaders.v4([203, 0, 113, 7]) + ProxyHeaders.extensions)
  private static let request = ask()

  private static func ask(_ fields: String = "") -> [UInt8] {
    Array("GET /x HTTP/1.1\r\nHost: h\r\n\(fields)\r\n".utf8)
  }

  private func gateway(
    takes: Bool = true, limits: ConnectionLimits = ConnectionLimits(connections: 100)
  ) async throws -> TestGateway {
    var settings = GatewaySettings.test()
    settings.trustedProxies = ["192.0.2.1/32", "192.0.2.9/32"].compactMap(AddressBlock.init)
    settings.takesProxyProtocol = takes
    settings.connectionLimits = limits
    return try await TestGateway(routes: [.test(ports: [1], open: true)], settings: settings)
  }

  /// Without an `await`, which could change the thread.
  private func onOneThread(
    _ gateway: TestGateway, from address: String = "192.0.2.1", _ body: (EmbeddedExchange) throws -> Void
  ) throws {
    let exchange = try EmbeddedExchange(gateway, from: address)
    defer { exchange.end() }
    try body(exchange)
  }

  private func told(_ gateway: TestGateway) -> [String] {
    gateway.log.lines.filter { $0.contains("because of the PROXY protocol") }
  }

  // MARK: headers of a trusted proxy

  @Test(arguments: [text, binary]) func statedClientIsTheClientOfTheRequest(_ header: [UInt8]) async throws {
    let gateway = try await gateway()
    try onOneThread(gateway) { exchange in
      try exchange.send(header + Self.request)
      let asked = try exchange.asked()
      #expect(
        asked.hasPrefix("GET /x HTTP/1.1\r\n") && asked.contains("\r\nX-Forwarded-For: 203.0.113.7\r\n"), "\(asked)")
      try exchange.answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      #expect(try exchange.got().hasPrefix("HTTP/1.1 200 OK\r\n"))
      // The second request of the connection.
      try exchange.send(Self.request)
      #expect(try exchange.asked().contains("\r\nX-Forwarded-For: 203.0.113.7\r\n"))
    }
    #expect(told(gateway) == [])
    await gateway.stop()
  }

  @Test(arguments: [text, binary]) func headerMayComeInAnyPieces(_ header: [UInt8]) async throws {
    let gateway = try await gateway()
    let whole = header + Self.request
    for size in [1, 2, 7, header.count, header.count + 1] {
      try onOneThread(gateway) { exchange in
        for start in stride(from: 0, to: whole.count, by: size) {
          try exchange.send(Array(whole[start..<min(start + size, whole.count)]))
        }
        let asked = try exchange.asked()
        #expect(asked.hasPrefix("GET /x ") && asked.contains("\r\nX-Forwarded-For: 203.0.113.7\r\n"), "\(size)")
      }
    }
    await gateway.stop()
  }

  /// Health checks of the proxy, and clients without an IP address.
  @Test(arguments: [
    ProxyHeaders.binary(0x00, [], command: 0x20),
    ProxyHeaders.binary(0x11, ProxyHeaders.v4([203, 0, 113, 7]), command: 0x20),
    ProxyHeaders.binary(0x00, []), ProxyHeaders.binary(0x31, ProxyHeaders.unix),
    Array("PROXY UNKNOWN\r\n".utf8), Array("PROXY UNKNOWN 203.0.113.7 10.0.0.3 1 2\r\n".utf8),
    Array("PROXY TCP4 0.0.0.0 0.0.0.0 0 0\r\n".utf8),
  ]) func headerWithoutAClientKeepsThePeer(_ header: [UInt8]) async throws {
    let gateway = try await gateway()
    try onOneThread(gateway) { exchange in
      // Attack: the client of a Unix socket writes the header that the proxy, which passes bytes on, cannot check.
      try exchange.send(header + Self.ask("X-Forwarded-For: 203.0.113.8\r\n"))
      #expect(try exchange.asked().contains("\r\nX-Forwarded-For: 192.0.2.1\r\n"))
    }
    await gateway.stop()
  }

  /// Attack: a client writes the header that the gateway believes the proxy about.
  @Test(arguments: [("203.0.113.7", "203.0.113.7", "http"), ("192.0.2.9", "203.0.113.8", "https")])
  func forwardingHeadersCountIfTheStatedClientIsAProxy(
    _ stated: String, _ client: String, _ scheme: String
  ) async throws {
    let gateway = try await gateway()
    try onOneThread(gateway) { exchange in
      let header = Array("PROXY TCP4 \(stated) 10.0.0.3 1 2\r\n".utf8)
      try exchange.send(header + Self.ask("X-Forwarded-For: 203.0.113.8\r\nX-Forwarded-Proto: https\r\n"))
      let asked = try exchange.asked()
      #expect(asked.contains("\r\nX-Forwarded-For: \(client)\r\nX-Forwarded-Proto: \(scheme)\r\n"), "\(asked)")
    }
    await gateway.stop()
  }

  /// Attack: a client sends a header, which the proxy passes on behind its own.
  @Test(arguments: [text, binary]) func secondHeaderIsRefused(_ header: [UInt8]) async throws {
    let gateway = try await gateway()
    let second = Array("PROXY TCP4 10.9.9.9 10.0.0.3 1 2\r\n".utf8)
    for pieces in [[header + second + Self.request], [header, second, Self.request]] {
      try onOneThread(gateway) { exchange in
        for piece in pieces { try exchange.send(piece) }
        #expect(try !exchange.client.isActive && exchange.asked() == "" && exchange.got() == "")
      }
    }
    #expect(told(gateway).count == 1 && told(gateway)[0].contains("after that of the proxy"), "\(told(gateway))")
    #expect(told(gateway)[0].contains("peer=203.0.113.7"))
    await gateway.stop()
  }

  @Test(arguments: [request, [0x16, 3, 1, 0, 5, 1, 0, 0, 1, 3], Array("\r\n\r\n\r\n".utf8), [0]])
  func trustedProxyWithoutAHeaderIsRefused(_ bytes: [UInt8]) async throws {
    let gateway = try await gateway()
    try onOneThread(gateway) { exchange in
      try exchange.send(bytes)
      #expect(try !exchange.client.isActive && exchange.asked() == "" && exchange.got() == "")
    }
    #expect(told(gateway).count == 1 && told(gateway)[0].contains("peer=192.0.2.1"), "\(told(gateway))")
    #expect(told(gateway)[0].contains("has sent no PROXY header"))
    await gateway.stop()
  }

  @Test func malformedHeaderIsRefusedUnread() async throws {
    let gateway = try await gateway()
    for bytes in ProxyHeaders.malformedText.map({ Array($0.utf8) }) + ProxyHeaders.malformedBinary {
      try onOneThread(gateway) { exchange in
        try exchange.send(bytes + Self.request)
        #expect(try !exchange.client.isActive && exchange.asked() == "" && exchange.got() == "", "\(bytes)")
      }
    }
    #expect(told(gateway).allSatisfy { $0.contains("is malformed") && $0.contains("peer=192.0.2.1") })
    await gateway.stop()
  }

  // MARK: other clients

  /// Attack: a client that reaches the gateway past the proxy claims an address of the office.
  @Test(arguments: [text, binary]) func headerOfAnybodyElseIsRefusedUnread(_ header: [UInt8]) async throws {
    let gateway = try await gateway()
    for pieces in [[header + Self.request], [Array(header.prefix(3)), Array(header.dropFirst(3)) + Self.request]] {
      try onOneThread(gateway, from: "198.51.100.4") { exchange in
        for piece in pieces { try exchange.send(piece) }
        #expect(try !exchange.client.isActive && exchange.asked() == "" && exchange.got() == "")
      }
    }
    // Attack: a log line for each address of a botnet.
    try onOneThread(gateway, from: "198.51.100.5") { exchange in try exchange.send(header) }
    #expect(told(gateway).count == 1 && told(gateway)[0].contains("is not in trusted_proxies"), "\(told(gateway))")
    await gateway.stop()
  }

  @Test func clientWithoutAProxyIsServed() async throws {
    let gateway = try await gateway()
    for start in [1, 2, 3, Self.request.count] {
      try onOneThread(gateway, from: "198.51.100.4") { exchange in
        // PROPFIND begins like a header.
        let whole = Array("PROPFIND /x HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 203.0.113.8\r\n\r\n".utf8)
        try exchange.send(Array(whole.prefix(start)))
        try exchange.send(Array(whole.dropFirst(start)))
        #expect(try exchange.asked().contains("\r\nX-Forwarded-For: 198.51.100.4\r\n"), "\(start)")
      }
    }
    #expect(told(gateway) == [])
    await gateway.stop()
  }

  /// A beginning that could be that of a header is passed on at the end of the input.
  @Test func heldBytesArePassedOnAtTheEnd() async throws {
    let gateway = try await gateway()
    try onOneThread(gateway, from: "198.51.100.4") { exchange in
      try exchange.send(Array("PRO".utf8))
      #expect(try exchange.client.isActive && exchange.got() == "")
      exchange.endSending()
      #expect(try exchange.got().hasPrefix("HTTP/1.1 400 ") || !exchange.client.isActive)
      #expect(try exchange.asked() == "")
    }
    await gateway.stop()
  }

  @Test(arguments: ["192.0.2.1", "198.51.100.4"]) func withoutTheSettingAHeaderIsMalformedHTTP(
    _ address: String
  ) async throws {
    let gateway = try await gateway(takes: false)
    for header in [Self.text, Self.binary] {
      try onOneThread(gateway, from: address) { exchange in
        try exchange.send(header + Self.request)
        #expect(try exchange.got().hasPrefix("HTTP/1.1 400 ") && exchange.asked() == "")
      }
    }
    #expect(told(gateway) == [])
    await gateway.stop()
  }

  // MARK: time and limits

  /// Attack: connections that never complete a header.
  @Test(arguments: [[], Array("PROXY TCP4 203".utf8)]) func headerHasTenSeconds(_ bytes: [UInt8]) async throws {
    let gateway = try await gateway()
    try onOneThread(gateway) { exchange in
      if !bytes.isEmpty { try exchange.send(bytes) }
      exchange.pass(.milliseconds(9900))
      #expect(exchange.client.isActive)
      exchange.pass(.milliseconds(200))
      #expect(try !exchange.client.isActive && exchange.got() == "")
    }
    #expect(told(gateway).count == 1)
    await gateway.stop()
  }

  @Test func aCompleteHeaderEndsTheTimeLimit() async throws {
    let gateway = try await gateway()
    try onOneThread(gateway) { exchange in
      try exchange.send(Self.text)
      exchange.pass(.seconds(11))
      #expect(exchange.client.isActive, "it is an idle connection of HTTP now")
      try exchange.send(Self.request)
      #expect(try exchange.asked().hasPrefix("GET /x "))
    }
    await gateway.stop()
  }

  /// Load balancers open and close connections to find out whether the port is open.
  @Test func connectionThatEndsWithoutAByteIsNotLogged() async throws {
    let gateway = try await gateway()
    try onOneThread(gateway) { exchange in
      exchange.endSending()
      #expect(!exchange.client.isActive)
    }
    try onOneThread(gateway) { exchange in exchange.client.close(promise: nil) }
    #expect(told(gateway) == [])
    try onOneThread(gateway) { exchange in
      try exchange.send(Array(Self.binary.prefix(20)))
      exchange.endSending()
      #expect(!exchange.client.isActive)
    }
    #expect(told(gateway).count == 1)
    await gateway.stop()
  }

  @Test func shutdownWaitsForNoHeader() async throws {
    let gateway = try await gateway()
    try onOneThread(gateway) { exchange in
      exchange.client.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
      exchange.pass(.milliseconds(200))
      #expect(exchange.client.isActive)
      exchange.pass(.milliseconds(100))
      #expect(!exchange.client.isActive)
    }
    #expect(told(gateway) == [])
    // A header that is on its way is followed by one last request.
    try onOneThread(gateway) { exchange in
      exchange.client.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
      try exchange.send(Self.text + Self.request)
      #expect(try exchange.asked().hasPrefix("GET /x "))
      try exchange.answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      #expect(try exchange.got().contains("\r\nConnection: close\r\n"))
    }
    await gateway.stop()
  }

  @Test func connectionsCountForTheStatedClient() async throws {
    let gateway = try await gateway(limits: ConnectionLimits(connections: 100, connectionsPerAddress: 1))
    let other = Array("PROXY TCP4 203.0.113.8 10.0.0.3 1 2\r\n".utf8)
    try onOneThread(gateway) { first in
      try first.send(Self.text)
      for (header, isServed) in [(Self.text, false), (Self.binary, false), (other, true)] {
        let next = try EmbeddedExchange(gateway)
        try next.send(header)
        #expect(next.client.isActive == isServed)
        if isServed {
          try next.send(Self.request)
          #expect(try next.asked().contains("\r\nX-Forwarded-For: 203.0.113.8\r\n"))
        }
        next.end()
      }
      #expect(first.client.isActive)
    }
    try onOneThread(gateway) { again in
      try again.send(Self.text + Self.request)
      #expect(try again.asked().hasPrefix("GET /x "), "its place is free again")
    }
    await gateway.stop()
  }

  @Test func requestsCountForTheStatedClient() async throws {
    let gateway = try await gateway(limits: ConnectionLimits(connections: 100, requestsPerSecondPerAddress: 1))
    for (address, status) in [("203.0.113.7", 400), ("203.0.113.7", 429), ("203.0.113.8", 400)] {
      try onOneThread(gateway) { exchange in
        // A path that is refused without the service.
        try exchange.send("PROXY TCP4 \(address) 10.0.0.3 1 2\r\nGET /../x HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(try exchange.got().hasPrefix("HTTP/1.1 \(status) "), "\(address)")
      }
    }
    await gateway.stop()
  }

  /// Attack: connections that wait for their header are without number. Each holds one permit, and gives it back.
  @Test func waitingConnectionHoldsAPermit() async throws {
    let gateway = try await gateway(limits: ConnectionLimits(connections: 2))
    for bytes in [[], Array("PROXY".utf8), Self.text, Self.text + Self.request, Self.request] {
      try onOneThread(gateway) { first in
        try onOneThread(gateway) { second in
          #expect(second.client.isActive)
          try onOneThread(gateway) { third in #expect(!third.client.isActive, "\(bytes)") }
        }
        if !bytes.isEmpty { try first.send(bytes) }
      }
    }
    await gateway.stop()
  }

  // MARK: TLS and HTTP/2

  private func overHTTP2(
    _ gateway: TestGateway, _ header: [UInt8], _ body: (EmbeddedStreams) throws -> Void
  ) throws {
    let client = try EmbeddedStreams(gateway, header: header)
    defer { client.end() }
    try body(client)
  }

  @Test func clientOfHTTP2IsTheStatedOne() async throws {
    let gateway = try await gateway(limits: ConnectionLimits(connections: 1, connectionsPerAddress: 1))
    for header in [Self.text, Self.binary] {
      try overHTTP2(gateway, header) { client in
        try client.send(client.head(1, path: "/x"))
        let asked = try client.asked()
        #expect(asked.hasPrefix("GET /x ") && asked.contains("\r\nX-Forwarded-For: 203.0.113.7\r\n"), "\(asked)")
      }
    }
    await gateway.stop()
  }

  /// Attack: forwarding headers on a stream of a client that has no address.
  @Test func streamOfAnUnstatedClientForwardsNothing() async throws {
    let gateway = try await gateway()
    try overHTTP2(gateway, ProxyHeaders.binary(0x31, ProxyHeaders.unix)) { client in
      try client.send(client.head(1, path: "/x", [("x-forwarded-for", "203.0.113.8")]))
      #expect(try client.asked().contains("\r\nX-Forwarded-For: 192.0.2.1\r\n"))
    }
    await gateway.stop()
  }

  // MARK: fuzzing

  /// Headers, mutated ones and garbage in random pieces. No byte of what is refused reaches HTTP, and a request has
  /// the client that the header states, however the network cuts it.
  @Test func randomPiecesAndGarbageReachNobody() async throws {
    let gateway = try await gateway()
    var generator = SeededGenerator(seed: 540)
    for round in 0..<600 {
      let isTrusted = Bool.random(using: &generator)
      let start =
        round % 3 == 0
        ? (ProxyHeaders.all.randomElement(using: &generator)?.bytes ?? []) : ProxyHeaders.mutated(&generator)
      let whole = start + Self.request
      try onOneThread(gateway, from: isTrusted ? "192.0.2.1" : "198.51.100.4") { exchange in
        var at = 0
        while at < whole.count, exchange.client.isActive {
          let next = min(
            whole.count, at + Int.random(in: 1...(Bool.random(using: &generator) ? 3 : 80), using: &generator))
          try exchange.send(Array(whole[at..<next]))
          at = next
        }
        try judge(exchange, whole, isTrusted: isTrusted)
      }
    }
    await gateway.stop()
  }

  private func judge(_ exchange: EmbeddedExchange, _ whole: [UInt8], isTrusted: Bool) throws {
    let (asked, got) = (try exchange.asked(), try exchange.got())
    let view = ByteBuffer(bytes: whole).readableBytesView
    guard isTrusted else {
      if ProxyHeader.isHeader(view) == true {
        #expect(asked == "" && got == "" && !exchange.client.isActive, "\(whole)")
      } else {
        #expect(asked == "" || asked.contains("\r\nX-Forwarded-For: 198.51.100.4\r\n"), "\(whole)")
      }
      return
    }
    guard case .complete(let length, let client) = ProxyHeader.read(view) else {
      #expect(asked == "" && got == "", "\(whole)")
      return
    }
    let rest = Array(whole[length...])
    let stated = client?.description ?? "192.0.2.1"
    if rest == Self.request {
      #expect(asked.contains("\r\nX-Forwarded-For: \(stated)\r\n"), "\(whole)")
    } else {
      #expect(asked == "" || asked.contains("\r\nX-Forwarded-For: \(stated)\r\n"), "\(whole)")
    }
  }
}
