import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// `registration = "closed"` of accounts.lua: no flow, provider or entry point creates an account.
@Suite struct ClosedRegistrationTests {
  private static let closed = AccountRules(
    registration: .closed, locations: ["registration": SourceLocation(file: "accounts.lua", line: 2)])

  private static func bench(_ change: @escaping (inout TestGeneration) -> Void = { _ in }) async throws
    -> EngineTestBench
  {
    try await EngineTestBench.full { generation in
      generation.accounts = Self.closed
      change(&generation)
    }
  }

  /// Closes registration while the gateway runs.
  private static func close(_ bench: EngineTestBench) throws {
    var generation = try #require(bench.generations.current as? TestGeneration)
    generation.id = "closed"
    generation.accounts = Self.closed
    bench.generations.activate(generation, at: bench.clock.now())
  }

  private static func accounts(_ bench: EngineTestBench) async throws -> Int {
    try await bench.store.accounts(after: nil, limit: 10).count
  }

  @Test(arguments: ["register", "register_email"]) func flowForNewAccountsIsRefused(_ name: String) async throws {
    let bench = try await Self.bench()
    let refusal = await bench.engine.create(name, returnTo: nil, browser: nil, client: bench.client()).refusal
    #expect(refusal?.code == .registrationClosed && refusal?.code.status == 403)
    let offered = await bench.engine.offers(name, client: bench.client())
    #expect(throws: Refusal.self) { try offered.get() }
  }

  /// Attack: registration is closed, and a stranger registers by Google at the page that signs in, or at a flow that
  /// also creates accounts.
  @Test(arguments: ["login", "enter"]) func identityElsewhereCreatesNone(_ name: String) async throws {
    let bench = try await Self.bench()
    for isVerified in [true, false] {
      let refusal = try await bench.google(
        name, sub: "stranger", email: "911111", verified: isVerified, by: bench.client()
      ).refusal
      #expect(refusal?.code == .registrationClosed)
    }
    #expect(try await Self.accounts(bench) == 0)
  }

  /// Attack: the same by an app, which receives a code for the new account.
  @Test(arguments: ["login", "enter"]) func anAppGetsNoCodeForANewAccount(_ name: String) async throws {
    let bench = try await Self.bench()
    let client = bench.client(browser: TokenHash(of: "browser".utf8), at: .page)
    let id = try await bench.openedForApp(name, in: client)
    _ = try await bench.engine.begin(id, provider: "google_oauth", fields: [:], client: client).get()
    let done = await bench.engine.submit(id, fields: ["sub": .text("stranger")], client: client)
    #expect(done.refusal?.code == .registrationClosed)
    #expect(try await Self.accounts(bench) == 0)
  }

  /// A policy that reveals which accounts exist sends an unknown number nothing, and does not invite its user.
  @Test func unknownNumberGetsNoCode() async throws {
    let bench = try await Self.bench()
    for (name, code) in [("enter", RefusalCode.registrationClosed), ("login", .accountNotFound)] {
      let id = try await bench.engine.create(name, returnTo: nil, browser: nil, client: bench.client()).get().id
      let refusal = await bench.engine.begin(
        id, provider: "phone_otp", fields: ["phone": .text("911111")], client: bench.client()
      ).refusal
      #expect(refusal?.code == code && refusal?.detail == nil)
    }
    #expect(bench.delivery.messages.isEmpty)
  }

  /// Attack: an answer that depends on whether the address has an account, before a code to it was entered.
  @Test func concealedUntilTheAddressIsVerified() async throws {
    let bench = try await EngineTestBench.full()
    let known = try await bench.pass("register", EngineTestBench.mail, "911111", by: bench.client())
    try Self.close(bench)
    var seen: [String] = []
    for (address, code) in [("911111", nil), ("933333", RefusalCode.registrationClosed)] {
      let before = bench.delivery.messages.count
      let id = try await bench.engine.create("enter", returnTo: nil, browser: nil, client: bench.client()).get().id
      let view = try await bench.engine.begin(
        id, provider: "email_code", fields: ["phone": .text(address)], client: bench.client()
      ).get()
      await bench.engine.deliveriesEnd()
      #expect(bench.delivery.messages.count == before + 1)
      let wrong = await bench.engine.submit(id, fields: ["code": .text(bench.wrong)], client: bench.client()).refusal
      let fields = view.step?.fields.map(\.name) ?? []
      seen.append("\(view.status) \(fields) \(wrong?.code.name ?? "") \(wrong?.attemptsLeft ?? -1)")
      let done = await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: bench.client())
      #expect(done.refusal?.code == code)
      if code == nil { #expect(try done.get().account?.id == known.account?.id) }
      // The flow has ended, so the code is used up.
      let again = await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: bench.client()).refusal
      #expect(again?.code == .stepNotOpen)
    }
    #expect(seen[0] == seen[1])
    #expect(try await Self.accounts(bench) == 1)
  }

  /// Attack: a code is requested while registration is open, and entered after it was closed.
  @Test(arguments: [
    ("register", EngineTestBench.phone), ("enter", EngineTestBench.phone), ("register", EngineTestBench.mail),
  ])
  func codeOfBeforeCreatesNone(_ name: String, _ provider: ProviderName) async throws {
    let bench = try await EngineTestBench.full()
    let client = bench.client()
    let id = try await bench.engine.create(name, returnTo: nil, browser: nil, client: client).get().id
    _ = try await bench.engine.begin(
      id, provider: provider.rawValue, fields: ["phone": .text("911111")], client: client
    ).get()
    await bench.engine.deliveriesEnd()
    try Self.close(bench)
    let refusal = await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: client).refusal
    #expect(refusal?.code == .registrationClosed)
    #expect(try await Self.accounts(bench) == 0)
  }

  /// Attack: a password is set while registration is open, and the code to the address is skipped after it was closed.
  @Test func skippedStepCreatesNone() async throws {
    let bench = try await EngineTestBench.full()
    let client = bench.client()
    let view = try await bench.secret(
      "register_email", ["email": "911111", "new_secret": "mine"], provider: "password", by: client
    ).get()
    try Self.close(bench)
    #expect(await bench.engine.skip(view.id, client: client).refusal?.code == .registrationClosed)
    #expect(try await Self.accounts(bench) == 0)
  }

  /// Attack: a flow for new accounts, begun while registration was open, opens an account without being offered.
  @Test func pendingFlowForNewAccountsOpensNone() async throws {
    let bench = try await EngineTestBench.full()
    _ = try await bench.google("enter", sub: "asha", by: bench.client()).get()
    let id = try await bench.engine.create("register", returnTo: nil, browser: nil, client: bench.client()).get().id
    _ = try await bench.engine.begin(id, provider: "google_oauth", fields: [:], client: bench.client()).get()
    try Self.close(bench)
    let done = await bench.engine.submit(id, fields: ["sub": .text("asha")], client: bench.client())
    #expect(done.refusal?.code == .registrationClosed)
  }

  @Test func accountsThatExistAreOpened() async throws {
    let bench = try await EngineTestBench.full()
    let phone = try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client())
    let google = try await bench.google("enter", sub: "asha", by: bench.client()).get()
    try Self.close(bench)
    for name in ["login", "enter"] {
      #expect(
        try await bench.pass(name, EngineTestBench.phone, "911111", by: bench.client()).account?.id
          == phone.account?.id)
      #expect(try await bench.google(name, sub: "asha", by: bench.client()).get().account?.id == google.account?.id)
    }
    // A flow of a session changes its account as before.
    let client = bench.client(session: try await bench.signedIn(phone))
    #expect(try await bench.pass("change_email", EngineTestBench.mail, "933333", by: client).status == .complete)
  }

  @Test func decisionNamesTheSetting() async throws {
    let bench = try await Self.bench()
    let refusal = try await bench.google("enter", sub: "stranger", by: bench.client()).refusal
    let decision = try #require(refusal?.decision)
    let event = try #require(try await bench.audit.events(limit: 10).first { $0.id == decision })
    #expect(event.detail["rule"] == "registration" && event.detail["at"] == "accounts.lua:2", "\(event.detail)")
  }

  /// A candidate that closes registration differs where an account would be created, and where the flow would begin.
  @Test func shadowSeesWhoWouldBeRefused() async throws {
    let bench = try await EngineTestBench.full()
    var candidate = try #require(bench.generations.current as? TestGeneration)
    (candidate.id, candidate.accounts) = ("candidate", Self.closed)
    bench.shadow.begin(candidate, folder: "/candidate", by: "asha", at: bench.clock.now())
    _ = try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client())
    _ = try await bench.google(sub: "asha", by: bench.client()).get()
    _ = try await bench.google(sub: "asha", by: bench.client()).get()
    var judge: ShadowJudge?
    while await bench.shadow.look(nil, &judge) {}
    let differences = try #require(bench.shadow.status).tally.differences.map { cause, difference in
      "\(difference.count) × \(cause.about): \(cause.candidate) by \(cause.rule ?? "")"
    }.sorted()
    #expect(
      differences == [
        "1 × flow register: registration_closed by accounts.lua:2",
        "1 × registration by login: registration_closed by accounts.lua:2",
        "1 × registration by register: registration_closed by accounts.lua:2",
      ], "\(differences)")
  }
}
