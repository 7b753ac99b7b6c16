import Foundation
import MoongateCore
import MoongateTesting
import NIOCore
import Testing

@testable import MoongateProxy

/// `limits.per_ip`.
@Suite(.timeLimit(.minutes(2))) struct AddressLimitTests {
  private func settings(connections: Int? = nil, requests: Int? = nil, trusted: Bool = false) -> GatewaySettings {
    var settings = GatewaySettings.test()
    settings.connectionLimits = ConnectionLimits(
      connections: 100, connectionsPerAddress: connections, requestsPerSecondPerAddress: requests)
    if trusted { settings.trustedProxies = [AddressBlock(network: [127, 0, 0, 1], prefix: 32)] }
    return settings
  }

  @Test func oneConnectionTooManyIsClosedUnread() async throws {
    let gateway = try await TestGateway(routes: [], settings: settings(connections: 2))
    let ask = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
    do {
      let first = try await RawClient(port: gateway.port)
      let second = try await RawClient(port: gateway.port)
      for client in [first, second] {
        try await client.send(ask)
        #expect(try await client.answers().hasPrefix("HTTP/1.1 404"))
      }
      let third = try await gateway.talkToEnd(ask)
      #expect(third.ended && third.text.isEmpty)
      try await first.send(ask)
      #expect(try await first.answers().hasPrefix("HTTP/1.1 404"), "the others are served")
    }
    try await until { (try? await gateway.talk(ask).hasPrefix("HTTP/1.1 404")) ?? false }
    await gateway.stop()
  }

  @Test func aTrustedProxyHasManyConnections() async throws {
    let gateway = try await TestGateway(routes: [], settings: settings(connections: 1, trusted: true))
    let first = try await RawClient(port: gateway.port)
    let second = try await RawClient(port: gateway.port)
    for client in [first, second] {
      try await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
      #expect(try await client.answers().hasPrefix("HTTP/1.1 404"))
    }
    await gateway.stop()
  }

  @Test(arguments: ["/x", "/auth/x"]) func requestsBeyondTheRateAre429(_ path: String) async throws {
    let gateway = try await TestGateway(routes: [.test("/x", ports: [1])], settings: settings(requests: 3))
    let one = "GET \(path) HTTP/1.1\r\nHost: h\r\n\r\n"
    let answers = try await gateway.talk(String(repeating: one, count: 8), answers: 8)
    #expect(answers.components(separatedBy: "HTTP/1.1 429 Too Many Requests\r\n").count == 6, "\(answers)")
    #expect(answers.components(separatedBy: "\r\nRetry-After: 1\r\n").count == 6)
    #expect(answers.contains("\"code\":\"rate_limited\"") && answers.contains("\"retry_after\":1"))
    // Another connection gets no new budget; a second later there is one.
    try await until { (try? await gateway.talk(one).hasPrefix("HTTP/1.1 429")) == false }
    await gateway.stop()
  }

  @Test func clientsBehindATrustedProxyAreCountedSeparately() async throws {
    let gateway = try await TestGateway(routes: [], settings: settings(requests: 1, trusted: true))
    let ask = { (address: String) in
      "GET / HTTP/1.1\r\nHost: h\r\n\(address.isEmpty ? "" : "X-Forwarded-For: \(address)\r\n")\r\n"
    }
    let addresses = [
      ("203.0.113.1", 404), ("203.0.113.1", 429), ("evil, 203.0.113.1, 127.0.0.1", 429), ("203.0.113.2", 404),
      ("2001:db8::1", 404),
      ("2001:db8::ffff", 429), ("2001:db8:0:1::1", 404), ("::ffff:203.0.113.2", 429), ("", 404), ("", 404),
      ("127.0.0.1", 404), ("rubbish", 404),
    ]
    let answers = try await gateway.talk(addresses.map { ask($0.0) }.joined(), answers: addresses.count)
    let statuses = answers.components(separatedBy: "HTTP/1.1 ").dropFirst().map { Int($0.prefix(3)) }
    #expect(statuses == addresses.map(\.1))
    await gateway.stop()
  }

  /// Attack: bursts at the boundary of two windows. No one-second interval contains more than the limit.
  @Test(arguments: [1, 7, 100]) func noOneSecondIntervalExceedsTheLimit(_ limit: Int) {
    let use = AddressUse()
    var random = SystemRandomNumberGenerator()
    var now: UInt64 = 5_000_000_000
    var accepted: [UInt64] = []
    for step in 0..<20_000 {
      now +=
        step % 500 == 0
        ? UInt64.random(in: 0..<1_500_000_000, using: &random)
        : UInt64.random(in: 0..<(2_000_000_000 / UInt64(limit * 2)), using: &random)
      if use.ask(limit: limit, at: .uptimeNanoseconds(now)) { accepted.append(now) }
    }
    #expect(accepted.count > 100)
    for index in accepted.indices.dropFirst(limit) {
      #expect(accepted[index] - accepted[index - limit] >= 1_000_000_000)
    }
    // The limit is not much stricter than configured: after a second and a slot, the whole budget is available again.
    let later = NIODeadline.uptimeNanoseconds(now + 1_050_000_000)
    #expect((0..<limit + 5).filter { _ in use.ask(limit: limit, at: later) }.count == limit)
  }

  /// Attack: a new address with every request.
  @Test func addressesThatAreIdleAreForgotten() throws {
    let table = AddressTable()
    var now: UInt64 = 1_000_000_000
    let kept = table.connect(try #require(ClientAddress(bytes: [192, 0, 2, 1])), limit: 1, at: .uptimeNanoseconds(now))
    for round in 0..<10 {
      for index in 0..<10_000 {
        let address = ClientAddress(bytes: [10, UInt8(round), UInt8(index >> 8), UInt8(index & 255)]) ?? .unspecified
        #expect(table.ask(address, limit: 1, at: .uptimeNanoseconds(now)))
      }
      now += 5_000_000_000
    }
    #expect(table.count < 30_000)
    let again = table.connect(
      try #require(ClientAddress(bytes: [192, 0, 2, 1])), limit: 1, at: .uptimeNanoseconds(now))
    #expect(kept.isWithin && !again.isWithin && kept.use === again.use)
  }
}
