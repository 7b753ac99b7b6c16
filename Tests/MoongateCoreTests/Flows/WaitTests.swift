import MoongateSDK
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateCore

/// Steps that wait for a decision made elsewhere, such as a push approval.
@Suite struct WaitTests {
  private static let toy: ProviderName = "toy"

  /// The vendor: holds the user's decision and counts the polls.
  private final class Vendor: Sendable {
    private let state = Mutex((answer: StepAnswer?.none, begins: 0, polls: 0))

    var begins: Int { state.withLock { $0.begins } }
    var polls: Int { state.withLock { $0.polls } }

    func answers(_ answer: StepAnswer) { state.withLock { $0.answer = answer } }
    func begun() { state.withLock { $0.begins += 1 } }
    func asked() -> StepAnswer {
      state.withLock { state in
        state.polls += 1
        return state.answer ?? .wait(poll: .seconds(2), state: [1], showing: [.text("17")])
      }
    }
  }

  private func provider(
    _ vendor: Vendor, first: StepAnswer = .wait(poll: .seconds(2), state: [1], showing: [.text("17")])
  ) -> Scripted {
    Scripted(
      outcomes: [Outcome("declined", "You declined."), Outcome("timed_out", "Nobody answered.", isFailure: false)],
      begins: { _ in
        vendor.begun()
        return first
      }, submits: { _, _ in vendor.asked() })
  }

  /// A bench, and a client whose session has just proved a number.
  private func bench(
    _ provider: Scripted, sharesFlows: Bool = false, _ change: (inout TestGeneration) -> Void = { _ in }
  ) async throws
    -> (EngineTestBench, ClientContext)
  {
    let bench = try await EngineTestBench(others: [provider], sharesFlows: sharesFlows) { generation in
      generation.flows["step_up"] = .test(
        "step_up", account: .existing, steps: [.test(Self.toy, EngineTestBench.phone, isSkippable: true)])
      change(&generation)
    }
    return (bench, try await bench.registeredClient())
  }

  private func open(_ bench: EngineTestBench, _ client: ClientContext) async throws -> FlowID {
    let id = try await bench.engine.create("step_up", returnTo: nil, browser: nil, client: client).get().id
    _ = try await bench.engine.begin(id, provider: "toy", fields: [:], client: client).get()
    return id
  }

  private func poll(_ bench: EngineTestBench, _ id: FlowID, _ client: ClientContext) async -> Result<FlowView, Refusal>
  {
    await bench.engine.submit(id, fields: [:], client: client)
  }

  // MARK: the way through

  @Test func stepWaitsUntilItIsApproved() async throws {
    let vendor = Vendor()
    let (bench, client) = try await bench(provider(vendor))
    let id = try await open(bench, client)
    let step = try #require(try await bench.engine.view(id, client: client).get().step)
    #expect(
      step.fields == [] && step.retryAfter == .seconds(2) && step.shown == [.text("17")] && step.attemptsLeft == 3)
    bench.clock.advance(by: .milliseconds(1_500))
    #expect(try await poll(bench, id, client).get().step?.retryAfter == .milliseconds(500))
    #expect(vendor.polls == 0, "not due yet")
    bench.clock.advance(by: .milliseconds(500))
    #expect(try await bench.engine.view(id, client: client).get().step?.retryAfter == .zero)
    for _ in 0..<5 {
      let waiting = try await poll(bench, id, client).get()
      #expect(
        waiting.step?.retryAfter == .seconds(2) && waiting.step?.attemptsLeft == 3, "a further wait is not counted")
      bench.clock.advance(by: .seconds(2))
    }
    #expect(vendor.polls == 5)
    vendor.answers(.proved(Proof()))
    #expect(try await poll(bench, id, client).get().status == .complete)
    #expect(vendor.begins == 1)
  }

  @Test func pollMayAskForSomethingMore() async throws {
    let vendor = Vendor()
    let (bench, client) = try await bench(provider(vendor))
    let id = try await open(bench, client)
    bench.clock.advance(by: .seconds(2))
    vendor.answers(.ask([InputField(name: "number", kind: .digits)], state: [2]))
    let step = try #require(try await poll(bench, id, client).get().step)
    #expect(step.fields.map(\.name) == ["number"] && step.retryAfter == nil && step.shown == [])
    vendor.answers(.proved(Proof()))
    #expect(
      try await bench.engine.submit(id, fields: ["number": .text("17")], client: client).get().status == .complete)
  }

  /// The first step of a sign-in: `begin` names who is asked.
  @Test func firstStepWaitsForWhomItsIdentifierNames() async throws {
    let vendor = Vendor()
    let bench = try await EngineTestBench(others: [PhonePush(vendor: provider(vendor))]) { generation in
      generation.flows["push"] = .test("push", purpose: .signIn, account: .existing, steps: [.test("phone_push")])
    }
    let account = try await bench.registered()
    let id = try await bench.flow("push")
    _ = try await bench.engine.begin(
      id, provider: nil, fields: ["phone": .text("919999999999")], client: bench.client()
    )
    .get()
    bench.clock.advance(by: .seconds(2))
    vendor.answers(.proved(Proof()))
    let done = try await poll(bench, id, bench.client()).get()
    #expect(done.status == .complete && done.account?.id == account.id && done.session?.token != nil)
  }

  @Test func stepThatWaitsMayBeSkippedOrLeftForAnotherChoice() async throws {
    let (bench, client) = try await bench(provider(Vendor()))
    let id = try await open(bench, client)
    let step = try #require(try await bench.engine.view(id, client: client).get().step)
    #expect(step.isSkippable && step.alternatives == [EngineTestBench.phone])
    #expect(try await bench.engine.skip(id, client: client).get().step == nil)
  }

  // MARK: what is counted

  @Test(arguments: [("declined", 2), ("timed_out", 3)]) func refusalEndsTheWait(reason: String, left: Int) async throws
  {
    let vendor = Vendor()
    let (bench, client) = try await bench(provider(vendor))
    let id = try await open(bench, client)
    bench.clock.advance(by: .seconds(2))
    vendor.answers(.refused(try #require(RefusalReason(rawValue: reason))))
    let refusal = try #require(await poll(bench, id, client).refusal)
    #expect(refusal.code.name == reason && refusal.code.status == 401 && refusal.attemptsLeft == (left == 2 ? 2 : nil))
    let view = try await bench.engine.view(id, client: client).get()
    #expect(view.step == nil && view.choices == [Self.toy, EngineTestBench.phone])
    // A page that is left open keeps polling: this is no further failure.
    #expect(await poll(bench, id, client).refusal?.code == .stepNotOpen)
    #expect(vendor.polls == 1)
    #expect(
      try await bench.engine.begin(id, provider: "toy", fields: [:], client: client).get().step?.attemptsLeft == left)
  }

  @Test func lockedStepIsNotPolled() async throws {
    let vendor = Vendor()
    let (bench, client) = try await bench(provider(vendor))
    vendor.answers(.refused("declined"))
    for _ in 0..<3 {
      let id = try await open(bench, client)
      bench.clock.advance(by: .seconds(2))
      _ = await poll(bench, id, client)
    }
    let id = try await bench.engine.create("step_up", returnTo: nil, browser: nil, client: client).get().id
    #expect(
      await bench.engine.begin(id, provider: "toy", fields: [:], client: client).refusal?.code == .tooManyAttempts)
    #expect(vendor.begins == 3 && vendor.polls == 3)
  }

  /// Attack: an attacker who has the password sends the victim prompt after prompt until they approve one to be left in
  /// peace.
  @Test func everyPromptCountsOnBegin() async throws {
    let vendor = Vendor()
    let (bench, client) = try await bench(provider(vendor)) { generation in
      generation.policies[Self.toy] = .test(
        Self.toy,
        limits: EngineTestBench.perAccount + [
          .test("prompts", on: .begin, per: .account, max: 2, window: .seconds(900))
        ])
    }
    let id = try await open(bench, client)
    #expect(await bench.engine.begin(id, provider: "toy", fields: [:], client: client).refusal == nil)
    #expect(await bench.engine.begin(id, provider: "toy", fields: [:], client: client).refusal?.code == .rateLimited)
    let other = try await bench.engine.create("step_up", returnTo: nil, browser: nil, client: client).get().id
    #expect(await bench.engine.begin(other, provider: "toy", fields: [:], client: client).refusal?.code == .rateLimited)
    #expect(vendor.begins == 2)
  }

  // MARK: attacks

  /// Attack: a poll is not counted, so fields in it would be guesses without a limit.
  @Test func fieldsOfAPollAreRefusedWithoutACall() async throws {
    let vendor = Vendor()
    let (bench, client) = try await bench(provider(vendor))
    let id = try await open(bench, client)
    bench.clock.advance(by: .seconds(2))
    let refusal = try #require(await bench.engine.submit(id, fields: ["x": .text("1234")], client: client).refusal)
    #expect(refusal.code == .invalidInput && refusal.field == "x")
    #expect(vendor.polls == 0)
  }

  /// Attack: a thousand polls at once, each of which would call the vendor.
  @Test func parallelPollsAreOneCall() async throws {
    let vendor = Vendor()
    let (bench, client) = try await bench(provider(vendor))
    let id = try await open(bench, client)
    bench.clock.advance(by: .seconds(2))
    let refusals = await withTaskGroup(of: Refusal?.self) { group in
      for _ in 0..<50 { group.addTask { await poll(bench, id, client).refusal } }
      return await group.reduce(into: [Refusal]()) { all, refusal in if let refusal { all.append(refusal) } }
    }
    #expect(refusals.map(\.code) == [] && vendor.polls == 1)
  }

  /// Attack: two polls have both read the flow before either claims its turn.
  @Test func pollsThatReadTheSameFlowAreOneCall() async throws {
    let vendor = Vendor()
    let (bench, client) = try await bench(provider(vendor), sharesFlows: true)
    let id = try await open(bench, client)
    bench.clock.advance(by: .seconds(2))
    let engine = bench.racingEngine()
    async let first = engine.submit(id, fields: [:], client: client)
    async let second = engine.submit(id, fields: [:], client: client)
    #expect(await [first.refusal?.code, second.refusal?.code] == [nil, nil])
    #expect(vendor.polls == 1)
  }

  /// Attack: an interval of zero makes every client poll without a pause; an interval of days keeps the row of the
  /// flow.
  @Test(arguments: [Duration.zero, .milliseconds(999), .milliseconds(60_001), .seconds(-5)])
  func intervalOutOfBoundsIsAFault(_ interval: Duration) async throws {
    let vendor = Vendor()
    let (bench, client) = try await bench(provider(vendor, first: .wait(poll: interval, state: [])))
    let id = try await bench.engine.create("step_up", returnTo: nil, browser: nil, client: client).get().id
    #expect(await bench.engine.begin(id, provider: "toy", fields: [:], client: client).refusal?.code == .busy)
    #expect(try await bench.engine.view(id, client: client).get().step == nil)
    let later = Vendor()
    let (second, owner) = try await self.bench(provider(later))
    let open = try await open(second, owner)
    second.clock.advance(by: .seconds(2))
    later.answers(.wait(poll: interval, state: []))
    #expect(await poll(second, open, owner).refusal?.code == .busy)
    #expect(try await second.engine.view(open, client: owner).get().step?.attemptsLeft == 3, "given back")
  }

  @Test func flowsLifetimeBoundsTheWait() async throws {
    let vendor = Vendor()
    let (bench, client) = try await bench(provider(vendor))
    let id = try await open(bench, client)
    bench.clock.advance(by: .seconds(900))
    vendor.answers(.proved(Proof()))
    #expect(await poll(bench, id, client).refusal?.code == .flowExpired)
    #expect(vendor.polls == 0)
  }

  /// Attack: the id of a flow that a browser began is read over a shoulder and polled from another device until its
  /// owner approves.
  @Test func anotherBrowserCannotPoll() async throws {
    let vendor = Vendor()
    let bench = try await EngineTestBench(others: [PhonePush(vendor: provider(vendor))]) { generation in
      generation.flows["push"] = .test("push", purpose: .signIn, account: .existing, steps: [.test("phone_push")])
    }
    try await bench.registered()
    let mine = bench.client(browser: TokenHash(of: "mine".utf8), at: .page)
    let id = try await bench.engine.create("push", returnTo: nil, browser: mine.browser, client: mine).get().id
    _ = try await bench.engine.begin(id, provider: nil, fields: ["phone": .text("919999999999")], client: mine).get()
    bench.clock.advance(by: .seconds(2))
    vendor.answers(.proved(Proof()))
    for other in [
      bench.client(), bench.client(browser: TokenHash(of: "other".utf8), at: .page), bench.client(at: .page),
    ] {
      #expect(await poll(bench, id, other).refusal?.code == .flowNotFound)
      #expect(await bench.engine.view(id, client: other).refusal?.code == .flowNotFound)
    }
    #expect(vendor.polls == 0)
    #expect(try await poll(bench, id, mine).get().status == .complete)
  }

  // MARK: what travels with the step

  @Test func providerReceivesTheFieldsOfTheRound() async throws {
    let seen = Mutex<[[String]]>([])
    let note = { @Sendable (step: StepContext) in seen.withLock { $0.append(step.asked.map(\.name)) } }
    let (bench, client) = try await bench(
      Scripted(
        begins: { step in
          note(step)
          return .ask([InputField(name: "first", kind: .text)], state: [])
        },
        submits: { step, _ in
          note(step)
          return step.state == [1] ? .proved(Proof()) : .ask([], state: [1], showing: [.text("Keep these.")])
        }))
    let id = try await open(bench, client)
    _ = try await bench.engine.submit(id, fields: ["first": .text("a")], client: client).get()
    #expect(try await bench.engine.submit(id, fields: [:], client: client).get().status == .complete)
    #expect(seen.withLock { $0 } == [[], ["first"], []])
  }
}

/// A push approval for the owner of a number.
private struct PhonePush: FullProvider {
  let vendor: Scripted

  var descriptor: ProviderDescriptor {
    ProviderDescriptor(
      name: "phone_push", beginFields: [InputField(name: "phone", kind: .phone)], submitFields: [], settings: [],
      policy: PolicySource(file: "toy.lua", text: ""), identifierKinds: [.phone])
  }

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier? {
    try ToyCode(name: "toy_code").readIdentifier(input)
  }
  func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    try await vendor.begin(step, input)
  }
  func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    try await vendor.submit(step, input)
  }
}
