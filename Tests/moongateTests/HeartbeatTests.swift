import MoongateCore
import MoongateProgram
import MoongateTesting
import Testing

@testable import MoongateGateway

/// Checks of a gateway during its heartbeat.
@Suite struct HeartbeatTests {
  /// Attack: a gateway was offline while the oldest key was retired and counts with the retired key. An attacker would
  /// get twice as many attempts.
  @Test func storeWithAnotherKeyEndsTheGateway() async throws {
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
