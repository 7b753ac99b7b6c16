import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// A code is judged in a flow that the gateway remembers, if no other gateway has changed the flow since.
@Suite struct RecentFlowTests {
  private let bench: EngineTestBench
  private let id: FlowID

  init() async throws {
    bench = try await EngineTestBench {
      $0.policies[EngineTestBench.phone] = .test(EngineTestBench.phone, resendAfter: [])
    }
    try await bench.registered()
    id = try await bench.begun()
  }

  /// A gateway that remembers the flow as it is now.
  private func other() throws -> FlowEngine {
    let flow: FlowRecord = try #require(bench.store.recentFlow(id.hash))
    return bench.engine(on: MultiNodeStore([bench.store], remembering: flow))
  }

  private func submit(_ code: String, to engine: FlowEngine) async -> Result<FlowView, Refusal> {
    await engine.submit(id, fields: ["code": .text(code)], client: bench.client())
  }

  @Test func aCodeTakesNoReadOfTheFlow() async throws {
    let store = MultiNodeStore([bench.store])
    #expect(await submit(bench.wrong, to: bench.engine(on: store)).refusal?.code == .invalidCode)
    #expect(try await submit(bench.code, to: bench.engine(on: store)).get().status == .complete)
    #expect(store.flowReads == 0)
  }

  /// Attack: a gateway remembers a code that another gateway has replaced. If it still judged that code, its answer
  /// would tell a right one from a wrong one.
  @Test func aReplacedCodeIsWrongEverywhere() async throws {
    let (other, old) = (try other(), bench.code)
    _ = try await bench.engine.resend(id, client: bench.client()).get()
    await bench.engine.deliveriesEnd()
    try #require(bench.code != old)
    let refused = await submit(old, to: other).refusal
    #expect(refused?.code == .invalidCode)
    #expect(await submit(bench.wrong, to: other).refusal?.attemptsLeft == refused?.attemptsLeft.map { $0 - 1 })
    #expect(try await submit(bench.code, to: other).get().status == .complete)
  }

  @Test func aCancelledFlowIsGoneEverywhere() async throws {
    let (other, code) = (try other(), bench.code)
    try await bench.engine.delete(id, client: bench.client()).get()
    #expect(await submit(code, to: other).refusal?.code == .flowNotFound)
  }

  /// Attack: a code is used once at each gateway.
  @Test func aUsedCodeIsUsedEverywhere() async throws {
    let (other, code) = (try other(), bench.code)
    _ = try await submit(code, to: bench.engine).get()
    #expect(await submit(code, to: other).refusal?.code == .stepNotOpen)
  }

  /// Attack: a limit has disabled the credential of an account, and the policy conceals that. Such an attempt is
  /// charged a second time without the limit. If the attacker cancels the flow in between, the answer must be the one
  /// that an unknown number gets.
  @Test func aChangeBetweenTwoChargesIsJudgedAgain() async throws {
    let bench = try await EngineTestBench {
      $0.policies[EngineTestBench.phone] = .test(
        EngineTestBench.phone, resendAfter: [],
        limits: [
          .test(
            "hard", on: .verify, per: .account, max: 1, counts: .consecutiveFailures, disables: true)
        ], unknownAccount: .conceal)
    }
    try await bench.registered()
    func begun() async throws -> FlowID {
      let id = try await bench.begun()
      await bench.engine.deliveriesEnd()
      return id
    }
    _ = await bench.submit(try await begun(), bench.wrong)
    let id = try await begun()
    let canceller = bench.engine
    let other = bench.engine(
      on: MultiNodeStore([bench.store], afterRefusal: { _ = await canceller.delete(id, client: bench.client()) }))
    let refused = await other.submit(id, fields: ["code": .text(bench.wrong)], client: bench.client()).refusal
    #expect(refused?.code == .flowNotFound)
  }

  /// Attack: someone deletes their account. A code that is submitted to one of their flows afterwards writes their
  /// account and number into the audit trail again.
  @Test func nothingIsRecordedOfAFlowThatIsGone() async throws {
    let (other, code) = (try other(), bench.code)
    let account = try #require(try await bench.store.flow(id.hash)?.step?.account)
    _ = try await bench.store.apply([.deleteAccount(account, traces: [])], at: bench.clock.now())
    #expect(await submit(code, to: other).refusal?.code == .flowNotFound)
    try await bench.audit.flush()
    let event = try #require(try await bench.store.events(limit: 1).first)
    #expect(event.kind == .refused && event.account == nil && event.identifier == nil && event.provider == nil)
  }
}
