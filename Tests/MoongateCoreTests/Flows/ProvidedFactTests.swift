import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// A full provider without identifiers that reports the length of a word as a fact.
private struct ToyWord: FullProvider {
  static let name = ProviderName(test: "magic_word")

  var told = ["length": "7", "made_up": "x"]

  var descriptor: ProviderDescriptor {
    ProviderDescriptor(
      name: Self.name, beginFields: [], submitFields: [InputField(name: "word", kind: .text)], settings: [],
      policy: PolicySource(file: "toy.lua", text: ""), identifierKinds: [], outcomes: [Outcome(.invalidPIN, "Wrong.")],
      facts: [
        FactField(name: "length", kind: .number, help: "how long the word is"),
        FactField(name: "language", kind: .text, help: "of the word"),
      ])
  }

  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    .ask(descriptor.submitFields, state: [])
  }

  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    try input.text("word") == "sesame!" ? .proved(Proof(facts: told)) : .refused(.invalidPIN)
  }
}

/// Facts that providers report about their steps, readable by policies for the rest of the flow.
@Suite struct ProvidedFactTests {
  private func bench(_ word: ToyWord = ToyWord()) async throws -> EngineTestBench {
    try await EngineTestBench(others: [word, ToyPIN()]) { generation in
      generation.flows["enter"] = .test(
        "enter", account: .any, steps: [.test(EngineTestBench.phone), .test(ToyWord.name), .test(EngineTestBench.pin)])
    }
  }

  private func submit(_ bench: EngineTestBench, _ id: FlowID, _ word: String) async -> Result<FlowView, Refusal> {
    await bench.engine.begin(id, provider: "magic_word", fields: ["word": .text(word)], client: bench.client())
  }

  @Test func declaredFactsStayBehindTheStep() async throws {
    let bench = try await bench()
    let id = try await bench.begun("enter")
    _ = try await bench.submit(id, bench.code).get()
    #expect(await submit(bench, id, "wrong").refusal?.code == .invalidPIN)
    #expect(try #require(await bench.engine.record(id)).facts?[ToyWord.name] == nil, "a refusal tells nothing")
    _ = try await submit(bench, id, "sesame!").get()
    let record = try #require(await bench.engine.record(id))
    // Attack: a fact under another name, for a policy that trusts it. Undeclared facts are dropped.
    #expect(record.facts == [ToyWord.name: ["length": "7"]])
    let request = RequestContext(client: bench.client(), now: bench.clock.now(), generation: bench.generations.current)
    let facts = bench.engine.parts.policies.facts(
      FlowTransaction(id, FlowMachine(record), request), subject: nil, account: nil)
    #expect(facts.flow?.reported[ToyWord.name] == ["length": "7"])
  }

  @Test func longFactIsTheProvidersFault() async throws {
    let bench = try await bench(ToyWord(told: ["length": String(repeating: "1", count: 301)]))
    let id = try await bench.begun("enter")
    _ = try await bench.submit(id, bench.code).get()
    let refusal = try #require(await submit(bench, id, "sesame!").refusal)
    #expect(refusal.code == .busy)
    #expect(try #require(await bench.engine.record(id)).facts?[ToyWord.name] == nil)
    try await bench.audit.flush()
    let decision = try #require(try await bench.store.event(refusal.decision))
    #expect(decision.detail["fault"] == "a provider reports a fact longer than 300 bytes")
    #expect(decision.detail["fault_provider"] == "magic_word" && decision.detail["fault_call"] == "submit")
  }

  /// Attack: two providers declare `country`, and one is believed in place of the other.
  @Test func eachProviderHasItsOwnPlace() {
    let field = FactField(name: "country", kind: .text, help: "")
    let descriptor = ProviderDescriptor(
      name: ToyWord.name, beginFields: [], submitFields: [], settings: [], policy: PolicySource(file: "", text: ""),
      identifierKinds: [.phone],
      facts: [field])
    let phone = Identifier(kind: .phone, value: "+91", display: "+91", attributes: ["country": "IN", "type": "mobile"])
    #expect(ProvidedFacts.of(descriptor, Proof(), about: [phone]) == ["country": "IN"])
    #expect(ProvidedFacts.of(descriptor, Proof(facts: ["country": "US"]), about: [phone]) == ["country": "US"])
    #expect(phone.attributes["country"] == "IN", "what f.phone.country reads is the identifier's own")
    let long = Identifier(
      kind: .phone, value: "+91", display: "", attributes: ["country": String(repeating: "x", count: 301)])
    #expect(ProvidedFacts.of(descriptor, Proof(), about: [long]) == [:])
  }
}

extension FlowEngine {
  /// The flow as it is stored.
  fileprivate func record(_ id: FlowID) async -> FlowRecord? { try? await store.flow(id.hash) }
}
