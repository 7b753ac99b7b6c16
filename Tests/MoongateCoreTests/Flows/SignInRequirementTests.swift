import Crypto
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
    _ desk: EngineTestBench, _ requirements: SignInRequirement..., change: (inout TestGeneration) -> Void = { _ in }
  ) {
    guard var generation = desk.generations.current as? TestGeneration else { return }
    generation.id += "+"
    generation.accounts.signIn = requirements
    change(&generation)
    desk.generations.activate(generation, at: desk.clock.now())
  }

  private func session(_ desk: EngineTestBench, _ view: FlowView) async throws -> SessionSnapshot {
    try #require(try await desk.session(view))
  }

  /// A user with a number, a verified address, a password, a Google identity and the PIN 1, who can use every sign-in
  /// method.
  private func owner(_ desk: EngineTestBench, pin: Bool = true) async throws -> SessionSnapshot {
    let registered = try await desk.secret(
      "register_email", ["email": Self.ownerEmail, "new_secret": "horse"], provider: "password", by: desk.client()
    ).get()
    let id = registered.id
    var view = try await desk.engine.begin(
      id, provider: "email_code", fields: ["phone": .text(Self.ownerEmail)], client: desk.client()
    ).get()
    await desk.engine.deliveriesEnd()
    view = try await desk.engine.submit(id, fields: ["code": .text(desk.code)], client: desk.client()).get()
    var own = try await session(desk, view)
    own = try await session(
      desk, try await desk.pass("change_phone", EngineTestBench.phone, Self.ownerPhone, by: desk.client(session: own)))
    let google = try await desk.google(sub: "asha", email: Self.ownerEmail, by: desk.client()).get()
    #expect(google.account?.id == own.account.id)
    if pin {
      own = try await session(
        desk, try await desk.secret("pin_set", ["new_secret": "1"], by: desk.client(session: own)).get())
    }
    return own
  }

  private func prove(_ desk: EngineTestBench, _ id: FlowID, pin: String = "1", client: ClientContext? = nil) async
    -> Result<
      FlowView, Refusal
    >
  {
    await desk.engine.begin(id, provider: "pin", fields: ["secret": .text(pin)], client: client ?? desk.client())
  }

  /// The record of a provider that was removed from gateway.lua is not a factor, because no step can ask for it.
  @Test func factorOfAProviderThatWasTakenOutIsNone() async throws {
    let desk = try await EngineTestBench.full()
    _ = try await owner(desk)
    let emailForPIN = Self.requirement(EngineTestBench.mail, when: Self.hasPIN)
    let isKept = FunctionName("accounts.sign_in[2].when")
    let rules: (inout TestGeneration) -> Void = { generation in
      generation.conditions[Self.hasPIN] = { $0.account.factors.contains("pin") || $0.account.hasPIN }
      generation.conditions[isKept] = { $0.account.factors.contains("password") }
    }
    require(desk, emailForPIN, change: rules)
    #expect(try await Door.loginByPhone.open(desk).choices == [EngineTestBench.mail])
    require(desk, emailForPIN, Self.requirement(EngineTestBench.mail, when: isKept)) { generation in
      rules(&generation)
      generation.policies["pin"] = nil
    }
    #expect(try await Door.loginByPhone.open(desk).choices == [EngineTestBench.mail], "what is configured still counts")
    require(desk, emailForPIN) { generation in
      rules(&generation)
      generation.policies["pin"] = nil
    }
    #expect(try await Door.loginByPhone.open(desk).session != nil)
  }

  // MARK: every door

  enum Door: String, CaseIterable, Sendable {
    case loginByPhone, loginByEmail, loginByGoogle, enterByPhone, enterByGoogle, registerByGoogle, password,
      passwordReset

    func open(_ desk: EngineTestBench) async throws -> FlowView {
      let client = desk.client()
      switch self {
      case .loginByPhone: return try await desk.pass("login", EngineTestBench.phone, ownerPhone, by: client)
      case .loginByEmail: return try await desk.pass("login", EngineTestBench.mail, ownerEmail, by: client)
      case .loginByGoogle: return try await desk.google(sub: "asha", by: client).get()
      case .enterByPhone: return try await desk.pass("enter", EngineTestBench.phone, ownerPhone, by: client)
      case .enterByGoogle: return try await desk.google("enter", sub: "asha", by: client).get()
      case .registerByGoogle: return try await desk.google("register", sub: "asha", by: client).get()
      case .password:
        return try await desk.secret(
          "login_password", ["email": ownerEmail, "secret": "horse"], provider: "password", by: client
        ).get()
      case .passwordReset:
        let view = try await desk.pass("password_reset", EngineTestBench.mail, ownerEmail, by: client)
        return try await desk.engine.begin(
          view.id, provider: "password", fields: ["new_secret": .text("mule")], client: client
        ).get()
      }
    }
  }

  /// Attack: the second factor is required in one flow, and a client begins another flow that opens the same account
  /// with one factor.
  @Test(arguments: Door.allCases) func requiredFactorIsAskedForAtEveryDoor(_ door: Door) async throws {
    let desk = try await EngineTestBench.full(Self.asShipped)
    let own = try await owner(desk)
    let before = try await desk.store.sessions(of: own.account.id).count
    let view = try await door.open(desk)
    #expect(view.status == .pending && view.session == nil && view.account == nil && view.deviceToken == nil)
    #expect(view.choices == [EngineTestBench.pin] && !view.isEnrolling)
    #expect(await desk.engine.skip(view.id, client: desk.client()).refusal?.code == .stepNotOpen)
    #expect(await prove(desk, view.id, pin: "2").refusal?.attemptsLeft == 2)
    #expect(try await desk.store.sessions(of: own.account.id).count == before)
    let done = try await desk.engine.submit(view.id, fields: ["secret": .text("1")], client: desk.client()).get()
    #expect(done.status == .complete && done.account?.id == own.account.id)
    let made = try await session(desk, done)
    #expect(made.session.passed.map(\.provider).contains(EngineTestBench.pin) && made.session.passed.count == 2)
    #expect(made.session.assuranceLevel == 2)
  }

  /// A password reset takes effect only when the required factor has passed too.
  @Test func aResetWithoutTheRequiredFactorChangesNothing() async throws {
    let desk = try await EngineTestBench.full(Self.asShipped)
    _ = try await owner(desk)
    _ = try await Door.passwordReset.open(desk)
    #expect(
      await desk.secret(
        "login_password", ["email": Self.ownerEmail, "secret": "mule"], provider: "password", by: desk.client()
      ).refusal != nil)
    #expect(try await Door.password.open(desk).choices == [EngineTestBench.pin])
  }

  @Test func appReceivesItsCodeOnlyAfterTheRequiredFactor() async throws {
    let desk = try await EngineTestBench.full(Self.asShipped)
    _ = try await owner(desk)
    let verifier = String(repeating: "v", count: 43)
    let app = try #require(
      AppReturn(
        challenge: Base64URL.encode(SHA256.hash(data: Array(verifier.utf8))), address: "https://app.example.com/back"))
    let client = desk.client()
    let id = try await desk.engine.create("enter", returnTo: nil, browser: nil, app: app, client: client).get().id
    _ = try await desk.engine.begin(
      id, provider: "phone_otp", fields: ["phone": .text(Self.ownerPhone)], client: client
    ).get()
    let view = try await desk.engine.submit(id, fields: ["code": .text(desk.code)], client: client).get()
    #expect(view.status == .pending && view.next == nil && view.choices == [EngineTestBench.pin])
    let early = await desk.engine.submit(
      id, fields: ["code": .text("x"), "code_verifier": .text(verifier)], client: client)
    #expect(early.refusal?.code == .stepNotOpen)
    #expect(try await prove(desk, id).get().next?.contains("code=") ?? false)
  }

  @Test func ownAccountFlowsKeepTheirSession() async throws {
    let desk = try await EngineTestBench.full(Self.asShipped)
    let own = try await owner(desk)
    let stepUp = try await desk.pass("step_up", EngineTestBench.phone, nil, by: desk.client(session: own))
    #expect(stepUp.status == .complete)
    #expect(try await session(desk, stepUp).session.id == own.session.id)
  }

  // MARK: what counts

  @Test func aStepThatHasPassedIsNotAskedForAgain() async throws {
    let desk = try await EngineTestBench.full()
    _ = try await owner(desk)
    require(desk, Self.requirement(EngineTestBench.pin, EngineTestBench.phone))
    #expect(try await Door.loginByPhone.open(desk).status == .complete)
    // Those choices that the account has.
    #expect(try await Door.loginByEmail.open(desk).choices == [EngineTestBench.pin, EngineTestBench.phone])
  }

  @Test func severalRequirementsAreAskedForInTurn() async throws {
    let desk = try await EngineTestBench.full()
    _ = try await owner(desk)
    require(
      desk, Self.requirement(EngineTestBench.pin), Self.requirement(EngineTestBench.mail),
      Self.requirement(EngineTestBench.phone))
    let id = try await Door.enterByPhone.open(desk).id
    #expect(try await prove(desk, id).get().choices == [EngineTestBench.mail])
    _ = try await desk.engine.begin(id, provider: nil, fields: [:], client: desk.client()).get()
    await desk.engine.deliveriesEnd()
    #expect(
      try await desk.engine.submit(id, fields: ["code": .text(desk.code)], client: desk.client()).get().status
        == .complete)
  }

  @Test func skippedStepDoesNotReplaceARequirement() async throws {
    let desk = try await EngineTestBench.full()
    _ = try await owner(desk)
    require(desk) {
      Self.asShipped(&$0)
      $0.flows["login"] = .test(
        "login", account: .existing,
        steps: [.test(EngineTestBench.phone), .test(EngineTestBench.pin, isSkippable: true)])
    }
    let id = try await Door.loginByPhone.open(desk).id
    let view = try await desk.engine.skip(id, client: desk.client()).get()
    #expect(view.status == .pending && view.choices == [EngineTestBench.pin])
    #expect(await desk.engine.skip(id, client: desk.client()).refusal?.code == .stepNotOpen)
    #expect(try await prove(desk, id).get().status == .complete)
  }

  /// Attack: an address that the account only claims, as the factor that every session requires.
  @Test func claimedAddressIsNotAFactor() async throws {
    let desk = try await EngineTestBench.full()
    let own = try await owner(desk)
    let view = try await desk.secret(
      "register_email", ["email": "3333", "new_secret": "horse"], provider: "password", by: desk.client()
    ).get()
    #expect(try await desk.engine.skip(view.id, client: desk.client()).get().status == .complete)
    require(desk, Self.requirement(EngineTestBench.mail))
    let refused = await desk.secret(
      "login_password", ["email": "3333", "secret": "horse"], provider: "password", by: desk.client())
    #expect(refused.refusal?.code == .denied)

    let claimed = Identifier(kind: .email, value: "+4444", display: "+4444")
    _ = try await desk.store.apply([.claimIdentifier(account: own.account.id, claimed)], at: desk.clock.now())
    let login = try await Door.loginByPhone.open(desk)
    #expect(login.choices == [EngineTestBench.mail])
    let wrong = await desk.engine.begin(
      login.id, provider: nil, fields: ["phone": .text("4444")], client: desk.client())
    #expect(wrong.refusal != nil)
    #expect(
      try await desk.engine.begin(login.id, provider: nil, fields: [:], client: desk.client()).get().step?.sentTo
        == "+••22")
  }

  /// Attack: a code to a number of the attacker's own, proved before the flow knows which account it is for.
  @Test func proofOfAForeignNumberIsNotAFactorOfTheAccount() async throws {
    let desk = try await EngineTestBench.full {
      $0.flows["both"] = .test(
        "both", account: .any, steps: [.test(EngineTestBench.phone), .test(EngineTestBench.mail)])
    }
    _ = try await owner(desk)
    require(desk, Self.requirement(EngineTestBench.phone))
    let id = try await desk.pass("both", EngineTestBench.phone, "966666", by: desk.client()).id
    _ = try await desk.engine.begin(id, provider: nil, fields: ["phone": .text(Self.ownerEmail)], client: desk.client())
      .get()
    await desk.engine.deliveriesEnd()
    let view = try await desk.engine.submit(id, fields: ["code": .text(desk.code)], client: desk.client()).get()
    #expect(view.status == .pending && view.choices == [EngineTestBench.phone] && view.session == nil)
    let own = await desk.engine.begin(id, provider: nil, fields: ["phone": .text("966666")], client: desk.client())
    #expect(own.refusal?.code == .denied)
  }

  /// Attack: an attacker who reads the mail of an account resets its password, and uses that as the password which every
  /// session requires.
  @Test func secretReplacedByTheFlowIsNotProved() async throws {
    let desk = try await EngineTestBench.full()
    _ = try await owner(desk, pin: false)
    require(desk, Self.requirement("password"))
    let view = try await desk.pass("password_reset", EngineTestBench.mail, Self.ownerEmail, by: desk.client())
    let refused = await desk.engine.begin(
      view.id, provider: "password", fields: ["new_secret": .text("mule")], client: desk.client())
    #expect(refused.refusal?.code == .denied)
    #expect(try await Door.password.open(desk).status == .complete, "the old one is still the account's")
    // Nor may they set up another of the choices in place of the one that the account has.
    require(desk, Self.requirement("password", EngineTestBench.pin, enroll: true))
    let again = try await desk.pass("password_reset", EngineTestBench.mail, Self.ownerEmail, by: desk.client())
    let other = await desk.engine.begin(
      again.id, provider: "password", fields: ["new_secret": .text("mule")], client: desk.client())
    #expect(other.refusal?.code == .denied)
  }

  /// A user who has a number and nothing else.
  private func owner(desk: EngineTestBench, phone: String) async throws -> SessionSnapshot {
    try await session(desk, try await desk.pass("register", EngineTestBench.phone, phone, by: desk.client()))
  }

  /// Attack: an attacker who knows a password reads the number to which accounts.lua has a code sent.
  @Test(arguments: [("+91 98765 43210", "+•• ••••• •••10"), ("asha@example.com", "a•••@example.com"), ("7", "7")])
  func whereACodeWentIsAHint(_ display: String, _ hint: String) {
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
    let desk = try await EngineTestBench.full()
    let own = try await owner(desk: desk, phone: "955555")
    require(desk, Self.requirement(EngineTestBench.pin))
    let id = try await desk.engine.create("login", returnTo: nil, browser: nil, client: desk.client()).get().id
    _ = try await desk.engine.begin(
      id, provider: "phone_otp", fields: ["phone": .text("955555")], client: desk.client()
    ).get()
    for _ in 0..<9 {
      let refusal = await desk.engine.submit(id, fields: ["code": .text(desk.code)], client: desk.client()).refusal
      #expect(refusal?.code == .denied && refusal?.code.status == 403)
      let event = try await desk.audit.event(try #require(refusal).decision)
      #expect(event?.detail["rule"] == "accounts.sign_in[1]" && event?.detail["at"] == "accounts.lua:2")
    }
    #expect(try await desk.store.sessions(of: own.account.id).count == 1)
  }

  @Test func anAccountWithoutTheFactorSetsItUpWhereItMay() async throws {
    let desk = try await EngineTestBench.full()
    let own = try await owner(desk: desk, phone: "955555")
    require(desk, Self.requirement(EngineTestBench.pin, EngineTestBench.mail, enroll: true))
    let view = try await desk.pass("login", EngineTestBench.phone, "955555", by: desk.client())
    #expect(view.choices == [EngineTestBench.pin] && view.isEnrolling)
    let open = try await desk.engine.begin(view.id, provider: nil, fields: [:], client: desk.client()).get()
    #expect(open.step?.fields.map(\.name) == ["new_secret"])
    #expect(try await desk.store.account(own.account.id)?.credentials == [])
    let done = try await desk.engine.submit(view.id, fields: ["new_secret": .text("7")], client: desk.client()).get()
    #expect(done.status == .complete)
    let made = try await session(desk, done)
    // The PIN was set, which does not count as passing it.
    #expect(made.session.passed.map(\.provider) == [EngineTestBench.phone] && made.session.assuranceLevel == 1)
    #expect(made.account.credentials == [EngineTestBench.pin])
    await desk.engine.deliveriesEnd()
    let next = try await desk.pass("login", EngineTestBench.phone, "955555", by: desk.client())
    #expect(next.choices == [EngineTestBench.pin] && !next.isEnrolling)
    #expect(await prove(desk, next.id, pin: "8").refusal?.attemptsLeft == 2)
    #expect(
      try await desk.engine.submit(next.id, fields: ["secret": .text("7")], client: desk.client()).get().status
        == .complete)
  }

  /// Attack: an attacker who has one factor opens the step that sets up the other, and finishes it after the owner has set one
  /// up.
  @Test func aFactorIsNotSetUpOverOneThatIsThereByThen() async throws {
    let desk = try await EngineTestBench.full()
    let own = try await owner(desk: desk, phone: "955555")
    require(desk, Self.requirement(EngineTestBench.pin, enroll: true), Self.requirement(EngineTestBench.phone))
    let attacker = try await desk.pass("login", EngineTestBench.phone, "955555", by: desk.client()).id
    _ = try await desk.engine.begin(attacker, provider: nil, fields: [:], client: desk.client()).get()
    let mine = try await session(
      desk, try await desk.secret("pin_set", ["new_secret": "1"], by: desk.client(session: own)).get())
    #expect(mine.account.credentials == [EngineTestBench.pin])
    #expect(
      await desk.engine.submit(attacker, fields: ["new_secret": .text("2")], client: desk.client()).refusal != nil)
    let login = try await desk.pass("login", EngineTestBench.phone, "955555", by: desk.client())
    #expect(try await prove(desk, login.id, pin: "1").get().status == .complete)
  }

  @Test func anAccountThatIsMadeHereIsNotSubject() async throws {
    let desk = try await EngineTestBench.full { $0.accounts.signIn = [Self.requirement(EngineTestBench.pin)] }
    let view = try await desk.pass("enter", EngineTestBench.phone, "955555", by: desk.client())
    #expect(view.status == .complete && view.account?.isNewUser == true)
  }

  // MARK: policies that change or break

  @Test func theActiveGenerationDecidesAtTheEnd() async throws {
    let desk = try await EngineTestBench.full()
    _ = try await owner(desk)
    let id = try await desk.engine.create("login", returnTo: nil, browser: nil, client: desk.client()).get().id
    _ = try await desk.engine.begin(
      id, provider: "phone_otp", fields: ["phone": .text(Self.ownerPhone)], client: desk.client()
    ).get()
    require(desk, Self.requirement(EngineTestBench.pin))
    let view = try await desk.engine.submit(id, fields: ["code": .text(desk.code)], client: desk.client()).get()
    #expect(view.choices == [EngineTestBench.pin])
    // A requirement that comes into force while the required step is open applies too.
    require(desk, Self.requirement(EngineTestBench.pin), Self.requirement(EngineTestBench.mail))
    #expect(try await prove(desk, id).get().choices == [EngineTestBench.mail])
  }

  @Test func aConditionThatFailsIsAClosedDoorAndCostsNoTry() async throws {
    let desk = try await EngineTestBench.full()
    let own = try await owner(desk: desk, phone: "955555")
    let fault = PolicyFault(
      kind: .error, location: SourceLocation(file: "accounts.lua", line: 3), message: "attempt to index a nil value")
    @Sendable func failing(facts: Facts) throws(PolicyFault) -> Bool { throw fault }
    require(desk, Self.requirement(EngineTestBench.pin, when: Self.hasPIN)) { $0.conditions[Self.hasPIN] = failing }
    let id = try await desk.engine.create("login", returnTo: nil, browser: nil, client: desk.client()).get().id
    _ = try await desk.engine.begin(
      id, provider: "phone_otp", fields: ["phone": .text("955555")], client: desk.client()
    ).get()
    for _ in 0..<9 {
      #expect(
        await desk.engine.submit(id, fields: ["code": .text(desk.code)], client: desk.client()).refusal?.code
          == .policyError)
      // An attempt that was not refunded counts as a failure by now.
      desk.clock.advance(by: .seconds(11))
    }
    #expect(try await desk.store.sessions(of: own.account.id).count == 1)
    require(desk)
    #expect(
      try await desk.engine.submit(id, fields: ["code": .text(desk.code)], client: desk.client()).get().status
        == .complete)
  }

  // MARK: who learns what

  /// Attack: an attacker who types a number learns which factors its account has.
  @Test func requirementsAreHiddenUntilTheFlowsStepsHavePassed() async throws {
    let desk = try await EngineTestBench.full(Self.asShipped)
    _ = try await owner(desk)
    _ = try await owner(desk: desk, phone: "955555")
    var seen: [[String]] = []
    for number in [Self.ownerPhone, "955555"] {
      let id = try await desk.engine.create("enter", returnTo: nil, browser: nil, client: desk.client()).get().id
      let begun = try await desk.engine.begin(
        id, provider: "phone_otp", fields: ["phone": .text(number)], client: desk.client()
      ).get()
      let wrong = await desk.engine.submit(id, fields: ["code": .text(desk.wrong)], client: desk.client()).refusal
      seen.append([
        begun.choices.description, begun.step?.fields.map(\.name).description ?? "", wrong?.code.name ?? "",
        wrong?.detail ?? "",
      ])
    }
    #expect(seen[0] == seen[1])
    // A registration flow ends like it does for anybody who already has an account.
    guard var generation = desk.generations.current as? TestGeneration,
      let phone = generation.policies[EngineTestBench.phone]
    else { return }
    generation.policies[EngineTestBench.phone] = .test(
      EngineTestBench.phone, resendAfter: [], limits: phone.limits, unknownAccount: .conceal)
    desk.generations.activate(generation, at: desk.clock.now())
    let id = try await desk.engine.create("register", returnTo: nil, browser: nil, client: desk.client()).get().id
    _ = try await desk.engine.begin(
      id, provider: "phone_otp", fields: ["phone": .text(Self.ownerPhone)], client: desk.client()
    ).get()
    await desk.engine.deliveriesEnd()
    #expect(
      await desk.engine.submit(id, fields: ["code": .text(desk.code)], client: desk.client()).refusal?.code
        == .alreadyRegistered)
  }

  @Test func lockedFactorStaysRequired() async throws {
    let desk = try await EngineTestBench.full(Self.asShipped)
    _ = try await owner(desk)
    let id = try await Door.loginByPhone.open(desk).id
    for _ in 0..<3 {
      _ = await desk.engine.begin(id, provider: "pin", fields: ["secret": .text("2")], client: desk.client())
    }
    for door in Door.allCases {
      let view = try await door.open(desk)
      #expect(view.status == .pending && view.choices == [EngineTestBench.pin], "\(door)")
      #expect(await prove(desk, view.id).refusal?.code == .tooManyAttempts, "\(door)")
    }
  }
}
