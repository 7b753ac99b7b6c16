import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// What accounts.lua requires of a session applies to every flow that opens one.
@Suite struct SignInRequirementTests {
  private static let ownerPhone = "911111"
  private static let ownerEmail = "2222"
  private static let hasPIN = FunctionName("accounts.sign_in[1].when")

  private static func requirement(_ choices: ProviderName..., when: FunctionName? = nil, enroll: Bool = false)
    -> SignInRequirement
  {
    SignInRequirement(
      choices: choices, when: when, enroll: enroll, location: SourceLocation(file: "accounts.lua", line: 2))
  }

  /// The shipped rule with the toy PIN in place of the authenticator app: an account that has one is asked for it.
  private static let asShipped: @Sendable (inout TestGeneration) -> Void = { generation in
    generation.accounts.signIn = [requirement(EngineTestBench.pin, when: hasPIN)]
    generation.conditions[hasPIN] = { $0.account.factors.contains("pin") }
  }

  /// Activates other rules.
  private func require(
    _ bench: EngineTestBench, _ requirements: SignInRequirement..., change: (inout TestGeneration) -> Void = { _ in }
  ) {
    guard var generation = bench.generations.current as? TestGeneration else { return }
    generation.id += "+"
    generation.accounts.signIn = requirements
    change(&generation)
    bench.generations.activate(generation, at: bench.clock.now())
  }

  /// A user with a number, a verified address, a password, a Google identity and the PIN 1, who can use every sign-in
  /// method.
  private func owner(_ bench: EngineTestBench, pin: Bool = true) async throws -> SessionSnapshot {
    let registered = try await bench.secret(
      "register_email", ["email": Self.ownerEmail, "new_secret": "horse"], provider: "password", by: bench.client()
    ).get()
    let id = registered.id
    var view = try await bench.engine.begin(
      id, provider: "email_code", fields: ["phone": .text(Self.ownerEmail)], client: bench.client()
    ).get()
    await bench.engine.deliveriesEnd()
    view = try await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: bench.client()).get()
    var own = try await bench.signedIn(view)
    own = try await bench.signedIn(
      try await bench.pass("change_phone", EngineTestBench.phone, Self.ownerPhone, by: bench.client(session: own)))
    let google = try await bench.google(sub: "asha", email: Self.ownerEmail, by: bench.client()).get()
    #expect(google.account?.id == own.account.id)
    if pin {
      own = try await bench.signedIn(
        try await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: own)).get())
    }
    return own
  }

  private func prove(_ bench: EngineTestBench, _ id: FlowID, pin: String = "1", client: ClientContext? = nil) async
    -> Result<
      FlowView, Refusal
    >
  {
    await bench.engine.begin(id, provider: "pin", fields: ["secret": .text(pin)], client: client ?? bench.client())
  }

  /// The record of a provider that was removed from gateway.lua is not a factor, because no step can ask for it.
  @Test func recordOfARemovedProviderIsNotAFactor() async throws {
    let bench = try await EngineTestBench.full()
    _ = try await owner(bench)
    let emailForPIN = Self.requirement(EngineTestBench.mail, when: Self.hasPIN)
    let isKept = FunctionName("accounts.sign_in[2].when")
    let rules: (inout TestGeneration) -> Void = { generation in
      generation.conditions[Self.hasPIN] = { $0.account.factors.contains("pin") || $0.account.hasPIN }
      generation.conditions[isKept] = { $0.account.factors.contains("password") }
    }
    require(bench, emailForPIN, change: rules)
    #expect(try await EntryPoint.loginByPhone.open(bench).choices == [EngineTestBench.mail])
    require(bench, emailForPIN, Self.requirement(EngineTestBench.mail, when: isKept)) { generation in
      rules(&generation)
      generation.policies["pin"] = nil
    }
    #expect(
      try await EntryPoint.loginByPhone.open(bench).choices == [EngineTestBench.mail], "what is configured still counts"
    )
    require(bench, emailForPIN) { generation in
      rules(&generation)
      generation.policies["pin"] = nil
    }
    #expect(try await EntryPoint.loginByPhone.open(bench).session != nil)
  }

  // MARK: every entry point

  enum EntryPoint: String, CaseIterable, Sendable {
    case loginByPhone, loginByEmail, loginByGoogle, enterByPhone, enterByGoogle, registerByGoogle, password,
      passwordReset

    func open(_ bench: EngineTestBench) async throws -> FlowView {
      let client = bench.client()
      switch self {
      case .loginByPhone: return try await bench.pass("login", EngineTestBench.phone, ownerPhone, by: client)
      case .loginByEmail: return try await bench.pass("login", EngineTestBench.mail, ownerEmail, by: client)
      case .loginByGoogle: return try await bench.google(sub: "asha", email: ownerEmail, by: client).get()
      case .enterByPhone: return try await bench.pass("enter", EngineTestBench.phone, ownerPhone, by: client)
      case .enterByGoogle: return try await bench.google("enter", sub: "asha", email: ownerEmail, by: client).get()
      case .registerByGoogle:
        return try await bench.google("register", sub: "asha", email: ownerEmail, by: client).get()
      case .password:
        return try await bench.secret(
          "login_password", ["email": ownerEmail, "secret": "horse"], provider: "password", by: client
        ).get()
      case .passwordReset:
        let view = try await bench.pass("password_reset", EngineTestBench.mail, ownerEmail, by: client)
        return try await bench.engine.begin(
          view.id, provider: "password", fields: ["new_secret": .text("mule")], client: client
        ).get()
      }
    }
  }

  /// Attack: the second factor is required in one flow, and a client begins another flow that opens the same account
  /// with one factor.
  @Test(arguments: EntryPoint.allCases) func everyEntryPointAsksForTheRequiredFactor(_ entryPoint: EntryPoint)
    async throws
  {
    let bench = try await EngineTestBench.full(Self.asShipped)
    let own = try await owner(bench)
    let before = try await bench.store.sessions(of: own.account.id).count
    let view = try await entryPoint.open(bench)
    #expect(view.status == .pending && view.session == nil && view.account == nil && view.deviceToken == nil)
    #expect(view.choices == [EngineTestBench.pin] && !view.isEnrolling)
    #expect(await bench.engine.skip(view.id, client: bench.client()).refusal?.code == .stepNotOpen)
    #expect(await prove(bench, view.id, pin: "2").refusal?.attemptsLeft == 2)
    #expect(try await bench.store.sessions(of: own.account.id).count == before)
    let done = try await bench.engine.submit(view.id, fields: ["secret": .text("1")], client: bench.client()).get()
    #expect(done.status == .complete && done.account?.id == own.account.id)
    let made = try await bench.signedIn(done)
    #expect(made.session.passed.map(\.provider).contains(EngineTestBench.pin) && made.session.passed.count == 2)
    #expect(made.session.assuranceLevel == 2)
  }

  /// A password reset takes effect only when the required factor has passed too.
  @Test func aResetWithoutTheRequiredFactorChangesNothing() async throws {
    let bench = try await EngineTestBench.full(Self.asShipped)
    _ = try await owner(bench)
    _ = try await EntryPoint.passwordReset.open(bench)
    #expect(
      await bench.secret(
        "login_password", ["email": Self.ownerEmail, "secret": "mule"], provider: "password", by: bench.client()
      ).refusal != nil)
    #expect(try await EntryPoint.password.open(bench).choices == [EngineTestBench.pin])
  }

  @Test func appReceivesItsCodeOnlyAfterTheRequiredFactor() async throws {
    let bench = try await EngineTestBench.full(Self.asShipped)
    _ = try await owner(bench)
    let client = bench.client(browser: TokenHash(of: "browser".utf8), at: .page)
    let id = try await bench.openedForApp("enter", in: client)
    _ = try await bench.engine.begin(
      id, provider: "phone_otp", fields: ["phone": .text(Self.ownerPhone)], client: client
    ).get()
    let view = try await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: client).get()
    #expect(view.status == .pending && view.next == nil && view.choices == [EngineTestBench.pin])
    let early = await bench.engine.submit(
      id, fields: ["code": .text("x"), "code_verifier": .text(Grant.testVerifier)], client: bench.client())
    #expect(early.refusal?.code == .stepNotOpen)
    #expect(try await prove(bench, id, client: client).get().next?.contains("code=") ?? false)
  }

  @Test func ownAccountFlowsKeepTheirSession() async throws {
    let bench = try await EngineTestBench.full(Self.asShipped)
    let own = try await owner(bench)
    let stepUp = try await bench.pass("step_up", EngineTestBench.phone, nil, by: bench.client(session: own))
    #expect(stepUp.status == .complete)
    #expect(try await bench.signedIn(stepUp).session.id == own.session.id)
  }

  // MARK: what counts

  @Test func aStepThatHasPassedIsNotAskedForAgain() async throws {
    let bench = try await EngineTestBench.full()
    _ = try await owner(bench)
    require(bench, Self.requirement(EngineTestBench.pin, EngineTestBench.phone))
    #expect(try await EntryPoint.loginByPhone.open(bench).status == .complete)
    // Those choices that the account has.
    #expect(try await EntryPoint.loginByEmail.open(bench).choices == [EngineTestBench.pin, EngineTestBench.phone])
  }

  @Test func severalRequirementsAreAskedForInTurn() async throws {
    let bench = try await EngineTestBench.full()
    _ = try await owner(bench)
    require(
      bench, Self.requirement(EngineTestBench.pin), Self.requirement(EngineTestBench.mail),
      Self.requirement(EngineTestBench.phone))
    let id = try await EntryPoint.enterByPhone.open(bench).id
    #expect(try await prove(bench, id).get().choices == [EngineTestBench.mail])
    _ = try await bench.engine.begin(id, provider: nil, fields: [:], client: bench.client()).get()
    await bench.engine.deliveriesEnd()
    #expect(
      try await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: bench.client()).get().status
        == .complete)
  }

  @Test func skippedStepDoesNotReplaceARequirement() async throws {
    let bench = try await EngineTestBench.full()
    _ = try await owner(bench)
    require(bench) {
      Self.asShipped(&$0)
      $0.flows["login"] = .test(
        "login", account: .existing,
        steps: [.test(EngineTestBench.phone), .test(EngineTestBench.pin, isSkippable: true)])
    }
    let id = try await EntryPoint.loginByPhone.open(bench).id
    let view = try await bench.engine.skip(id, client: bench.client()).get()
    #expect(view.status == .pending && view.choices == [EngineTestBench.pin])
    #expect(await bench.engine.skip(id, client: bench.client()).refusal?.code == .stepNotOpen)
    #expect(try await prove(bench, id).get().status == .complete)
  }

  /// Attack: an address that the account only claims, as the factor that every session requires.
  @Test func claimedAddressIsNotAFactor() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await owner(bench)
    let view = try await bench.secret(
      "register_email", ["email": "3333", "new_secret": "horse"], provider: "password", by: bench.client()
    ).get()
    #expect(try await bench.engine.skip(view.id, client: bench.client()).get().status == .complete)
    require(bench, Self.requirement(EngineTestBench.mail))
    let refused = await bench.secret(
      "login_password", ["email": "3333", "secret": "horse"], provider: "password", by: bench.client())
    #expect(refused.refusal?.code == .denied)

    let claimed = Identifier(kind: .email, value: "+4444", display: "+4444")
    _ = try await bench.store.apply([.claimIdentifier(account: own.account.id, claimed)], at: bench.clock.now())
    let login = try await EntryPoint.loginByPhone.open(bench)
    #expect(login.choices == [EngineTestBench.mail])
    let wrong = await bench.engine.begin(
      login.id, provider: nil, fields: ["phone": .text("4444")], client: bench.client())
    #expect(wrong.refusal != nil)
    #expect(
      try await bench.engine.begin(login.id, provider: nil, fields: [:], client: bench.client()).get().step?.sentTo
        == "+••22")
  }

  /// Attack: a code to a number of the attacker's own, proved before the flow knows which account it is for.
  @Test func proofOfAForeignNumberIsNotAFactorOfTheAccount() async throws {
    let bench = try await EngineTestBench.full {
      $0.flows["both"] = .test(
        "both", account: .any, steps: [.test(EngineTestBench.phone), .test(EngineTestBench.mail)])
    }
    _ = try await owner(bench)
    require(bench, Self.requirement(EngineTestBench.phone))
    let id = try await bench.pass("both", EngineTestBench.phone, "966666", by: bench.client()).id
    _ = try await bench.engine.begin(
      id, provider: nil, fields: ["phone": .text(Self.ownerEmail)], client: bench.client()
    )
    .get()
    await bench.engine.deliveriesEnd()
    let view = try await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: bench.client()).get()
    #expect(view.status == .pending && view.choices == [EngineTestBench.phone] && view.session == nil)
    let own = await bench.engine.begin(id, provider: nil, fields: ["phone": .text("966666")], client: bench.client())
    #expect(own.refusal?.code == .denied)
  }

  /// Attack: an attacker who reads the mail of an account resets its password, and uses that as the password which
  /// every session requires.
  @Test func secretReplacedByTheFlowIsNotProved() async throws {
    let bench = try await EngineTestBench.full()
    _ = try await owner(bench, pin: false)
    require(bench, Self.requirement("password"))
    let view = try await bench.pass("password_reset", EngineTestBench.mail, Self.ownerEmail, by: bench.client())
    let refused = await bench.engine.begin(
      view.id, provider: "password", fields: ["new_secret": .text("mule")], client: bench.client())
    #expect(refused.refusal?.code == .denied)
    #expect(try await EntryPoint.password.open(bench).status == .complete, "the old one is still the account's")
    // Nor may they set up another of the choices in place of the one that the account has.
    require(bench, Self.requirement("password", EngineTestBench.pin, enroll: true))
    let again = try await bench.pass("password_reset", EngineTestBench.mail, Self.ownerEmail, by: bench.client())
    let other = await bench.engine.begin(
      again.id, provider: "password", fields: ["new_secret": .text("mule")], client: bench.client())
    #expect(other.refusal?.code == .denied)
  }

  /// A user who has a number and nothing else.
  private func owner(bench: EngineTestBench, phone: String) async throws -> SessionSnapshot {
    try await bench.signedIn(try await bench.pass("register", EngineTestBench.phone, phone, by: bench.client()))
  }

  /// Attack: an attacker who knows a password reads the number to which accounts.lua has a code sent.
  @Test(arguments: [("+91 98765 43210", "+•• ••••• •••10"), ("asha@example.com", "a•••@example.com"), ("7", "7")])
  func destinationOfACodeIsMasked(_ display: String, _ hint: String) {
    let kind: IdentifierKind = display.contains("@") ? .email : .phone
    #expect(Identifier(kind: kind, value: display, display: display).hint == hint)
  }

  /// An identity without a display name has no hint that its owner would recognise; the same for an identity of an
  /// instance.
  @Test func issuerAndSubjectAreNotAHint() {
    let bare = "https://accounts.example.com 10769150350006150715"
    for value in [bare, "work \(bare)"] {
      let identity = Identifier(kind: .federated, value: value, display: bare)
      #expect(identity.hint == nil && identity.shown == nil)
    }
    let named = Identifier(kind: .federated, value: bare, display: "asha@example.com")
    #expect(named.shown == "asha@example.com" && named.hint == "a•••@example.com")
  }

  // MARK: who lacks it

  @Test func anAccountWithoutTheFactorIsRefused() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await owner(bench: bench, phone: "955555")
    require(bench, Self.requirement(EngineTestBench.pin))
    let id = try await bench.engine.create("login", returnTo: nil, browser: nil, client: bench.client()).get().id
    _ = try await bench.engine.begin(
      id, provider: "phone_otp", fields: ["phone": .text("955555")], client: bench.client()
    ).get()
    for _ in 0..<9 {
      let refusal = await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: bench.client()).refusal
      #expect(refusal?.code == .denied && refusal?.code.status == 403)
      let event = try await bench.audit.event(try #require(refusal).decision)
      #expect(event?.detail["rule"] == "accounts.sign_in[1]" && event?.detail["at"] == "accounts.lua:2")
    }
    #expect(try await bench.store.sessions(of: own.account.id).count == 1)
  }

  @Test func anAccountWithoutTheFactorSetsItUpWhereItMay() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await owner(bench: bench, phone: "955555")
    require(bench, Self.requirement(EngineTestBench.pin, EngineTestBench.mail, enroll: true))
    let view = try await bench.pass("login", EngineTestBench.phone, "955555", by: bench.client())
    #expect(view.choices == [EngineTestBench.pin] && view.isEnrolling)
    let open = try await bench.engine.begin(view.id, provider: nil, fields: [:], client: bench.client()).get()
    #expect(open.step?.fields.map(\.name) == ["new_secret"])
    #expect(try await bench.store.account(own.account.id)?.credentials == [])
    let done = try await bench.engine.submit(view.id, fields: ["new_secret": .text("7")], client: bench.client()).get()
    #expect(done.status == .complete)
    let made = try await bench.signedIn(done)
    // The PIN was set, which does not count as passing it.
    #expect(made.session.passed.map(\.provider) == [EngineTestBench.phone] && made.session.assuranceLevel == 1)
    #expect(made.account.credentials == [EngineTestBench.pin])
    await bench.engine.deliveriesEnd()
    let next = try await bench.pass("login", EngineTestBench.phone, "955555", by: bench.client())
    #expect(next.choices == [EngineTestBench.pin] && !next.isEnrolling)
    #expect(await prove(bench, next.id, pin: "8").refusal?.attemptsLeft == 2)
    #expect(
      try await bench.engine.submit(next.id, fields: ["secret": .text("7")], client: bench.client()).get().status
        == .complete)
  }

  /// Attack: an attacker who has one factor opens the step that sets up the other, and finishes it after the owner has
  /// set one up.
  @Test func aFactorIsNotSetUpOverOneThatIsThereByThen() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await owner(bench: bench, phone: "955555")
    require(bench, Self.requirement(EngineTestBench.pin, enroll: true), Self.requirement(EngineTestBench.phone))
    let attacker = try await bench.pass("login", EngineTestBench.phone, "955555", by: bench.client()).id
    _ = try await bench.engine.begin(attacker, provider: nil, fields: [:], client: bench.client()).get()
    let mine = try await bench.signedIn(
      try await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: own)).get())
    #expect(mine.account.credentials == [EngineTestBench.pin])
    #expect(
      await bench.engine.submit(attacker, fields: ["new_secret": .text("2")], client: bench.client()).refusal != nil)
    let login = try await bench.pass("login", EngineTestBench.phone, "955555", by: bench.client())
    #expect(try await prove(bench, login.id, pin: "1").get().status == .complete)
  }

  @Test func newAccountNeedsNoRequiredFactor() async throws {
    let bench = try await EngineTestBench.full { $0.accounts.signIn = [Self.requirement(EngineTestBench.pin)] }
    let view = try await bench.pass("enter", EngineTestBench.phone, "955555", by: bench.client())
    #expect(view.status == .complete && view.account?.isNewUser == true)
  }

  // MARK: policies that change or break

  @Test func requirementsAreThoseOfTheActiveGeneration() async throws {
    let bench = try await EngineTestBench.full()
    _ = try await owner(bench)
    let id = try await bench.engine.create("login", returnTo: nil, browser: nil, client: bench.client()).get().id
    _ = try await bench.engine.begin(
      id, provider: "phone_otp", fields: ["phone": .text(Self.ownerPhone)], client: bench.client()
    ).get()
    require(bench, Self.requirement(EngineTestBench.pin))
    let view = try await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: bench.client()).get()
    #expect(view.choices == [EngineTestBench.pin])
    // A requirement that comes into force while the required step is open applies too.
    require(bench, Self.requirement(EngineTestBench.pin), Self.requirement(EngineTestBench.mail))
    #expect(try await prove(bench, id).get().choices == [EngineTestBench.mail])
  }

  @Test func failingConditionDeniesTheSignInAndChargesNoAttempt() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await owner(bench: bench, phone: "955555")
    let fault = PolicyFault(
      kind: .error, location: SourceLocation(file: "accounts.lua", line: 3), message: "attempt to index a nil value")
    @Sendable func failing(facts: Facts) throws(PolicyFault) -> Bool { throw fault }
    require(bench, Self.requirement(EngineTestBench.pin, when: Self.hasPIN)) { $0.conditions[Self.hasPIN] = failing }
    let id = try await bench.engine.create("login", returnTo: nil, browser: nil, client: bench.client()).get().id
    _ = try await bench.engine.begin(
      id, provider: "phone_otp", fields: ["phone": .text("955555")], client: bench.client()
    ).get()
    for _ in 0..<9 {
      #expect(
        await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: bench.client()).refusal?.code
          == .policyError)
      // An attempt that was not refunded counts as a failure by now.
      bench.clock.advance(by: .seconds(11))
    }
    #expect(try await bench.store.sessions(of: own.account.id).count == 1)
    require(bench)
    #expect(
      try await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: bench.client()).get().status
        == .complete)
  }

  // MARK: who learns what

  /// Attack: an attacker who types a number learns which factors its account has.
  @Test func requirementsAreHiddenUntilTheFlowsStepsHavePassed() async throws {
    let bench = try await EngineTestBench.full(Self.asShipped)
    _ = try await owner(bench)
    _ = try await owner(bench: bench, phone: "955555")
    var seen: [[String]] = []
    for number in [Self.ownerPhone, "955555"] {
      let id = try await bench.engine.create("enter", returnTo: nil, browser: nil, client: bench.client()).get().id
      let begun = try await bench.engine.begin(
        id, provider: "phone_otp", fields: ["phone": .text(number)], client: bench.client()
      ).get()
      let wrong = await bench.engine.submit(id, fields: ["code": .text(bench.wrong)], client: bench.client()).refusal
      seen.append([
        begun.choices.description, begun.step?.fields.map(\.name).description ?? "", wrong?.code.name ?? "",
        wrong?.detail ?? "",
      ])
    }
    #expect(seen[0] == seen[1])
    // A registration flow ends like it does for anybody who already has an account.
    guard var generation = bench.generations.current as? TestGeneration,
      let phone = generation.policies[EngineTestBench.phone]
    else { return }
    generation.policies[EngineTestBench.phone] = .test(
      EngineTestBench.phone, resendAfter: [], limits: phone.limits, unknownAccount: .conceal)
    bench.generations.activate(generation, at: bench.clock.now())
    let id = try await bench.engine.create("register", returnTo: nil, browser: nil, client: bench.client()).get().id
    _ = try await bench.engine.begin(
      id, provider: "phone_otp", fields: ["phone": .text(Self.ownerPhone)], client: bench.client()
    ).get()
    await bench.engine.deliveriesEnd()
    #expect(
      await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: bench.client()).refusal?.code
        == .alreadyRegistered)
  }

  @Test func lockedFactorStaysRequired() async throws {
    let bench = try await EngineTestBench.full(Self.asShipped)
    _ = try await owner(bench)
    let id = try await EntryPoint.loginByPhone.open(bench).id
    for _ in 0..<3 {
      _ = await bench.engine.begin(id, provider: "pin", fields: ["secret": .text("2")], client: bench.client())
    }
    for entryPoint in EntryPoint.allCases {
      let view = try await entryPoint.open(bench)
      #expect(view.status == .pending && view.choices == [EngineTestBench.pin], "\(entryPoint)")
      #expect(await prove(bench, view.id).refusal?.code == .tooManyAttempts, "\(entryPoint)")
    }
  }
}
