import MoongateSDK
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateCore

/// Which answers of a provider cost one of the user's attempts; the attempt is charged before the provider is called.
@Suite struct AttemptCostTests {
  private static let field = InputField(name: "x", kind: .text)

  private struct Broken: Error {}

  /// A bench, and a client at an open step of the provider.
  private func opened(_ provider: Scripted) async throws -> (bench: EngineTestBench, client: ClientContext, id: FlowID)
  {
    let bench = try await EngineTestBench(others: [provider]) { generation in
      generation.flows["step_up"] = .test("step_up", account: .existing, steps: [.test("toy")])
    }
    let client = try await bench.registeredClient()
    return (
      bench, client, try await bench.engine.create("step_up", returnTo: nil, browser: nil, client: client).get().id
    )
  }

  private func attemptsLeft(_ at: (bench: EngineTestBench, client: ClientContext, id: FlowID)) async throws -> Int? {
    try await at.bench.engine.view(at.id, client: at.client).get().step?.attemptsLeft
  }

  /// An `ask` refunds the attempt, however often it is answered; it must therefore reveal nothing about a secret.
  @Test func askAfterASubmitRefundsTheAttempt() async throws {
    let at = try await opened(Scripted(submits: { _, _ in .ask([Self.field], state: [1]) }))
    _ = try await at.bench.engine.begin(at.id, provider: "toy", fields: [:], client: at.client).get()
    for _ in 0..<9 { _ = try await at.bench.engine.submit(at.id, fields: ["x": .text("y")], client: at.client).get() }
    #expect(try await attemptsLeft(at) == 3)
  }

  @Test func malformedInputChargesNoAttempt() async throws {
    let problem = InputProblem(field: "x", reason: .invalidInput, detail: "Say a word.")
    let at = try await opened(Scripted(submits: { _, _ in .malformed(problem) }))
    _ = try await at.bench.engine.begin(at.id, provider: "toy", fields: [:], client: at.client).get()
    for _ in 0..<9 {
      let refusal = try #require(
        await at.bench.engine.submit(at.id, fields: ["x": .text("y")], client: at.client).refusal)
      #expect(refusal.code.status == 422 && refusal.sentence == "Say a word.")
    }
    #expect(try await attemptsLeft(at) == 3)
  }

  @Test func errorIsAnsweredWith503AndRefunded() async throws {
    let at = try await opened(Scripted(submits: { _, _ in throw Broken() }))
    _ = try await at.bench.engine.begin(at.id, provider: "toy", fields: [:], client: at.client).get()
    for _ in 0..<9 {
      #expect(
        await at.bench.engine.submit(at.id, fields: ["x": .text("y")], client: at.client).refusal?.code.status == 503)
    }
    #expect(try await attemptsLeft(at) == 3)
  }

  /// Attack: a provider passes the step in `begin`, where no attempt is counted.
  @Test func proofInBeginIsRefused() async throws {
    let at = try await opened(Scripted(begins: { _ in .proved(Proof()) }))
    #expect(
      await at.bench.engine.begin(at.id, provider: "toy", fields: [:], client: at.client).refusal?.code == .denied)
  }

  /// A `begin` that carries all fields is verified at once and charged like any other attempt.
  @Test func aBeginWithAllFieldsIsJudgedAtOnce() async throws {
    let calls = Mutex<[String]>([])
    let at = try await opened(
      Scripted(
        outcomes: [Outcome("wrong_word", "No.")],
        begins: { _ in
          calls.withLock { $0.append("begin") }
          return .ask([Self.field], state: [])
        },
        submits: { _, _ in
          calls.withLock { $0.append("submit") }
          return .refused("wrong_word")
        }))
    let refusal = try #require(
      await at.bench.engine.begin(at.id, provider: "toy", fields: ["x": .text("y")], client: at.client).refusal)
    #expect(refusal.code.name == "wrong_word" && refusal.attemptsLeft == 2)
    #expect(calls.withLock { $0 } == ["begin", "submit"])
  }

  /// Attack: a delivery failure, or the time that delivery takes, reveals who is registered. With `conceal` the message
  /// is therefore sent after the answer.
  @Test func concealHidesAFailedDelivery() async throws {
    let bench = try await EngineTestBench {
      $0.policies[EngineTestBench.phone] = .test(EngineTestBench.phone, unknownAccount: .conceal)
    }
    try await bench.registered("911111")
    bench.delivery.fails = true
    let known = try await bench.begin(try await bench.flow(), phone: "911111").get().step
    let unknown = try await bench.begin(try await bench.flow(), phone: "922222").get().step
    #expect(known?.sentTo == "+911111" && unknown?.sentTo == "+922222")
    #expect(known?.attemptsLeft == unknown?.attemptsLeft && known?.resendAt == unknown?.resendAt)
  }
}
