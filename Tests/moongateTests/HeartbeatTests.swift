import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateCommand

/// What a gateway notices while it tells the others that it serves.
@Suite struct HeartbeatTests {
  /// Attack: a gateway that was stopped or cut off while the oldest key was retired comes back, and counts by the key
  /// that is gone: who guesses at both kinds of gateways has all of his tries twice.
  @Test func aStoreOfAnotherKeyEndsTheGateway() async throws {
    let gateway = try TestGateway(providers: [], generation: .gateway(for: []))
    #expect(try await !gateway.store.answers(to: gateway.keys.fingerprint), "this store was made with another one")
    let heartbeat = Heartbeat(
      store: gateway.store, generations: gateway.generations, keys: gateway.keys,
      address: try #require(ListenAddress("127.0.0.1:8080")),
      clock: gateway.clock, random: gateway.random)
    await #expect(throws: StartProblem.self) { try await heartbeat.run() }
    #expect(try await gateway.store.nodes(at: gateway.clock.now()).isEmpty, "it is gone for the others, too")
  }
}
