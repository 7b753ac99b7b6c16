import MoongateSDK
import MoongateStore
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateCore

/// `admit` of accounts.lua: whether a flow may open a session. It is asked before a flow begins, before each message,
/// after each step, at the end, and when an app redeems a code.
@Suite struct AdmissionTests {
  private static let admit = FunctionName("accounts.admit")
  private static let location = SourceLocation(file: "accounts.lua", line: 3)
  private static let sentence = "Sign-in is closed from 2 to 3 in the night."

  /// Adds `admit` to a generation.
  /// - Parameter reads: the facts that the function reads, beyond those that are always known.
  private static func add(
    to generation: inout TestGeneration, reads: FactKnowledge = [], _ function: @escaping @Sendable (Facts) -> Verdict
  ) {
    generation.accounts.admit = admit
    generation.accounts.reasons = ["maintenance": sentence]
    generation.accounts.locations["admit"] = location
    generation.verdicts[admit] = function
    generation.reads[admit] = reads
  }

  /// Adds `admit` while the gateway runs.
  private static func change(
    _ bench: EngineTestBench, reads: FactKnowledge = [], _ function: @escaping @Sendable (Facts) -> Verdict
  ) throws {
    var generation = try #require(bench.generations.current as? TestGeneration)
    generation.id += "+"
    add(to: &generation, reads: reads, function)
    bench.generations.activate(generation, at: bench.clock.now())
  }

  private static let maintenance: @Sendable (Facts) -> Verdict = { _ in .deny("maintenance") }

  // MARK: a maintenance window

  /// Attack: sign-in is closed, and somebody comes by a flow that was forgotten: a registration, a recovery, a
  /// password, another site.
  @Test(arguments: ["login", "enter", "register", "register_email", "login_password", "password_reset"])
  func noFlowThatOpensASessionBegins(_ name: String) async throws {
    let bench = try await EngineTestBench.full { Self.add(to: &$0, Self.maintenance) }
    let refusal = await bench.engine.create(name, returnTo: nil, browser: nil, client: bench.client()).refusal
    #expect(refusal?.code == .policyReason("maintenance") && refusal?.code.status == 403)
    #expect(refusal?.detail == Self.sentence)
    let app = await bench.engine.create(
      name, returnTo: nil, browser: nil, grant: try .test(), client: bench.client()
    ).refusal
    #expect(app?.code == .policyReason("maintenance"))
    let offered = await bench.engine.offers(name, client: bench.client())
    #expect(throws: Refusal.self) { try offered.get() }
  }

  /// Sign-in is closed, and users who are signed in go on: steps within a session ask nothing.
  @Test func sessionsGoOn() async throws {
    let bench = try await EngineTestBench.full()
    let session = try await bench.signedIn(
      try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client()))
    try Self.change(bench, Self.maintenance)
    let client = bench.client(session: session)
    #expect(try await bench.secret("pin_set", ["new_secret": "1"], by: client).get().status == .complete)
    let owner = try #require(
      try await SessionDirectory(store: bench.store, clock: bench.clock).sessions(of: session.account.id).first)
    let again = bench.client(
      session: SessionSnapshot(session: owner, account: try #require(try await bench.store.account(session.account.id)))
    )
    #expect(try await bench.secret("step_up", ["secret": "1"], by: again).get().status == .complete)
  }

  /// Attack: a code is requested a moment before sign-in closes, and another one, or a second step, afterwards. The
  /// code works again when sign-in is open.
  @Test(arguments: [EngineTestBench.phone, EngineTestBench.mail])
  func codeOfBeforeOpensNothing(_ provider: ProviderName) async throws {
    let bench = try await EngineTestBench.full()
    _ = try await bench.pass("register", provider, "911111", by: bench.client())
    let open = try #require(bench.generations.current as? TestGeneration)
    let client = bench.client()
    let id = try await bench.engine.create("login", returnTo: nil, browser: nil, client: client).get().id
    _ = try await bench.engine.begin(
      id, provider: provider.rawValue, fields: ["phone": .text("911111")], client: client
    ).get()
    await bench.engine.deliveriesEnd()
    let sent = bench.delivery.messages.count
    try Self.change(bench, Self.maintenance)
    #expect(await bench.engine.resend(id, client: client).refusal?.code == .policyReason("maintenance"))
    let again = await bench.engine.begin(
      id, provider: provider.rawValue, fields: ["phone": .text("911111")], client: client
    ).refusal
    #expect(again?.code == .policyReason("maintenance"))
    #expect(bench.delivery.messages.count == sent)
    #expect(
      await bench.engine.submit(id, fields: ["code": .text(bench.wrong)], client: client).refusal?.code == .invalidCode)
    let right = await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: client).refusal
    #expect(right?.code == .policyReason("maintenance") && right?.detail == Self.sentence)
    bench.generations.activate(open, at: bench.clock.now())
    let view = try await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: client).get()
    #expect(view.session != nil)
  }

  /// Attack: sign-in closes while a user is at the other site.
  @Test func returnFromAnotherSiteOpensNothing() async throws {
    let bench = try await EngineTestBench.full()
    let client = bench.client()
    let id = try await bench.engine.create("login", returnTo: nil, browser: nil, client: client).get().id
    _ = try await bench.engine.begin(id, provider: "google_oauth", fields: [:], client: client).get()
    try Self.change(bench, Self.maintenance)
    let refusal = await bench.engine.submit(id, fields: ["sub": .text("asha")], client: client).refusal
    #expect(refusal?.code == .policyReason("maintenance"))
    #expect(try await bench.store.accounts(after: nil, limit: 10).isEmpty)
  }

  /// Attack: an app has its code, and redeems it after sign-in was closed. The app's own address decides nothing.
  @Test func appsCodeOpensNothing() async throws {
    let bench = try await EngineTestBench.full()
    let client = bench.client(browser: TokenHash(of: "browser".utf8), at: .page)
    let (view, code) = try await bench.completedForApp(in: client)
    try Self.change(bench, Self.maintenance)
    #expect(await bench.redeem(view.id, code).refusal?.code == .policyReason("maintenance"))
    try Self.change(bench, reads: [.account, .flow]) { facts in
      facts.flow?.passed.isEmpty ?? true ? .allow : .deny("factors")
    }
    #expect(await bench.redeem(view.id, code).refusal?.code == .policyReason("factors"))
    try Self.change(bench, reads: .client) { _ in .deny("network") }
    #expect(try await bench.redeem(view.id, code).get().session != nil)
  }

  // MARK: the account

  /// Attack: an answer that depends on the account, before the code was entered.
  @Test(arguments: [true, false]) func concealedUntilTheProof(_ conceals: Bool) async throws {
    let bench = try await EngineTestBench.full()
    let provider = conceals ? EngineTestBench.mail : EngineTestBench.phone
    let staff = try #require(try await bench.pass("register", provider, "911111", by: bench.client()).account)
    _ = try await bench.pass("register", provider, "922222", by: bench.client())
    try Self.change(bench, reads: .account) { facts in
      facts.account.id == staff.id ? .allow : .deny("not_staff")
    }
    var seen: [String] = []
    for (address, code) in [("911111", nil), ("922222", "not_staff"), ("933333", "not_staff")] {
      let before = bench.delivery.messages.count
      let id = try await bench.engine.create("enter", returnTo: nil, browser: nil, client: bench.client()).get().id
      let view = try await bench.engine.begin(
        id, provider: provider.rawValue, fields: ["phone": .text(address)], client: bench.client()
      ).get()
      await bench.engine.deliveriesEnd()
      #expect(bench.delivery.messages.count == before + 1)
      let wrong = await bench.engine.submit(id, fields: ["code": .text(bench.wrong)], client: bench.client()).refusal
      let fields = view.step?.fields.map(\.name) ?? []
      seen.append("\(view.status) \(fields) \(wrong?.code.name ?? "") \(wrong?.attemptsLeft ?? -1)")
      let done = await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: bench.client())
      #expect(done.refusal?.code.name == code)
    }
    #expect(Set(seen).count == 1, "\(seen)")
    #expect(try await bench.store.accounts(after: nil, limit: 10).count == 2, "nothing was created")
  }

  /// What `admit` gets before the proof: the facts of no account, whatever identifier is named.
  @Test func accountIsUnknownBeforeTheProof() async throws {
    let bench = try await EngineTestBench.full()
    _ = try await bench.pass("register", EngineTestBench.mail, "911111", by: bench.client())
    let seen = SeenFacts()
    try Self.change(bench) { facts in
      seen.add(facts)
      return .allow
    }
    for address in ["911111", "922222"] {
      let id = try await bench.engine.create("enter", returnTo: nil, browser: nil, client: bench.client()).get().id
      _ = try await bench.engine.begin(
        id, provider: "email_code", fields: ["phone": .text(address)], client: bench.client()
      ).get()
      await bench.engine.deliveriesEnd()
      #expect(seen.take() == ["nobody, no identifier, knows 1", "nobody, +\(address), knows 1"])
      _ = try await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: bench.client()).get()
      let last = seen.take().last
      #expect(last == (address == "911111" ? "an account, +911111, knows 7" : "nobody, +922222, knows 7"))
    }
  }

  /// The groups of an invitation are known at the end of the registration. Attack: an invitation that leads nowhere, or
  /// one of the group with an account that exists.
  @Test func invitedUserIsInTheGroups() async throws {
    let staff = try GroupName(test: "staff")
    let bench = try await EngineTestBench.full { generation in
      generation.accounts.registration = .invited()
      Self.add(to: &generation, reads: .account) {
        $0.account.groups.listed.contains(staff) ? .allow : .deny("not_staff")
      }
    }
    let administration = AccountAdministration(
      store: bench.store, providers: bench.engine.providers, keys: bench.keys, clock: bench.clock,
      random: SystemRandom())
    func answer(_ number: String, _ groups: [GroupName], by flow: String) async throws -> RefusalCode? {
      let made = try await administration.createInvitation(
        NewInvitation(identifier: nil, groups: groups, lifetime: .seconds(600)))
      let client = bench.client()
      let id = try await bench.engine.create(
        flow, returnTo: nil, browser: nil, client: client.invited(by: made.code)
      ).get().id
      _ = try await bench.engine.begin(
        id, provider: "phone_otp", fields: ["phone": .text(number)], client: client
      ).get()
      await bench.engine.deliveriesEnd()
      return await bench.submit(id, bench.code).refusal?.code
    }
    #expect(try await answer("911111", [], by: "register") == .policyReason("not_staff"))
    #expect(try await answer("922222", [staff], by: "register") == nil)
    let account = try #require(try await bench.store.accounts(after: nil, limit: 9).first)
    #expect(account.groups == [staff])
    _ = try await bench.store.apply(
      [.setGroupMembership(account: account.id, staff, false)], at: bench.clock.now())
    bench.clock.advance(by: .seconds(600))
    #expect(try await answer("922222", [staff], by: "enter") == .policyReason("not_staff"))
  }

  /// A refusal by the account comes as soon as it is proved, before a message for a second step.
  @Test func refusedBeforeTheSecondStep() async throws {
    let bench = try await EngineTestBench.full { generation in
      generation.accounts.signIn = [
        SignInRequirement(choices: ["email_code"], location: SourceLocation(file: "accounts.lua", line: 9))
      ]
      Self.add(to: &generation, reads: .account) { $0.account.exists ? .deny("not_staff") : .allow }
    }
    let view = try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client())
    #expect(view.status == .complete, "a new account is admitted")
    let id = try await bench.engine.create("login", returnTo: nil, browser: nil, client: bench.client()).get().id
    _ = try await bench.engine.begin(
      id, provider: "phone_otp", fields: ["phone": .text("911111")], client: bench.client()
    ).get()
    let refusal = await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: bench.client()).refusal
    #expect(refusal?.code == .policyReason("not_staff"))
    let event = try #require(try await bench.audit.events(limit: 10).first { $0.id == refusal?.decision })
    #expect(event.account == view.account?.id, "the history of the account has it")
    #expect(event.detail["rule"] == "accounts.admit" && event.detail["verdict"] == "deny \"not_staff\"")
  }

  /// Attack: an account that is not admitted is entered by joining: somebody who receives one code to its number
  /// registers by an identity of their own and adds the number.
  @Test func joinedAccountIsAsked() async throws {
    let bench = try await EngineTestBench.full()
    let owner = try #require(
      try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client()).account)
    let thief = try await bench.signedIn(try await bench.google("enter", sub: "eve", by: bench.client()).get())
    try Self.change(bench, reads: .account) { $0.account.id == owner.id ? .deny("left") : .allow }
    let client = bench.client(session: thief)
    let id = try await bench.engine.create("join_phone", returnTo: nil, browser: nil, client: client).get().id
    _ = try await bench.engine.begin(id, provider: "phone_otp", fields: ["phone": .text("911111")], client: client)
      .get()
    let refusal = await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: client).refusal
    #expect(refusal?.code == .policyReason("left"))
    #expect(try await bench.store.account(owner.id)?.identifiers.count == 1)
  }

  /// Attack: somebody whom the other site has made an administrator since the last sign-in is judged by the groups of
  /// the last sign-in, and the new session is in the group all the same.
  @Test func identityIsJudgedAsTheSiteDescribesItNow() async throws {
    let admins = EngineTestBench.google
    let bench = try await EngineTestBench.full { generation in
      generation.identityProvers = IdentityProvers([ToyGoogle().descriptor])
      Self.add(to: &generation, reads: .account) { facts in
        facts.account.identities[admins]?.groups.contains("admins") ?? false ? .deny("admins_use_passkeys") : .allow
      }
    }
    #expect(try await bench.google(sub: "asha", by: bench.client()).get().session != nil)
    let refusal = try await bench.google(sub: "asha", telling: ["groups": "admins"], by: bench.client()).refusal
    #expect(refusal?.code == .policyReason("admins_use_passkeys"))
  }

  // MARK: faults

  static let faulty: [Verdict] = [
    .fault(PolicyFault(kind: .error, location: location, message: "attempt to compare nil with number")),
    .requireAlso("pin"),
  ]

  /// Attack: a function that fails, or that answers what it may not, admits somebody.
  @Test(arguments: faulty) func aFunctionThatFailsAdmitsNobody(_ verdict: Verdict) async throws {
    let bench = try await EngineTestBench.full { Self.add(to: &$0) { _ in verdict } }
    let refusal = await bench.engine.create("login", returnTo: nil, browser: nil, client: bench.client()).refusal
    #expect(refusal?.code == .policyError && refusal?.code.status == 503)
    let event = try #require(try await bench.audit.events(limit: 10).first { $0.id == refusal?.decision })
    #expect(event.detail["at"] == "accounts.lua:3" && event.detail["fault"] != nil, "\(event.detail)")
  }

  /// A reason without a sentence of its own has the general one.
  @Test func reasonWithoutASentence() async throws {
    let bench = try await EngineTestBench.full { Self.add(to: &$0) { _ in .deny("full_moon") } }
    let refusal = await bench.engine.create("login", returnTo: nil, browser: nil, client: bench.client()).refusal
    #expect(refusal?.detail == nil && refusal?.sentence == "This is not allowed here.")
  }

  // MARK: shadow

  /// A candidate that admits others differs once for each sign-in, whichever of the two refuses.
  @Test(arguments: [true, false]) func shadowSeesWhoWouldBeRefused(_ isCandidate: Bool) async throws {
    let bench = try await EngineTestBench.full()
    _ = try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client())
    if !isCandidate { try Self.change(bench, Self.maintenance) }
    var candidate = try #require(bench.generations.current as? TestGeneration)
    candidate.id = "candidate"
    candidate.accounts.admit = nil
    if isCandidate { Self.add(to: &candidate, Self.maintenance) }
    bench.shadow.begin(candidate, folder: "/candidate", by: "asha", at: bench.clock.now())
    for _ in 0..<2 {
      let id = try? await bench.engine.create("login", returnTo: nil, browser: nil, client: bench.client()).get().id
      guard let id else { continue }
      _ = try await bench.engine.begin(
        id, provider: "phone_otp", fields: ["phone": .text("911111")], client: bench.client()
      ).get()
      _ = try await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: bench.client()).get()
    }
    var judge: ShadowJudge?
    while await bench.shadow.look(nil, &judge) {}
    let differences = try #require(bench.shadow.status).tally.differences.map { cause, difference in
      "\(difference.count) × \(cause.about): \(cause.active) → \(cause.candidate)"
    }
    let change = isCandidate ? "ok → maintenance" : "maintenance → ok"
    #expect(differences == ["2 × admission by login: \(change)"], "\(differences)")
  }
}

/// The facts with which a function was called.
private final class SeenFacts: Sendable {
  private let lines = Mutex<[String]>([])

  func add(_ facts: Facts) {
    let identifier = facts.identifier?.value ?? "no identifier"
    let account = facts.account.exists || !facts.client.isNewDevice ? "an account" : "nobody"
    lines.withLock { $0.append("\(account), \(identifier), knows \(facts.known.rawValue)") }
  }

  /// All calls since the last time.
  func take() -> [String] {
    lines.withLock { lines in
      defer { lines = [] }
      return lines
    }
  }
}
