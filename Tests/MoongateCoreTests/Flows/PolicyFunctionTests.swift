import MoongateSDK
import MoongateStore
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateCore

/// What policy functions and full providers can and cannot do in a flow.
@Suite struct PolicyFunctionTests {
  private static let send = FunctionName("send")
  private static let verify = FunctionName("verify")

  private func bench(_ verdicts: [FunctionName: @Sendable (Facts) -> Verdict]) async throws -> EngineTestBench {
    try await EngineTestBench {
      $0.policies[EngineTestBench.phone] = .test(EngineTestBench.phone, send: Self.send, verify: Self.verify)
      $0.verdicts = verdicts
    }
  }

  @Test func deniedSendReportsItsReasonAndChargesNothing() async throws {
    let bench = try await bench([
      Self.send: { $0.identifier?.attributes["country"] == "IN" ? .deny("country_not_served") : .allow }
    ])
    let refusal = await bench.begin(try await bench.flow("register")).refusal
    #expect(refusal?.code == .policyReason("country_not_served"))
    #expect(refusal?.code.status == 403)
    #expect(bench.delivery.messages.isEmpty)
    let event = try await bench.audit.event(try #require(refusal).decision)
    #expect(event?.code == "country_not_served")
  }

  @Test(arguments: [true, false]) func aDenialOfVerifyingDoesNotDependOnTheCode(right: Bool) async throws {
    let open = Mutex(true)
    let bench = try await bench([Self.verify: { _ in open.withLock { $0 } ? .deny("not_now") : .allow }])
    let id = try await bench.begun("register")
    for _ in 0..<9 {
      #expect(await bench.submit(id, right ? bench.code : bench.wrong).refusal?.code == .policyReason("not_now"))
    }
    open.withLock { $0 = false }
    #expect(try await bench.submit(id, bench.code).get().status == .complete)
  }

  @Test func failingPolicyDeniesTheRequest() async throws {
    let fault = PolicyFault(
      kind: .steps, location: SourceLocation(file: "policies/phone_otp.lua", line: 9), message: "ran out of steps")
    let bench = try await bench([Self.verify: { _ in .fault(fault) }])
    let id = try await bench.begun("register")
    let refusal = await bench.submit(id, bench.code).refusal
    #expect(refusal?.code == .policyError)
    #expect(refusal?.sentence == "Something went wrong on our side. Please try again later.")
    #expect(
      try await bench.audit.event(try #require(refusal).decision)?.detail["fault"]
        == "policies/phone_otp.lua:9: ran out of steps")
  }

  @Test func factsDescribeTheRequest() async throws {
    let seen = Mutex<Facts?>(nil)
    let bench = try await bench([
      Self.verify: { facts in
        seen.withLock { $0 = facts }; return .allow
      }
    ])
    try await bench.registered()
    let id = try await bench.begun()
    _ = await bench.submit(id, bench.wrong, address: [10, 0, 0, 1])
    _ = await bench.submit(id, bench.wrong, address: [10, 0, 0, 1])
    let facts = try #require(seen.withLock { $0 })
    #expect(facts.action == .verify)
    #expect(facts.flow?.name == "login")
    #expect(facts.account.exists && facts.account.isPhoneVerified && !facts.account.hasEmail)
    #expect(facts.client.networkChanged)
    #expect(facts.limits.first { $0.name == "verify" }?.used == 1)
    #expect(facts.limits.first { $0.name == "verify" }?.max == 5)
  }

  @Test func requirementOfVerifyComesNext() async throws {
    let bench = try await bench([Self.verify: { _ in .requireAlso(EngineTestBench.pin) }])
    // An account without such a factor is denied.
    let id = try await bench.begun("register")
    #expect(await bench.submit(id, bench.code).refusal?.code == .denied)
  }

  /// Begins a step-up of an account that has a phone number and a PIN.
  private func stepUp(_ bench: EngineTestBench) async throws -> (client: ClientContext, id: FlowID) {
    let first = try #require(
      try await bench.session(try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client())))
    let set = try await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: first)).get()
    let client = bench.client(session: try await bench.session(set))
    let id = try await bench.engine.create("step_up", returnTo: nil, browser: nil, client: client).get().id
    return (client, id)
  }

  /// Attack: the code that was sent before `send` required a PIN passes in the place of the PIN.
  @Test func requirementOfSendClosesTheOpenStep() async throws {
    let requires = Mutex(false)
    let bench = try await EngineTestBench.full {
      $0.policies[EngineTestBench.phone] = .test(
        EngineTestBench.phone, resendAfter: [], unknownAccount: .reveal, send: Self.send)
      $0.verdicts[Self.send] = { _ in requires.withLock { $0 } ? .requireAlso(EngineTestBench.pin) : .allow }
    }
    let (client, id) = try await stepUp(bench)
    _ = try await bench.engine.begin(id, provider: "phone_otp", fields: [:], client: client).get()
    let early = bench.code
    requires.withLock { $0 = true }
    #expect(try await bench.engine.resend(id, client: client).get().choices == [EngineTestBench.pin])
    #expect(
      await bench.engine.submit(id, fields: ["code": .text(early)], client: client).refusal?.code == .stepNotOpen)
    let proved = try await bench.engine.begin(
      id, provider: "pin", fields: ["secret": .text("1")], client: client
    ).get()
    #expect(proved.status == .pending && proved.choices.contains(EngineTestBench.phone))
    _ = try await bench.engine.begin(id, provider: "phone_otp", fields: [:], client: client).get()
    let done = try await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: client).get()
    #expect(done.status == .complete)
    #expect(done.passed.map(\.provider).contains(EngineTestBench.pin))
  }

  /// The flow requires the PIN after the code anyway. It comes first now, and the flow can go on.
  @Test func requirementOfSendMovesALaterStepForward() async throws {
    let requires = Mutex(false)
    let bench = try await EngineTestBench.full {
      $0.flows["step_up"] = .test(
        "step_up", account: .existing, steps: [.test(EngineTestBench.phone), .test(EngineTestBench.pin)])
      $0.policies[EngineTestBench.phone] = .test(
        EngineTestBench.phone, resendAfter: [], unknownAccount: .reveal, send: Self.send)
      $0.verdicts[Self.send] = { _ in requires.withLock { $0 } ? .requireAlso(EngineTestBench.pin) : .allow }
    }
    let (client, id) = try await stepUp(bench)
    requires.withLock { $0 = true }
    #expect(
      try await bench.engine.begin(id, provider: "phone_otp", fields: [:], client: client).get().choices
        == [EngineTestBench.pin])
    let proved = try await bench.engine.begin(id, provider: "pin", fields: ["secret": .text("1")], client: client).get()
    #expect(proved.status == .pending && proved.choices == [EngineTestBench.phone])
    _ = try await bench.engine.begin(id, provider: "phone_otp", fields: [:], client: client).get()
    let done = try await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: client).get()
    #expect(done.status == .complete)
  }

  @Test func policyCanRequireAnIdentityOfTheAccount() async throws {
    let name = FunctionName("policies/phone_otp.verify")
    let bench = try await EngineTestBench.full {
      $0.policies[EngineTestBench.phone] = .test(
        EngineTestBench.phone, resendAfter: [], unknownAccount: .reveal, verify: name)
      $0.verdicts[name] = { $0.flow?.name == "login" ? .requireAlso(EngineTestBench.google) : .allow }
    }
    let own = try #require(try await bench.session(try await bench.google(sub: "asha", by: bench.client()).get()))
    _ = try await bench.pass("join_phone", EngineTestBench.phone, "911111", by: bench.client(session: own))
    let half = try await bench.pass("login", EngineTestBench.phone, "911111", by: bench.client())
    #expect(half.status == .pending && half.choices == [EngineTestBench.google] && half.session == nil)
    // Attack: somebody who holds the phone returns with another identity of the site.
    for (sub, isOwn) in [("mallory", false), ("asha", true)] {
      _ = try await bench.engine.begin(half.id, provider: "google_oauth", fields: [:], client: bench.client()).get()
      let answer = await bench.engine.submit(half.id, fields: ["sub": .text(sub)], client: bench.client())
      if isOwn { #expect(try answer.get().status == .complete) } else { #expect(answer.refusal?.code == .denied) }
    }
    // An account without one is denied, like anybody who lacks the factor.
    _ = try await bench.pass("register", EngineTestBench.phone, "922222", by: bench.client())
    let id = try await bench.engine.create("login", returnTo: nil, browser: nil, client: bench.client()).get().id
    _ = try await bench.engine.begin(
      id, provider: "phone_otp", fields: ["phone": .text("922222")], client: bench.client()
    ).get()
    #expect(await bench.submit(id, bench.code).refusal?.code == .denied)
  }

  @Test func attemptsOfAFullProviderAreCharged() async throws {
    let bench = try await EngineTestBench {
      $0.flows["both"] = .test(
        "both", account: .existing, steps: [.test(EngineTestBench.phone), .test(EngineTestBench.pin)])
      $0.policies[EngineTestBench.pin] = .test(
        EngineTestBench.pin,
        limits: [.test("verify", on: .verify, per: .account, max: 3, window: .seconds(86_400), lock: [.seconds(900)])])
    }
    try await bench.registered()
    let id = try await bench.begun("both")
    let half = try await bench.submit(id, bench.code).get()
    #expect(half.status == .pending)
    #expect(half.choices == [EngineTestBench.pin])
    #expect(half.session == nil)
    func send(_ pin: String) async -> Result<FlowView, Refusal> {
      await bench.engine.submit(id, fields: ["pin": .text(pin)], client: bench.client())
    }
    #expect(await send("1357").refusal?.code == .stepNotOpen, "a step that was not begun is not open")
    _ = try await bench.engine.begin(id, provider: nil, fields: [:], client: bench.client()).get()
    #expect(await send("1111").refusal?.attemptsLeft == 2)
    #expect(await send("0000").refusal?.code == .invalidInput)
    #expect(await send("9999").refusal?.code == .busy)
    #expect(await send("1111").refusal?.attemptsLeft == 1, "malformed input and faults were given back")
    let done = try await send("1357").get()
    #expect(done.status == .complete)
    #expect(done.passed.map(\.provider) == [EngineTestBench.phone, EngineTestBench.pin])
    #expect(done.session?.aal == 2)
    #expect(try await bench.store.account(try #require(done.account).id)?.credentials == [EngineTestBench.pin])
  }

  @Test func varyingLimitsAreEvaluated() async throws {
    let most = FunctionName("max")
    let bench = try await EngineTestBench {
      var limit = Limit.test(
        "verify", on: .verify, per: .phone, max: 5, window: .seconds(86_400), lock: [.seconds(900)])
      limit = Limit(
        name: limit.name, action: limit.action, key: limit.key, max: .varying(lowest: 2, highest: 5, most),
        window: limit.window,
        counts: limit.counts,
        lock: limit.lock, disables: false, location: limit.location)
      $0.policies[EngineTestBench.phone] = .test(EngineTestBench.phone, limits: [limit])
      $0.values[most] = { facts in facts.client.networkChanged ? 2 : 5 }
    }
    try await bench.registered()
    let id = try await bench.begun()
    #expect(await bench.submit(id, bench.wrong).refusal?.attemptsLeft == 4)
    #expect(await bench.submit(id, bench.wrong, address: [10, 0, 0, 1]).refusal?.code == .tooManyAttempts)
  }

  @Test func limitsAreTheActiveGenerationsAndTextsTheFlowsOwn() async throws {
    let bench = try await EngineTestBench()
    try await bench.registered()
    let id = try await bench.flow()
    var next = TestGeneration(
      id: "next", gateway: bench.generations.current.gateway,
      flows: [.test("login", account: .existing, steps: [.test(EngineTestBench.mail)])],
      policies: [
        .test(
          EngineTestBench.phone, code: CodeRule(length: 8, alphabet: .digits, lifetime: .seconds(60)),
          limits: [
            .test("verify", on: .verify, per: .identifier, max: 2, window: .seconds(86_400), lock: [.seconds(900)])
          ], message: "new {code}"),
        .test(EngineTestBench.mail),
      ])
    next.warnings = []
    bench.generations.activate(next, at: bench.clock.now())
    _ = try await bench.begin(id).get()
    #expect(bench.delivery.messages.last?.text == "\(bench.code) is your Moongate verification code")
    #expect(bench.code.count == 6)
    #expect(await bench.submit(id, bench.wrong).refusal?.attemptsLeft == 1)
    #expect(await bench.submit(id, bench.wrong).refusal?.code == .tooManyAttempts)
  }

  @Test func unavailableStoreIsNotARefusal() async throws {
    let bench = try await EngineTestBench()
    let id = try await bench.begun("register")
    try bench.store.close()
    let refusal = await bench.submit(id, bench.code).refusal
    #expect(refusal?.code == .storeUnavailable)
    #expect(refusal?.code.status == 503)
  }
}
