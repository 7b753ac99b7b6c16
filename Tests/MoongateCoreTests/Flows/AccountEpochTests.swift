import Crypto
import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// A flow completes only if what it proved is still held; a change of an account ends every older flow and session.
@Suite struct AccountEpochTests {
  private func signedIn(_ desk: EngineTestBench, _ view: FlowView) async throws -> SessionSnapshot {
    try #require(try await desk.session(view))
  }

  /// Creates a flow and has a code sent to the number.
  private func begun(_ desk: EngineTestBench, _ flow: String) async throws -> FlowID {
    let id = try await desk.flow(flow)
    _ = try await desk.engine.begin(
      id, provider: "phone_otp", fields: ["phone": .text("911111")], client: desk.client()
    ).get()
    return id
  }

  private func withPIN(_ desk: EngineTestBench, _ number: String = "911111") async throws -> SessionSnapshot {
    let own = try await signedIn(
      desk, try await desk.pass("register", EngineTestBench.phone, number, by: desk.client()))
    let set = try await signedIn(
      desk, try await desk.secret("pin_set", ["new_secret": "1"], by: desk.client(session: own)).get())
    return try await signedIn(
      desk, try await desk.secret("pin_unlock", ["secret": "1"], by: desk.client(session: set)).get())
  }

  /// Attack: a code is sent to the old number, the owner replaces the number, and then the code is typed.
  @Test func aCodeThatWasSentBeforeTheChangeIsDead() async throws {
    let desk = try await EngineTestBench.full()
    let own = try await signedIn(
      desk, try await desk.pass("register", EngineTestBench.phone, "911111", by: desk.client()))
    let thief = try await begun(desk, "login")
    let code = desk.code
    _ = try await desk.pass("change_phone", EngineTestBench.phone, "922222", by: desk.client(session: own))
    #expect(await desk.submit(thief, code).refusal?.code == .flowExpired)
    #expect(try await desk.store.account(own.account.id)?.identifiers.map(\.identifier.value) == ["+922222"])
    #expect(try await desk.store.sessions(of: own.account.id).count == 1)
  }

  /// Attack: the same with a sign-in of two steps that waits at its last step.
  @Test func aSignInThatWaitsEndsWithTheChange() async throws {
    let desk = try await EngineTestBench.full {
      $0.flows["login"] = .test(
        "login", account: .existing, steps: [.test(EngineTestBench.phone), .test(EngineTestBench.pin)])
    }
    let own = try await withPIN(desk)
    let thief = try await begun(desk, "login")
    _ = try await desk.submit(thief, desk.code).get()
    _ = try await desk.engine.begin(thief, provider: "pin", fields: [:], client: desk.client()).get()
    _ = try await desk.secret("pin_change", ["secret": "1", "new_secret": "2"], by: desk.client(session: own)).get()
    let late = await desk.engine.submit(thief, fields: ["secret": .text("2")], client: desk.client()).refusal
    #expect(late?.code == .flowExpired)
    #expect(
      await desk.engine.begin(thief, provider: "pin", fields: [:], client: desk.client()).refusal?.code == .flowExpired)
  }

  /// Attack: a reset is parked after its code and completed when the owner believes that the account is safe again.
  @Test func aResetThatWaitsEndsWithTheChange() async throws {
    let desk = try await EngineTestBench.full()
    let own = try await withPIN(desk)
    let client = desk.client(session: own)
    let parked = try await desk.engine.create("pin_reset", returnTo: nil, browser: nil, client: client).get().id
    _ = try await desk.engine.begin(parked, provider: "phone_otp", fields: [:], client: client).get()
    _ = try await desk.engine.submit(parked, fields: ["code": .text(desk.code)], client: client).get()
    let changed = try await desk.secret("pin_change", ["secret": "1", "new_secret": "2"], by: client).get()
    let now = desk.client(session: try await signedIn(desk, changed))
    let late = await desk.engine.begin(parked, provider: "pin", fields: ["new_secret": .text("3")], client: now).refusal
    #expect(late?.code == .flowExpired)
  }

  /// Attack: the former owner of an address has a password reset waiting after its code.
  @Test func aPasswordResetThatWaitsDoesNotBringAnAddressBack() async throws {
    let desk = try await EngineTestBench.full()
    let own = try await signedIn(
      desk, try await desk.pass("register", EngineTestBench.mail, "911111", by: desk.client()))
    let thief = try await desk.engine.create("password_reset", returnTo: nil, browser: nil, client: desk.client()).get()
      .id
    _ = try await desk.engine.begin(thief, provider: nil, fields: ["phone": .text("911111")], client: desk.client())
      .get()
    await desk.engine.deliveriesEnd()
    _ = try await desk.engine.submit(thief, fields: ["code": .text(desk.code)], client: desk.client()).get()
    _ = try await desk.pass("change_email", EngineTestBench.mail, "922222", by: desk.client(session: own))
    let late = await desk.engine.begin(
      thief, provider: "password", fields: ["new_secret": .text("x")], client: desk.client()
    ).refusal
    #expect(late?.code == .flowExpired)
    #expect(try await desk.store.account(own.account.id)?.identifiers.map(\.identifier.value) == ["+922222"])
  }

  /// Adding a first address keeps other sessions; replacing it ends them.
  @Test func aChangeEndsOtherSessionsAndAnAdditionDoesNot() async throws {
    let desk = try await EngineTestBench.full()
    var own = try await signedIn(
      desk, try await desk.pass("register", EngineTestBench.phone, "911111", by: desk.client()))
    let count = { try await desk.store.sessions(of: own.account.id).count }
    func another() async throws { _ = try await desk.pass("login", EngineTestBench.phone, "911111", by: desk.client()) }
    try await another()
    own = try await signedIn(
      desk, try await desk.pass("change_email", EngineTestBench.mail, "922222", by: desk.client(session: own)))
    #expect(try await count() == 2, "the first address is an addition")
    own = try await signedIn(
      desk, try await desk.secret("pin_set", ["new_secret": "1"], by: desk.client(session: own)).get())
    #expect(try await count() == 2, "the first PIN is an addition")
    #expect(try await desk.store.account(own.account.id)?.epoch == 0)
    own = try await signedIn(
      desk,
      try await desk.secret("pin_change", ["secret": "1", "new_secret": "2"], by: desk.client(session: own)).get())
    #expect(try await count() == 1)
    try await another()
    own = try await signedIn(
      desk, try await desk.pass("change_email", EngineTestBench.mail, "933333", by: desk.client(session: own)))
    #expect(try await count() == 1)
    try await another()
    own = try await signedIn(
      desk, try await desk.secret("pin_disable", ["secret": "2"], by: desk.client(session: own)).get())
    #expect(try await count() == 1)
    #expect(
      try await desk.store.sessions(of: own.account.id).first?.id == own.session.id, "the one that changed it goes on")
    #expect(try await desk.store.account(own.account.id)?.epoch == 3)
  }

  @Test func signingOutEverywhereEndsRunningFlows() async throws {
    let desk = try await EngineTestBench.full()
    let own = try await signedIn(
      desk, try await desk.pass("register", EngineTestBench.phone, "911111", by: desk.client()))
    let thief = try await begun(desk, "login")
    let ending = SessionEnding(store: desk.store, clock: desk.clock, random: SystemRandom())
    try await ending.endAll(of: own.account.id, by: desk.client().address)
    #expect(try await desk.store.sessions(of: own.account.id).isEmpty)
    #expect(await desk.submit(thief, desk.code).refusal?.code == .flowExpired)
    #expect(try await desk.pass("login", EngineTestBench.phone, "911111", by: desk.client()).status == .complete)
  }

  @Test func disabledAccountStaysClosedForRunningFlows() async throws {
    let desk = try await EngineTestBench.full()
    let own = try await signedIn(
      desk, try await desk.pass("register", EngineTestBench.phone, "911111", by: desk.client()))
    let accounts = AccountAdministration(
      store: desk.store, providers: try ProviderRegistry([]), keys: desk.keys, clock: desk.clock, random: SystemRandom()
    )
    let thief = try await begun(desk, "login")
    _ = try await accounts.disable(own.account.id)
    #expect(await desk.submit(thief, desk.code).refusal?.code == .disabled)
    _ = try await accounts.unlock(own.account.id)
    #expect(await desk.submit(thief, desk.code).refusal?.code == .flowExpired)
  }

  /// Attack: the thief's app has completed a flow and redeems its code after the owner has changed the number.
  @Test func anAppRedeemsNothingAfterTheChange() async throws {
    let desk = try await EngineTestBench.full()
    let own = try await signedIn(
      desk, try await desk.pass("register", EngineTestBench.phone, "911111", by: desk.client()))
    let verifier = String(repeating: "v", count: 43)
    let app = AppReturn(
      challenge: Base64URL.encode(SHA256.hash(data: Array(verifier.utf8))), address: "https://app.example.com/back")
    let id = try await desk.engine.create("login", returnTo: nil, browser: nil, app: app, client: desk.client()).get()
      .id
    _ = try await desk.engine.begin(
      id, provider: "phone_otp", fields: ["phone": .text("911111")], client: desk.client()
    ).get()
    let next = try #require(try await desk.submit(id, desk.code).get().next)
    _ = try await desk.pass("change_phone", EngineTestBench.phone, "922222", by: desk.client(session: own))
    let fields: [String: InputValue] = [
      "code": .text(String(next.split(separator: "=").last ?? "")), "code_verifier": .text(verifier),
    ]
    #expect(await desk.engine.submit(id, fields: fields, client: desk.client()).refusal?.code == .flowExpired)
  }

  /// Attack: the gateway is upgraded in the middle of a flow that began under weaker rules.
  @Test func aFlowOfAnOlderProgramEnds() async throws {
    let desk = try await EngineTestBench.full()
    _ = try await desk.pass("register", EngineTestBench.phone, "911111", by: desk.client())
    let id = try await begun(desk, "login")
    var record = try #require(try await desk.store.flow(id.hash))
    record.basis = nil
    _ = try await desk.store.apply([.putFlow(record)], at: desk.clock.now())
    #expect(await desk.submit(id, desk.code).refusal?.code == .flowExpired)
    #expect(await desk.engine.view(id, client: desk.client()).refusal?.code == .flowExpired)
  }

  /// Attack: two right codes at once. One creates the account; telling the other that the number is registered would
  /// reveal the winner.
  @Test func loserOfARaceGetsStepNotOpen() async throws {
    let desk = try await EngineTestBench.full()
    let first = try await begun(desk, "enter")
    let firstCode = desk.code
    let second = try await begun(desk, "enter")
    let secondCode = desk.code
    let refusals = try await withThrowingTaskGroup(of: Refusal?.self) { group in
      for _ in 0..<5 { group.addTask { await desk.submit(first, firstCode).refusal } }
      for _ in 0..<5 { group.addTask { await desk.submit(second, secondCode).refusal } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(refusals.filter { $0 == nil }.count == 1)
    #expect(refusals.compactMap { $0?.code }.allSatisfy { $0 == .stepNotOpen }, "\(refusals)")
  }
}
