import Logging
import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// Flows of gateways that share a store.
@Suite struct SharedFlowsTests {
  @Test func flowCreatedByOneGatewayContinuesOnAnother() async throws {
    let one = try await EngineTestBench(sharesFlows: true)
    try await one.registered()
    let two = FlowEngine(
      store: one.store, generations: one.generations,
      providers: try ProviderRegistry([ToyCode(name: EngineTestBench.phone)]),
      delivery: one.delivery,
      clock: one.clock, random: SystemRandom(), keys: one.keys, audit: one.audit, logger: Logger(label: "test"),
      sharesFlows: true)
    let id = try await one.flow()
    _ = try await two.begin(id, provider: nil, fields: ["phone": .text("919999999999")], client: one.client()).get()
    // The first gateway's cached copy would be stale by now.
    #expect(try await one.submit(id, one.code).get().status == .complete)
    #expect(
      await two.begin(id, provider: nil, fields: ["phone": .text("919999999999")], client: one.client()).refusal?.code
        == .stepNotOpen)
  }

  /// Attack: flows are created without end, each a row of the store.
  @Test func floodOfFlowsDropsTheSendersOwnFlows() async throws {
    let bench = try await EngineTestBench(sharesFlows: true)
    try await bench.registered()
    let begun = try await bench.begun()
    let first = try await bench.flow()
    let other = try await bench.engine.create(
      "login", returnTo: nil, browser: nil, client: bench.client([198, 51, 100, 9])
    ).get().id
    // The maximum number of flows of one address: these evict its earlier ones.
    for _ in 0..<1_000 { _ = try await bench.flow() }
    #expect(await bench.engine.view(first, client: bench.client()).refusal?.code == .flowNotFound)
    #expect(
      await bench.engine.view(begun, client: bench.client()).refusal?.code == .flowNotFound,
      "what was begun counts like any other")
    #expect(
      await bench.engine.view(other, client: bench.client([198, 51, 100, 9])).refusal == nil, "and what is others'")
  }
}
