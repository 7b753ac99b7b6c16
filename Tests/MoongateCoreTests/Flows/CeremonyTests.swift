import MoongateSDK
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateCore

/// Rounds that present a WebAuthn-like ceremony and ask for its answer, a JSON object.
@Suite struct CeremonyTests {
  private struct Toy: FullProvider {
    var asks: StepAnswer.Round = .ask(
      [Self.answer], state: [], showing: [.ceremony(.get, options: #"{"challenge":"AAAA"}"#)])
    var seen: @Sendable (InputValue?) -> Void = { _ in }

    static let answer = InputField(name: "answer", kind: .json)

    var descriptor: ProviderDescriptor {
      ProviderDescriptor(
        name: "toy", beginFields: [], submitFields: [Self.answer], settings: [],
        policy: PolicySource(file: "toy.lua", text: ""), identifierKinds: [],
        presentation: .ceremony(button: "Use your key"))
    }

    func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
      .ask(asks.fields, state: asks.state, showing: asks.shown)
    }

    func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
      seen(input.fields["answer"])
      return .proved(Proof())
    }
  }

  /// A bench, and a client whose session has just proved a number.
  private func bench(_ provider: Toy) async throws -> (EngineTestBench, ClientContext) {
    let bench = try await EngineTestBench(others: [provider]) {
      $0.flows["step_up"] = .test("step_up", account: .existing, steps: [.test("toy")])
    }
    return (bench, try await bench.registeredClient())
  }

  private func begin(_ bench: EngineTestBench, _ client: ClientContext) async throws -> (
    FlowID, Result<FlowView, Refusal>
  ) {
    let id = try await bench.engine.create("step_up", returnTo: nil, browser: nil, client: client).get().id
    return (id, await bench.engine.begin(id, provider: "toy", fields: [:], client: client))
  }

  @Test(arguments: [InputValue.object(#"{"id":"x"}"#), .text(#"{"id":"x"}"#)])
  func theProviderReceivesTheTextOfTheObject(_ sent: InputValue) async throws {
    let seen = Mutex<InputValue?>(nil)
    let (bench, client) = try await bench(Toy(seen: { value in seen.withLock { $0 = value } }))
    let (id, begun) = try await begin(bench, client)
    #expect(try begun.get().step?.shown == [.ceremony(.get, options: #"{"challenge":"AAAA"}"#)])
    #expect(try await bench.engine.submit(id, fields: ["answer": sent], client: client).get().status == .complete)
    #expect(seen.withLock { $0 } == .text(#"{"id":"x"}"#))
  }

  @Test(arguments: [
    (InputValue.text("[]"), "answer must be a JSON object."), (.text("{"), "answer must be a JSON object."),
    (.text(""), "answer must be a JSON object."),
    (.text("1"), "answer must be a JSON object."), (.other, "answer must be a string."),
    (.flag(true), "answer must be a string."),
    (.text("{\"x\":\"" + String(repeating: "1", count: 65_536) + "\"}"), "answer is too long."),
    (.text(String(repeating: "{\"x\":", count: 10_000)), "answer must be a JSON object."),
  ])
  func nonObjectInputIsRefusedWithoutACall(_ sent: InputValue, _ sentence: String) async throws {
    let calls = Mutex(0)
    let (bench, client) = try await bench(Toy(seen: { _ in calls.withLock { $0 += 1 } }))
    let (id, _) = try await begin(bench, client)
    let refusal = try #require(await bench.engine.submit(id, fields: ["answer": sent], client: client).refusal)
    #expect(refusal.code == .invalidInput && refusal.sentence == sentence && calls.withLock { $0 } == 0)
    #expect(try await bench.engine.view(id, client: client).get().step?.attemptsLeft == 3, "not counted")
  }

  @Test func anObjectForAFieldOfTextIsRefused() async throws {
    let field = InputField(name: "x", kind: .text)
    #expect(field.problem(with: .object("{}"))?.detail == "x must be a string.")
  }

  /// Malformed rounds, which no page could show.
  @Test(arguments: [
    StepAnswer.Round.ask([InputField(name: "answer", kind: .json)], state: []),
    .ask([], state: [], showing: [.ceremony(.get, options: "{}")]),
    .ask([InputField(name: "answer", kind: .json)], state: [], showing: [.ceremony(.get, options: "[]")]),
    .ask(
      [InputField(name: "answer", kind: .json)], state: [],
      showing: [.ceremony(.get, options: "{\"x\":\"" + String(repeating: "1", count: 32_768) + "\"}")]),
    .ask(
      [InputField(name: "answer", kind: .json), InputField(name: "b", kind: .json)], state: [],
      showing: [.ceremony(.get, options: "{}"), .ceremony(.create, options: "{}")]),
  ])
  func aRoundThatDoesNotFitIsAFault(_ round: StepAnswer.Round) async throws {
    let (bench, client) = try await bench(Toy(asks: round))
    #expect(try await begin(bench, client).1.refusal?.code == .busy)
  }
}
