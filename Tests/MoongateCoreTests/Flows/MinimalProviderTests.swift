import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// Swift providers that declare only what they must: no presentation, entrance, page, flow, case or role, and no round
/// after a refusal.
@Suite struct MinimalProviderTests {
  private static let pigeon: ProviderName = "pigeon"
  private static let post: ProviderName = "post"

  /// A secret word that the account has chosen.
  private struct Pigeon: FullProvider {
    let descriptor = ProviderDescriptor(
      name: pigeon, beginFields: [], submitFields: [InputField(name: "word", kind: .password)], settings: [],
      policy: PolicySource(file: "pigeon.lua", text: ""), identifierKinds: [],
      outcomes: [
        Outcome("wrong_word", "That is not the word."), Outcome("no_word", "There is no word.", isFailure: false),
      ],
      words: StepWords(title: "Your word", instruction: "Say the word.", labels: ["word": "Word"]))

    func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
      .ask(descriptor.submitFields, state: [7])
    }

    func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
      let word = Array(try input.text("word").utf8)
      guard step.state == [7] else { return .refused("no_word") }
      if step.purpose == .set { return .proved(Proof(record: .replace(word))) }
      guard let record = step.account?.record else { return .refused("no_word") }
      guard record == word else { return .refused("wrong_word") }
      return .proved(Proof(record: step.purpose == .disable ? .remove : .keep))
    }
  }

  /// Codes by a messenger of its own.
  private struct Post: CodeProvider {
    let descriptor = ProviderDescriptor(
      name: post, beginFields: [InputField(name: "phone", kind: .phone)],
      submitFields: [InputField(name: "code", kind: .digits)],
      settings: [], policy: PolicySource(file: "post.lua", text: ""), identifierKinds: [.phone])
    let delivery: ToyDelivery

    func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier {
      let digits = try input.text("phone").filter(\.isNumber)
      return Identifier(kind: .phone, value: "+" + digits, display: "+" + digits)
    }

    func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault) {
      try await delivery.send(Message(channel: .sms, to: identifier.value, text: code.text, code: code.code))
    }
  }

  private func bench(_ others: [any Provider], sender: ProviderName = EngineTestBench.phone) async throws
    -> EngineTestBench
  {
    try await EngineTestBench(others: others) { generation in
      generation.flows["login"] = .test("login", account: .existing, steps: [.test(sender), .test(Self.pigeon)])
      generation.flows["enter"] = .test("enter", account: .any, steps: [.test(sender)])
      for name in ["pigeon_set", "pigeon_disable"] {
        generation.flows[name] = .test(name, account: .existing, steps: [.test(Self.pigeon)])
      }
    }
  }

  /// A client that has signed in by a number, and whose session sets and removes the word.
  private func owner(_ bench: EngineTestBench) async throws -> ClientContext {
    let view = try await bench.submit(try await bench.begun("enter"), bench.code).get()
    return bench.client(session: try await bench.signedIn(view))
  }

  private func play(_ flow: String, _ word: String, _ bench: EngineTestBench, _ client: ClientContext) async throws
    -> Result<
      FlowView, Refusal
    >
  {
    let id = try await bench.engine.create(flow, returnTo: nil, browser: nil, client: client).get().id
    let begun = try await bench.engine.begin(id, provider: "pigeon", fields: [:], client: client).get()
    #expect(begun.step?.fields == [InputField(name: "word", kind: .password)])
    return await bench.engine.submit(id, fields: ["word": .text(word)], client: client)
  }

  @Test func aSecretIsSetProvedAndRemoved() async throws {
    let bench = try await bench([Pigeon()])
    let client = try await owner(bench)
    let set = try await play("pigeon_set", "coo", bench, client).get()
    #expect(set.status == .complete)
    let account = try #require(set.account?.id)
    #expect(try await bench.store.account(account)?.credentials == [Self.pigeon])

    // With a code and the word, like at any sign-in.
    bench.clock.advance(by: .seconds(1000))
    let id = try await bench.begun("login")
    #expect(try await bench.submit(id, bench.code).get().due == Self.pigeon)
    _ = try await bench.engine.begin(id, provider: "pigeon", fields: [:], client: bench.client()).get()
    let wrong = try #require(
      await bench.engine.submit(id, fields: ["word": .text("moo")], client: bench.client()).refusal)
    #expect(
      wrong.code.name == "wrong_word" && wrong.code.status == 401 && wrong.sentence == "That is not the word."
        && wrong.attemptsLeft == 2)
    let done = try await bench.engine.submit(id, fields: ["word": .text("coo")], client: bench.client()).get()
    #expect(done.status == .complete && done.session?.token != nil && done.passed.map(\.provider).contains(Self.pigeon))

    let again = bench.client(session: try await bench.signedIn(done))
    #expect(try await play("pigeon_disable", "coo", bench, again).get().status == .complete)
    #expect(try await bench.store.account(account)?.credentials == [])
  }

  /// Attack: guesses at the secret of a provider that counts no attempts itself.
  @Test func itsAttemptsAreLimited() async throws {
    let bench = try await bench([Pigeon()])
    let client = try await owner(bench)
    _ = try await play("pigeon_set", "coo", bench, client).get()
    bench.clock.advance(by: .seconds(1000))
    let id = try await bench.begun("login")
    _ = try await bench.submit(id, bench.code).get()
    _ = try await bench.engine.begin(id, provider: "pigeon", fields: [:], client: bench.client()).get()
    for _ in 0..<2 {
      #expect(
        await bench.engine.submit(id, fields: ["word": .text("moo")], client: bench.client()).refusal?.code.name
          == "wrong_word")
    }
    #expect(
      await bench.engine.submit(id, fields: ["word": .text("moo")], client: bench.client()).refusal?.code
        == .tooManyAttempts)
    #expect(
      await bench.engine.submit(id, fields: ["word": .text("coo")], client: bench.client()).refusal?.code
        == .tooManyAttempts)
  }

  @Test func aCodeSignsAPersonIn() async throws {
    let delivery = ToyDelivery()
    let bench = try await bench([Post(delivery: delivery), Pigeon()], sender: Self.post)
    let id = try await bench.flow("enter")
    _ = try await bench.engine.begin(
      id, provider: "post", fields: ["phone": .text("919999999999")], client: bench.client()
    ).get()
    let code = try #require(delivery.messages.last?.code)
    #expect(await bench.submit(id, code == "000000" ? "000001" : "000000").refusal?.code == .invalidCode)
    #expect(try await bench.submit(id, code).get().session?.token != nil)
  }

  @Test func omittedDeclarationsHaveDefaults() throws {
    let registry = try ProviderRegistry([Pigeon(), Post(delivery: ToyDelivery())])
    #expect(registry.presentation(of: Self.pigeon) == .form && registry.presentation(of: Self.post) == .codeEntry)
    #expect(registry.ownPage(of: Self.post) == "/auth/step/post" && registry.stepPage(of: Self.pigeon) == "/auth/step")
    #expect(
      registry.descriptor(Self.pigeon)?.role == .keepsFactor
        && registry.descriptor(Self.post)?.role == [.provesIdentifier, .keepsFactor])
    #expect(
      registry.all.allSatisfy {
        $0.descriptor.mistakes.isEmpty && $0.descriptor.flows.isEmpty && $0.descriptor.recordVersion == 1
      })
  }
}
