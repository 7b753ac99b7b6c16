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
    let desk = try await EngineTestBench(sharesFlows: true)
    try await desk.registered()
    let begun = try await desk.begun()
    let first = try await desk.flow()
    let other = try await desk.engine.create(
      "login", returnTo: nil, browser: nil, client: desk.client([198, 51, 100, 9])
    ).get().id
    // The maximum number of flows of one address: these evict its earlier ones.
    for _ in 0..<1_000 { _ = try await desk.flow() }
    #expect(await desk.engine.view(first, client: desk.client()).refusal?.code == .flowNotFound)
    #expect(
      await desk.engine.view(begun, client: desk.client()).refusal?.code == .flowNotFound,
      "what was begun counts like any other")
    #expect(
      await desk.engine.view(other, client: desk.client([198, 51, 100, 9])).refusal == nil, "and what is others'")
  }
}
