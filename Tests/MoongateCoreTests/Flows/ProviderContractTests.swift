import Logging
import MoongateSDK
import MoongateStore
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateCore

/// A provider whose behaviour is defined by the test.
struct Scripted: FullProvider {
  var name: ProviderName = "toy"
  var beginFields: [InputField] = []
  var outcomes: [Outcome] = []
  var facts: [FactField] = []
  var identifierKinds: [IdentifierKind] = []
  var callbackFields = ProviderDescriptor.standardCallbackFields
  var receivesWebhooks = false
  var sdk = SDKVersion.current
  var begins: @Sendable (StepContext) async throws -> StepAnswer = { _ in
    .ask([InputField(name: "x", kind: .text)], state: [])
  }
  var submits: @Sendable (StepContext, ProviderInput) async throws -> StepAnswer = { _, _ in .proved(Proof()) }

  var descriptor: ProviderDescriptor {
    ProviderDescriptor(
      name: name, beginFields: beginFields, submitFields: [InputField(name: "x", kind: .text)], settings: [],
      policy: PolicySource(file: "toy.lua", text: ""),
      identifierKinds: identifierKinds, outcomes: outcomes, facts: facts, callbackFields: callbackFields,
      receivesWebhooks: receivesWebhooks, sdk: sdk
    )
  }

  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer { try await begins(step) }
  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer { try await submits(step, input) }
}

/// How the core checks what a provider declares and answers: it trusts neither.
@Suite struct ProviderContractTests {
  private static let toy: ProviderName = "toy"

  /// A bench, and a client whose session has just proved a number.
  private func bench(_ provider: Scripted, _ change: (inout TestGeneration) -> Void = { _ in }) async throws -> (
    EngineTestBench, ClientContext
  ) {
    let bench = try await EngineTestBench(others: [provider]) { generation in
      for name in ["toy_set", "toy_reset", "toy_disable", "toy_change", "step_up"] {
        generation.flows[name] = .test(name, account: .existing, steps: [.test(Self.toy)])
      }
      generation.flows["toy_reset"] = .test(
        "toy_reset", account: .existing, steps: [.test(EngineTestBench.phone), .test(Self.toy)])
      change(&generation)
    }
    return (bench, try await bench.registeredClient())
  }

  private func open(_ bench: EngineTestBench, _ client: ClientContext, _ flow: String = "step_up") async throws
    -> FlowID
  {
    let id = try await bench.engine.create(flow, returnTo: nil, browser: nil, client: client).get().id
    _ = try await bench.engine.begin(id, provider: "toy", fields: [:], client: client).get()
    return id
  }

  private func submit(_ bench: EngineTestBench, _ id: FlowID, _ client: ClientContext, _ text: String = "y") async
    -> Result<
      FlowView, Refusal
    >
  {
    await bench.engine.submit(id, fields: ["x": .text(text)], client: client)
  }

  // MARK: outcomes

  @Test func aDeclaredOutcomeIsAFailureInItsOwnWords() async throws {
    let (bench, client) = try await bench(
      Scripted(
        outcomes: [Outcome("code_replayed", "This code was used.")], submits: { _, _ in .refused("code_replayed") }))
    let id = try await open(bench, client)
    let refusal = try #require(await submit(bench, id, client).refusal)
    #expect(
      refusal.code.name == "code_replayed" && refusal.code.status == 401 && refusal.sentence == "This code was used.")
    #expect(refusal.attemptsLeft == 2)
    #expect(String(decoding: refusal.document(), as: UTF8.self).contains("\"detail\":\"This code was used.\""))
  }

  @Test func refundedRefusalChargesNoAttempt() async throws {
    let (bench, client) = try await bench(
      Scripted(
        outcomes: [Outcome("no_app", "There is none.", isFailure: false)], submits: { _, _ in .refused("no_app") }))
    let id = try await open(bench, client)
    for _ in 0..<9 { #expect(await submit(bench, id, client).refusal?.code.name == "no_app") }
    #expect(try await bench.engine.view(id, client: client).get().step?.attemptsLeft == 3)
  }

  /// Attack: an undeclared outcome whose text contains a secret.
  @Test func anUndeclaredOutcomeIsAFaultAndNeverAPass() async throws {
    let (bench, client) = try await bench(
      Scripted(submits: { _, input in .refused(RefusalReason(rawValue: try input.text("x")) ?? "odd") }))
    let id = try await open(bench, client)
    for _ in 0..<9 { #expect(await submit(bench, id, client, "planted_secret").refusal?.code == .busy) }
    #expect(try await bench.engine.view(id, client: client).get().step?.attemptsLeft == 3, "given back")
    try await bench.audit.flush()
    let events = try await bench.store.events(limit: 100)
    #expect(!events.contains { "\($0)".contains("planted_secret") })
  }

  @Test func knownReasonsKeepTheWordsOfTheGateway() async throws {
    let (bench, client) = try await bench(
      Scripted(outcomes: [Outcome(.invalidPIN, "Other words.")], submits: { _, _ in .refused(.invalidPIN) }))
    let refusal = try #require(await submit(bench, try await open(bench, client), client).refusal)
    #expect(refusal.code == .invalidPIN && refusal.sentence == "Incorrect passcode")
  }

  @Test func aPageIsOfOneProvider() throws {
    let pad = { (name: ProviderName) in Padded(name: name) }
    #expect(throws: ProviderMistake(provider: "other", "its page `vault` is already the page of `vault`")) {
      _ = try ProviderRegistry([pad("vault"), pad("other")])
    }
    let registry = try ProviderRegistry([pad("vault"), Scripted()])
    #expect(
      registry.stepPage(of: "vault") == "/auth/vault" && registry.stepPage(of: "toy") == "/auth/step"
        && registry.ownPage(of: "toy") == nil)
  }

  private struct Padded: FullProvider {
    let name: ProviderName
    var descriptor: ProviderDescriptor {
      ProviderDescriptor(
        name: name, beginFields: [], submitFields: ["a", "b"].map { InputField(name: $0, kind: .digits, length: 6) },
        settings: [],
        policy: PolicySource(file: "toy.lua", text: ""), identifierKinds: [],
        presentation: .digitPad(count: 6, current: "a", new: "b"), page: "vault"
      )
    }

    func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer { .ask([], state: []) }
    func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer { .proved(Proof()) }
  }

  // MARK: what it receives

  /// Attack: an unrequested field reaches a provider that reads it.
  @Test func onlyFieldsThatWereAskedForReachTheProvider() async throws {
    let seen = Mutex<[[String]]>([])
    let (bench, client) = try await bench(
      Scripted(submits: { step, input in
        seen.withLock { $0.append(input.fields.keys.sorted()) }
        return step.state.isEmpty ? .ask([InputField(name: "second", kind: .text)], state: [1]) : .proved(Proof())
      }))
    let id = try await open(bench, client)
    let all: [String: InputValue] = ["x": .text("y"), "second": .text("z"), "is_admin": .flag(true), "record": .other]
    _ = try await bench.engine.submit(id, fields: all, client: client).get()
    _ = try await bench.engine.submit(id, fields: all, client: client).get()
    #expect(seen.withLock { $0 } == [["x"], ["second"]])
  }

  @Test func digitsArriveAsASCII() async throws {
    let seen = Mutex<[InputValue?]>([])
    let (bench, client) = try await bench(
      Scripted(
        begins: { _ in .ask([InputField(name: "x", kind: .digits)], state: []) },
        submits: { _, input in
          seen.withLock { $0.append(input.fields["x"]) }
          return .proved(Proof())
        }))
    let id = try await open(bench, client)
    _ = try await bench.engine.submit(id, fields: ["x": .text("\u{200B}１२\u{2013}34\n")], client: client).get()
    #expect(seen.withLock { $0 } == [.text("1234")])
  }

  @Test func aMissingFieldIsRefusedWithoutACall() async throws {
    let calls = Mutex(0)
    let (bench, client) = try await bench(
      Scripted(submits: { _, _ in
        calls.withLock { $0 += 1 }
        return .proved(Proof())
      }))
    let id = try await open(bench, client)
    let refusal = try #require(await bench.engine.submit(id, fields: ["y": .text("1")], client: client).refusal)
    #expect(
      refusal.code == .invalidInput && refusal.field == "x" && refusal.code.status == 422
        && refusal.sentence == "x is missing.")
    #expect(calls.withLock { $0 } == 0)
    #expect(try await bench.engine.view(id, client: client).get().step?.attemptsLeft == 3, "not counted")
  }

  @Test(arguments: [
    (InputField(name: "x", kind: .text, length: 4), "abc", "x takes 4 characters."),
    (InputField(name: "x", kind: .text, length: 4), "abcde", "x takes 4 characters."),
    (InputField(name: "x", kind: .phone), "abc", "x must be a phone number."),
    (InputField(name: "x", kind: .email), "asha", "x must be an email address."),
    (InputField(name: "x", kind: .email), "@b", "x must be an email address."),
    (InputField(name: "x", kind: .email), "a@", "x must be an email address."),
    (InputField(name: "x", kind: .email), "a b@c", "x must be an email address."),
    (InputField(name: "x", kind: .email), "a\u{0}@c", "x must be an email address."),
  ])
  func aTextOfAnotherFormIsRefused(_ field: InputField, _ text: String, _ sentence: String) {
    #expect(field.problem(with: .text(text))?.detail == sentence)
  }

  @Test(arguments: [
    (InputField(name: "x", kind: .text, length: 4), "äöüß"),
    (InputField(name: "x", kind: .phone), "+91 (999) 99-99999"),
    (InputField(name: "x", kind: .phone), "९८७६५"), (InputField(name: "x", kind: .email), " asha@example.com\n"),
    (InputField(name: "x", kind: .email, isRequired: false), ""),
    (InputField(name: "x", kind: .text, length: 4, isRequired: false), ""),
  ])
  func commonSpellingsFitTheField(_ field: InputField, _ text: String) {
    #expect(field.problem(with: .text(text)) == nil)
  }

  @Test(arguments: [
    (InputValue.flag(true), "x must be a string."), (.other, "x must be a string."),
    (.text("12345"), "x takes 6 digits."),
    (.text("12345a"), "x takes digits only."), (.text(String(repeating: "1", count: 16_385)), "x is too long."),
  ])
  func aValueThatDoesNotFitIsRefusedAndNotCounted(_ value: InputValue, _ sentence: String) async throws {
    let asked = InputField(name: "x", kind: .digits, length: 6)
    let (bench, client) = try await bench(Scripted(begins: { _ in .ask([asked], state: []) }))
    let id = try await open(bench, client)
    let refusal = try #require(await bench.engine.submit(id, fields: ["x": value], client: client).refusal)
    #expect(refusal.code == .invalidInput && refusal.field == "x" && refusal.sentence == sentence)
    #expect(try await bench.engine.view(id, client: client).get().step?.attemptsLeft == 3)
    // People paste codes with spaces.
    #expect(
      try await bench.engine.submit(id, fields: ["x": .text("123 456")], client: client).get().status == .complete)
  }

  /// Attack: a value of the wrong type or length reaches a provider through `begin`.
  @Test(arguments: [
    (InputValue.flag(true), "item must be a string."), (.text("123"), "item takes 4 digits."),
    (.text("12a4"), "item takes digits only."),
    (.text(String(repeating: "1", count: 16_385)), "item is too long."),
  ])
  func aBeginFieldThatDoesNotFitIsRefusedWithoutACall(_ value: InputValue, _ sentence: String) async throws {
    let calls = Mutex(0)
    let item = InputField(name: "item", kind: .digits, length: 4, isRequired: false)
    let (bench, client) = try await bench(
      Scripted(
        beginFields: [item],
        begins: { _ in
          calls.withLock { $0 += 1 }
          return .ask([InputField(name: "x", kind: .text)], state: [])
        }))
    let id = try await bench.engine.create("step_up", returnTo: nil, browser: nil, client: client).get().id
    let refusal = try #require(
      await bench.engine.begin(id, provider: "toy", fields: ["item": value], client: client).refusal)
    #expect(refusal.code == .invalidInput && refusal.field == "item" && refusal.sentence == sentence)
    #expect(calls.withLock { $0 } == 0)
    #expect(
      try await bench.engine.begin(id, provider: "toy", fields: ["item": .text("12-34")], client: client).get().step
        != nil)
  }

  @Test func aRequiredBeginFieldMustBeThere() async throws {
    let (bench, client) = try await bench(
      Scripted(beginFields: [InputField(name: "item", kind: .text), InputField(name: "phone", kind: .phone)]))
    let id = try await bench.engine.create("step_up", returnTo: nil, browser: nil, client: client).get().id
    let refusal = try #require(await bench.engine.begin(id, provider: "toy", fields: [:], client: client).refusal)
    #expect(refusal.code == .invalidInput && refusal.field == "item" && refusal.sentence == "item is missing.")
    // The session tells whose step it is.
    #expect(
      try await bench.engine.begin(id, provider: "toy", fields: ["item": .text("a")], client: client).get().step != nil)
  }

  @Test(arguments: [
    (InputField.Kind.digits, "12 34", true), (.digits, "12\u{2013}34", true), (.text, "AB-CD", true),
    (.digits, "\u{200B}12\u{FEFF}34", true), (.digits, "１２３４", true), (.digits, "12.34", false),
    (.text, "AB\u{00A0}CD\u{200B}", true),
    (.text, "AB CD ", true), (.text, "A-CD", true),
    (.text, "AB-CDE", false), (.password, "ab c", true), (.password, "ab cd", false), (.password, "ab-cd", false),
  ])
  func separatorsCountByKind(_ kind: InputField.Kind, _ typed: String, _ fits: Bool) {
    #expect((InputField(name: "x", kind: kind, length: 4).problem(with: .text(typed)) == nil) == fits)
  }

  @Test(arguments: [
    [InputField(name: "a", kind: .text), InputField(name: "a", kind: .digits)],
    [InputField(name: "Not A Name", kind: .text)],
    [InputField(name: "code_verifier", kind: .text)], [InputField(name: "remember", kind: .text)],
    [InputField(name: "a", kind: .digits, length: 0)],
    (0..<17).map { InputField(name: "a\($0)", kind: .text) },
  ])
  func unavailableRequirementIsAFault(_ fields: [InputField]) async throws {
    let (first, client) = try await bench(Scripted(begins: { _ in .ask(fields, state: []) }))
    let id = try await first.engine.create("step_up", returnTo: nil, browser: nil, client: client).get().id
    #expect(await first.engine.begin(id, provider: "toy", fields: [:], client: client).refusal?.code == .busy)
    let (second, other) = try await bench(Scripted(submits: { _, _ in .ask(fields, state: [1]) }))
    let later = try await open(second, other)
    #expect(await submit(second, later, other).refusal?.code == .busy)
    #expect(try await second.engine.view(later, client: other).get().step?.attemptsLeft == 3, "given back")
  }

  @Test func callsAreCountedByOutcome() async throws {
    struct Broken: Error {}
    let (bench, client) = try await bench(
      Scripted(
        outcomes: [Outcome("wrong_word", "No.")],
        submits: { _, input in
          switch try input.text("x") {
          case "wrong": .refused("wrong_word")
          case "broken": throw Broken()
          default: .proved(Proof())
          }
        }))
    let id = try await open(bench, client)
    for text in ["wrong", "broken", "broken", "right"] { _ = await submit(bench, id, client, text) }
    let text = MetricText.write(bench.engine.providerMetrics.families)
    for line in [
      "moongate_provider_calls_total{provider=\"toy\",call=\"begin\",outcome=\"asked\"} 1",
      "moongate_provider_calls_total{provider=\"toy\",call=\"submit\",outcome=\"fault\"} 2",
      "moongate_provider_calls_total{provider=\"toy\",call=\"submit\",outcome=\"proved\"} 1",
      "moongate_provider_calls_total{provider=\"toy\",call=\"submit\",outcome=\"refused\"} 1",
      "moongate_provider_call_seconds_count{provider=\"toy\",call=\"submit\"} 4",
      "moongate_provider_calls_total{provider=\"phone_otp\",call=\"deliver\",outcome=\"delivered\"} 1",
    ] { #expect(text.contains(line + "\n"), "\(line)\n\(text)") }
  }

  // MARK: refusals that go on

  /// Attack: a provider declares that the refusal of a wrong answer is not counted, and its secret can be guessed
  /// without end.
  @Test func refusalsThatAreNotCountedAreBounded() async throws {
    let (bench, client) = try await bench(
      Scripted(outcomes: [Outcome("wrong_word", "No.", isFailure: false)], submits: { _, _ in .refused("wrong_word") }))
    let id = try await open(bench, client)
    for _ in 0..<10 { #expect(await submit(bench, id, client).refusal?.code.name == "wrong_word") }
    // The count is kept per account, whichever flow it is tried in.
    let other = try await open(bench, client)
    for _ in 0..<10 { #expect(await submit(bench, other, client).refusal?.code.name == "wrong_word") }
    #expect(try await bench.engine.view(other, client: client).get().step?.attemptsLeft == 3)
    let counted = try #require(await submit(bench, other, client).refusal)
    #expect(counted.code.name == "wrong_word" && counted.attemptsLeft == 2)
    _ = await submit(bench, other, client)
    #expect(await submit(bench, other, client).refusal?.code == .tooManyAttempts)
  }

  @Test(arguments: [true, false]) func aRefusalMayGoBackToTheFirstRound(isFailure: Bool) async throws {
    let (bench, client) = try await bench(
      Scripted(
        outcomes: [Outcome("wrong_word", "No.", isFailure: isFailure)],
        submits: { step, _ in
          step.state.isEmpty
            ? .ask([InputField(name: "second", kind: .text)], state: [1])
            : .refused(
              "wrong_word", then: .ask([InputField(name: "x", kind: .text)], state: [], showing: [.text("Once more.")]))
        }))
    let id = try await open(bench, client)
    #expect(try await submit(bench, id, client).get().step?.fields.map(\.name) == ["second"])
    let refusal = try #require(await bench.engine.submit(id, fields: ["second": .text("no")], client: client).refusal)
    #expect(refusal.code.name == "wrong_word" && refusal.attemptsLeft == (isFailure ? 2 : nil))
    let step = try #require(try await bench.engine.view(id, client: client).get().step)
    #expect(
      step.fields.map(\.name) == ["x"] && step.shown == [.text("Once more.")]
        && step.attemptsLeft == (isFailure ? 2 : 3))
  }

  // MARK: declarations

  @Test(arguments: [
    (
      Scripted(outcomes: [Outcome("too_many_attempts", "x")]),
      "the outcome `too_many_attempts` is one of the gateway's own codes: choose another name"
    ),
    (
      Scripted(outcomes: [Outcome("Bad", "x")]),
      "the outcome `Bad` is ill-formed: lower-case letters, digits and underscores, a letter first, 48 characters at most"
    ),
    (Scripted(outcomes: [Outcome("a", "x"), Outcome("a", "y")]), "the outcome `a` is declared twice"),
    (
      Scripted(outcomes: [Outcome("a", "x\ny")]),
      "the outcome `a` needs one sentence for the person: plain text of at most 300 bytes"
    ),
    (Scripted(receivesWebhooks: true), "it declares `receivesWebhooks` but is not a WebhookReceiver"),
    (
      Scripted(callbackFields: ["code", "code"].map { InputField(name: $0, kind: .text) }),
      "the callback field `code` is declared twice"
    ),
    (
      Scripted(callbackFields: [InputField(name: "returned", kind: .text)]),
      "no callback field can be called `returned` or `code_verifier`: the gateway has these itself"
    ),
    (
      Scripted(sdk: 2),
      "it was written for version 2 of MoongateSDK, and this program has version 1: update the program"
    ),
    (
      Scripted(sdk: 0),
      "it was written for version 0 of MoongateSDK, and this program has version 1: update the provider"
    ),
    (
      Scripted(name: "Toy"),
      "its name `Toy` is ill-formed: lower-case letters, digits and underscores, a letter first, 48 characters at most"
    ),
    // Attack: a plugin reads the gateway's own values, such as the private key that signs ID tokens.
    (
      Scripted(name: "apps"),
      "no provider can be called `apps`: the gateway keeps its own values under this name"
    ),
    (
      Scripted(name: "app_api"),
      "no provider can be called `app_api`: the gateway keeps its own values under this name"
    ),
    (
      Scripted(name: "token"),
      "no provider can be called `token`: the gateway keeps its own values under this name"
    ),
  ]) func invalidProviderIsRefusedAtStart(_ provider: Scripted, _ mistake: String) {
    #expect(throws: ProviderMistake(provider: provider.name, mistake)) { try ProviderRegistry([provider]) }
  }

  @Test func duplicateProviderNamesAreRefused() {
    #expect(throws: ProviderMistake(provider: "toy", "two providers of this program have this name")) {
      try ProviderRegistry([Scripted(), Scripted()])
    }
  }

  // MARK: what is shown

  private static let secret = "JBSWY3DPEHPK3PXP"

  private static func showing() -> Scripted {
    Scripted(begins: { _ in
      .ask(
        [InputField(name: "x", kind: .text)], state: [],
        showing: [.qr("otpauth://\(secret)"), .secret(secret), .list(["a1", "b2"]), .text("Scan it.")])
    })
  }

  @Test func shownContentIsBoundToItsFlowAndSealed() async throws {
    let (bench, client) = try await bench(Self.showing())
    let id = try await open(bench, client)
    #expect(
      try await bench.engine.view(id, client: client).get().step?.shown == [
        .qr("otpauth://\(Self.secret)"), .secret(Self.secret), .list(["a1", "b2"]), .text("Scan it."),
      ])
    let record = try #require(try await bench.store.flow(id.hash))
    #expect(!"\(record)".contains(Self.secret) && record.step?.shown != nil)
    try await bench.audit.flush()
    #expect(!"\(try await bench.store.events(limit: 100))".contains(Self.secret))
    // Other sessions, and requests without one, do not see it.
    #expect(await bench.engine.view(id, client: bench.client()).refusal?.code == .unauthenticated)
    // It is gone once the step is over.
    let done = try await submit(bench, id, client).get()
    #expect(done.step == nil)
    #expect(try await bench.store.flow(id.hash).map { !"\($0)".contains("shown: Optional(") } ?? true)
  }

  /// Attack: an attacker who created an app's flow and sent its link to a victim reads what the victim's step shows.
  @Test func flowOfAnAppShowsItsStepOnlyToItsBrowser() async throws {
    let (bench, _) = try await bench(Self.showing()) { generation in
      generation.flows["enter"] = .test("enter", account: .any, steps: [.test(EngineTestBench.phone), .test(Self.toy)])
    }
    bench.clock.advance(by: .seconds(2000))
    let page = bench.client(browser: TokenHash(of: "browser".utf8), at: .page)
    let id = try await bench.openedForApp("enter", in: page)
    _ = try await bench.engine.begin(
      id, provider: "phone_otp", fields: ["phone": .text("919999999999")], client: page
    ).get()
    let code: [String: InputValue] = ["code": .text(bench.code)]
    _ = try await bench.engine.submit(id, fields: code, client: page).get()
    let view = try await bench.engine.begin(id, provider: "toy", fields: [:], client: page).get()
    #expect(view.step?.provider == Self.toy && view.step?.shown != [])
    let told = try await bench.engine.view(id, client: bench.client()).get()
    #expect(told.status == .pending && told.step == nil)
  }

  // MARK: records

  /// Attack: one code of an authenticator app, read over a shoulder, is used in two flows at once; both verify it
  /// against the same record.
  @Test(arguments: [true, false]) func aProofThatIsGoodOnceCompletesOneFlow(isOnce: Bool) async throws {
    let (bench, client) = try await bench(
      Scripted(submits: { step, _ in
        let next: [UInt8] = [(step.account?.record?.first ?? 0) + 1]
        return .proved(Proof(record: step.purpose == .set || !isOnce ? .replace(next) : .replaceOnce(next)))
      })
    ) { generation in
      generation.flows["login"] = .test(
        "login", account: .existing, steps: [.test(EngineTestBench.phone), .test(Self.toy)])
    }
    _ = try await submit(bench, try await open(bench, client, "toy_set"), client).get()
    bench.clock.advance(by: .seconds(2000))
    // Two flows, both at the step of the toy provider.
    var flows: [FlowID] = []
    for _ in 0..<2 {
      let id = try await bench.begun()
      _ = try await bench.submit(id, bench.code).get()
      _ = try await bench.engine.begin(id, provider: "toy", fields: [:], client: bench.client()).get()
      flows.append(id)
      bench.clock.advance(by: .seconds(100))
    }
    let results = await withTaskGroup(of: Result<FlowView, Refusal>.self) { group in
      for id in flows { group.addTask { await submit(bench, id, bench.client()) } }
      return await group.reduce(into: []) { $0.append($1) }
    }
    // The same happens when they run in sequence: the second is then verified against the new record.
    let sessions = results.compactMap { try? $0.get().session }.count
    if !isOnce { #expect(sessions == 2) }
    #expect(sessions >= 1)
    for refusal in results.compactMap(\.refusal) { #expect(refusal.code == .stepNotOpen) }
  }

  /// The same without depending on the scheduler: the second flow was verified before the first completed.
  @Test func secondProofOfTheSameRecordIsRefused() async throws {
    let (bench, _) = try await bench(Scripted(submits: { _, _ in .proved(Proof(record: .replaceOnce([9]))) })) {
      generation in
      generation.flows["login"] = .test(
        "login", account: .existing,
        steps: [.test(EngineTestBench.phone), .test(Self.toy), .test(EngineTestBench.phone)])
    }
    bench.clock.advance(by: .seconds(2000))
    var flows: [FlowID] = []
    for _ in 0..<2 {
      let id = try await bench.begun()
      _ = try await bench.submit(id, bench.code).get()
      _ = try await bench.engine.begin(id, provider: "toy", fields: [:], client: bench.client()).get()
      _ = try await submit(bench, id, bench.client()).get()
      flows.append(id)
      bench.clock.advance(by: .seconds(130))
    }
    var codes: [String?] = []
    for id in flows {
      _ = try await bench.begin(id).get()
      codes.append(await bench.submit(id, bench.code).refusal?.code.name)
      bench.clock.advance(by: .seconds(130))
    }
    #expect(codes == [nil, "step_not_open"])
  }

  /// Attack: the old secret is proved, and its flow waits at the next step until the owner has set another one; on
  /// completion the rehashed old secret would be stored again.
  @Test func proofOfAReplacedSecretDoesNotRestoreIt() async throws {
    let (bench, client) = try await bench(
      Scripted(submits: { step, _ in .proved(Proof(record: step.purpose == .set ? .replaceOnce([7]) : .replace([9]))) })
    ) { generation in
      generation.flows["login"] = .test(
        "login", account: .existing,
        steps: [.test(EngineTestBench.phone), .test(Self.toy), .test(EngineTestBench.phone)])
    }
    func waiting() async throws -> FlowID {
      bench.clock.advance(by: .seconds(130))
      let id = try await bench.begun()
      _ = try await bench.submit(id, bench.code).get()
      _ = try await bench.engine.begin(id, provider: "toy", fields: [:], client: bench.client()).get()
      _ = try await submit(bench, id, bench.client()).get()
      return id
    }
    func end(_ id: FlowID) async throws -> [UInt8]? {
      bench.clock.advance(by: .seconds(130))
      _ = try await bench.begin(id).get()
      let account = try #require(try await bench.submit(id, bench.code).get().account)
      return try await bench.store.providerRecord(of: account.id, for: Self.toy)
    }
    let old = try await waiting()
    let set = try #require(try await submit(bench, try await open(bench, client, "toy_set"), client).get().account)
    let own = try await bench.store.providerRecord(of: set.id, for: Self.toy)
    #expect(try await end(old) == own)
    // A proof against the current record renews it. (This many codes may go to one number in a quarter of an hour.)
    bench.clock.advance(by: .seconds(1_000))
    #expect(try await end(try await waiting()) != own)
  }

  // MARK: what it may name

  /// Attack: a provider of some other kind proves whatever number it likes.
  @Test(arguments: [true, false]) func providerCannotProveUndeclaredIdentifiers(isClaimed: Bool) async throws {
    let number = Identifier(kind: .phone, value: "+919999999999", display: "")
    let (bench, client) = try await bench(
      Scripted(submits: { _, _ in .proved(isClaimed ? Proof(claimed: [number]) : Proof(proved: [number])) }))
    let id = try await open(bench, client)
    for _ in 0..<9 { #expect(await submit(bench, id, client).refusal?.code == .busy) }
    #expect(try await bench.engine.view(id, client: client).get().step?.attemptsLeft == 3, "given back")
  }

  @Test(arguments: [
    "javascript:alert(1)", "//evil.example", "https://a.example/\r\nX: 1", "", "data:text/html,x", "https://ä.example",
    "http://site.example/",
    "http://localhost.example.com/", "http://localhost@site.example/", "https://bank.example@site.example/",
    #"https://a\@site.example/"#,
    "https:///x",
    "http://127.0.0.1.example/", "http://site.localhost/", "http://127.1/",
  ])
  func invalidRedirectAddressIsAFault(_ address: String) async throws {
    let (first, client) = try await bench(Scripted(begins: { _ in .redirect(to: address, state: []) }))
    let id = try await first.engine.create("step_up", returnTo: nil, browser: nil, client: client).get().id
    #expect(await first.engine.begin(id, provider: "toy", fields: [:], client: client).refusal?.code == .busy)
    let (second, other) = try await bench(Scripted(submits: { _, _ in .redirect(to: address, state: []) }))
    let later = try await open(second, other)
    for _ in 0..<9 { #expect(await submit(second, later, other).refusal?.code == .busy) }
  }

  /// TLS, or the loopback interface.
  @Test(arguments: [
    "https://site.example/a?b=c", "HTTPS://site.example", "http://localhost:8080/mock", "http://127.0.0.1:25000/",
    "http://[::1]:25000/", "http://127.0.0.2/",
  ])
  func aSiteIsReachedSafely(_ address: String) { #expect(SiteAddress.isSite(address)) }

  @Test func inputProblemHasASentenceAndAFieldName() async throws {
    let (bench, client) = try await bench(
      Scripted(submits: { _, input in
        .malformed(
          InputProblem(
            field: "planted secret \(try input.text("x"))", reason: .invalidInput,
            detail: String(repeating: "long ", count: 100)))
      }))
    let refusal = try #require(await submit(bench, try await open(bench, client), client, "hunter2").refusal)
    #expect(refusal.code == .invalidInput && refusal.field == nil && refusal.sentence == "The request cannot be read.")
  }

  @Test func providerRecordsAreBounded() async throws {
    let much = [UInt8](repeating: 1, count: 65_537)
    let (first, client) = try await bench(Scripted(begins: { _ in .ask([], state: much) }))
    let id = try await first.engine.create("step_up", returnTo: nil, browser: nil, client: client).get().id
    #expect(
      await first.engine.begin(id, provider: "toy", fields: [:], client: client).refusal?.code == .storeUnavailable)
    let (second, other) = try await bench(
      Scripted(begins: { _ in .ask([], state: [], showing: [.text(String(repeating: "x", count: 65_537))]) }))
    let later = try await second.engine.create("step_up", returnTo: nil, browser: nil, client: other).get().id
    #expect(
      await second.engine.begin(later, provider: "toy", fields: [:], client: other).refusal?.code == .storeUnavailable)
  }

  // MARK: purposes

  @Test(arguments: [
    ("toy_set", StepPurpose.set), ("toy_change", .change), ("toy_disable", .disable), ("step_up", .prove),
  ])
  func theFlowMakesThePurpose(_ flow: String, _ purpose: StepPurpose) async throws {
    let (bench, client) = try await bench(
      Scripted(
        outcomes: [Outcome("yes", "Yes.")], begins: { $0.purpose == purpose ? .ask([], state: []) : .refused("yes") }))
    _ = try await open(bench, client, flow)
    let meant = bench.generations.current.purpose(of: flow)
    #expect(meant.needsSession)
    // For another provider it is an ordinary step.
    #expect(meant.step(of: "pin") == .prove)
  }

  /// Attack: a stolen session sets up the missing app.
  @Test func settingRequiresAFreshProof() async throws {
    let (bench, client) = try await bench(Scripted())
    _ = try await open(bench, client, "toy_set")
    // A forgotten secret is replaced after another step.
    let id = try await bench.engine.create("toy_reset", returnTo: nil, browser: nil, client: client).get().id
    #expect(await bench.engine.begin(id, provider: "toy", fields: [:], client: client).refusal?.code == .stepNotOpen)
    bench.clock.advance(by: .seconds(601))
    #expect(
      await bench.engine.create("toy_set", returnTo: nil, browser: nil, client: client).refusal?.code == .stepUpRequired
    )
    #expect(
      await bench.engine.create("toy_set", returnTo: nil, browser: nil, client: bench.client()).refusal?.code
        == .unauthenticated)
    #expect(
      await bench.engine.create("toy_reset", returnTo: nil, browser: nil, client: client).refusal?.code
        == .stepUpRequired)
  }

  // MARK: logs

  @Test func loggedProviderTextIsRedacted() async throws {
    struct Quoting: Error { let text: String }
    let log = CapturedLog()
    let provider = Scripted(submits: { step, input in
      let typed = try input.text("x")
      step.tools.log.notice(
        "Looking at \(typed) of \(step.account?.identifiers.first?.value ?? "")", ["typed": typed, typed: "key"])
      throw Quoting(text: typed)
    })
    let generation = TestGeneration.gateway(for: [provider])
    let clock = ManualClock()
    let keys = try KeyRing(master: [UInt8](repeating: 7, count: 32))
    let store = try SQLiteStore.memory()
    let engine = FlowEngine(
      store: store, generations: ActiveGeneration(generation, at: clock.now()),
      providers: try ProviderRegistry([provider]), delivery: ToyDelivery(),
      clock: clock, random: SystemRandom(), keys: keys, audit: AuditTrail(store: store, logger: log.logger),
      logger: log.logger)
    let client = ClientContext(
      decision: DecisionID(from: SystemRandom()), address: .unspecified, userAgent: nil, browser: nil,
      session: try await session(store, clock))
    let id = try await engine.create("login", returnTo: nil, browser: nil, client: client).get().id
    _ = try await engine.begin(id, provider: "toy", fields: [:], client: client).get()
    #expect(await engine.submit(id, fields: ["x": .text("hunter-2-planted")], client: client).refusal?.code == .busy)
    let lines = log.lines.joined(separator: "\n")
    #expect(lines.contains("notice toy: Looking at [redacted] of [redacted]") && lines.contains("fault="))
    #expect(!lines.contains("hunter") && !lines.contains("919999999999"))
  }

  private func session(_ store: any Store, _ clock: ManualClock) async throws -> SessionSnapshot {
    let now = clock.now()
    let number = Identifier(kind: .phone, value: "+919999999999", display: "+91 99999 99999")
    let token = SessionToken(from: SystemRandom())
    let session = Session(
      id: "se_1", token: token.hash, account: "ac_1", createdAt: now, expiresAt: now + .seconds(3600),
      idle: .seconds(3600), lastSeenAt: now,
      passed: [],
      userAgent: nil)
    let account = Account(
      id: "ac_1", firstName: nil, lastName: nil, createdAt: now, lastSeenAt: now,
      identifiers: [HeldIdentifier(identifier: number, verifiedAt: now)])
    _ = try await store.apply([.createAccount(account), .putSession(session)], at: now)
    return try #require(try await SessionDirectory(store: store, clock: clock).find(token.hash))
  }
}
