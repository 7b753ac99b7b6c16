import HTTPTypes
import MoongateCore
import MoongateTesting
import Testing

/// The answer to the probe of `moongate doctor`.
struct ForwardingCallTests {
  private func ask(_ client: Client, _ tickets: [String], claims: [String] = []) async throws -> Answer {
    try await client.call(
      .get, ForwardingProbe.path,
      headers: tickets.map { (ForwardingProbe.header, $0) } + claims.map { ("X-Forwarded-For", $0) })
  }

  @Test func aProbeLearnsHowItArrived() async throws {
    var settings = GatewaySettings.test()
    settings.trustedProxies = [try #require(AddressBlock("0.0.0.0/32"))]
    try await HTTPGateway(settings: settings).run { client in
      let ticket = try ForwardingProbe.ticket(client.gateway.keys, at: client.gateway.clock.now())
      let answer = try await ask(client, [ticket], claims: ["198.51.100.77, 192.0.2.9", "0.0.0.0"])
      #expect(answer.status == 200)
      #expect(answer["peer"] as? String == "0.0.0.0" && answer["client"] as? String == "192.0.2.9")
      #expect(answer["forwarded_for"] as? [String] == ["198.51.100.77, 192.0.2.9", "0.0.0.0"])
    }
  }

  /// Attack: a stranger asks for the addresses of the proxies, or somebody uses a ticket again later.
  @Test func onlyAFreshTicketOfTheMasterKeyIsAnswered() async throws {
    try await HTTPGateway().run { client in
      let (keys, clock) = (client.gateway.keys, client.gateway.clock)
      let good = try ForwardingProbe.ticket(keys, at: clock.now())
      let other = try ForwardingProbe.ticket(try KeyRing(master: Array(repeating: 8, count: 32)), at: clock.now())
      let early = try ForwardingProbe.ticket(keys, at: clock.now() + .seconds(301))
      for tickets in [[], [""], ["x"], [other], [early], [good, good]] {
        #expect(try await ask(client, tickets).problem() == "not_found", "\(tickets)")
      }
      clock.advance(by: .seconds(300))
      #expect(try await ask(client, [good]).status == 200)
      clock.advance(by: .seconds(1))
      #expect(try await ask(client, [good]).problem() == "not_found")
    }
  }
}
