import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// A flow completes only if what it proved is still held; a change of an account ends every older flow and session.
@Suite struct AccountEpochTests {
  /// Creates a flow and has a code sent to the number.
  private func begun(_ bench: EngineTestBench, _ flow: String) async throws -> FlowID {
    let id = try await bench.flow(flow)
    _ = try await bench.engine.begin(
      id, provider: "phone_otp", fields: ["phone": .text("911111")], client: bench.client()
    ).get()
    return id
  }

  private func withPIN(_ bench: EngineTestBench, _ number: String = "911111") async throws -> SessionSnapshot {
    let own = try await bench.signedIn(
      try await bench.pass("register", EngineTestBench.phone, number, by: bench.client()))
    let set = try await bench.signedIn(
      try await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: own)).get())
    return try await bench.signedIn(
      try await bench.secret("pin_unlock", ["secret": "1"], by: bench.client(session: set)).get())
  }

  /// Attack: a code is sent to the old number, the owner replaces the number, and then the code is typed.
  @Test func codeSentBeforeAnAccountChangeIsRefused() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await bench.signedIn(
      try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client()))
    let thief = try await begun(bench, "login")
    let code = bench.code
    _ = try await bench.pass("change_phone", EngineTestBench.phone, "922222", by: bench.client(session: own))
    #expect(await bench.submit(thief, code).refusal?.code == .flowExpired)
    #expect(try await bench.store.account(own.account.id)?.identifiers.map(\.identifier.value) == ["+922222"])
    #expect(try await bench.store.sessions(of: own.account.id).count == 1)
  }

  /// Attack: the same with a sign-in of two steps that waits at its last step.
  @Test func accountChangeEndsPendingSignIns() async throws {
    let bench = try await EngineTestBench.full {
      $0.flows["login"] = .test(
        "login", account: .existing, steps: [.test(EngineTestBench.phone), .test(EngineTestBench.pin)])
    }
    let own = try await withPIN(bench)
    let thief = try await begun(bench, "login")
    _ = try await bench.submit(thief, bench.code).get()
    _ = try await bench.engine.begin(thief, provider: "pin", fields: [:], client: bench.client()).get()
    _ = try await bench.secret("pin_change", ["secret": "1", "new_secret": "2"], by: bench.client(session: own)).get()
    let late = await bench.engine.submit(thief, fields: ["secret": .text("2")], client: bench.client()).refusal
    #expect(late?.code == .flowExpired)
    #expect(
      await bench.engine.begin(thief, provider: "pin", fields: [:], client: bench.client()).refusal?.code
        == .flowExpired)
  }

  /// Attack: a reset is parked after its code and completed when the owner believes that the account is safe again.
  @Test func aResetThatWaitsEndsWithTheChange() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await withPIN(bench)
    let client = bench.client(session: own)
    let parked = try await bench.engine.create("pin_reset", returnTo: nil, browser: nil, client: client).get().id
    _ = try await bench.engine.begin(parked, provider: "phone_otp", fields: [:], client: client).get()
    _ = try await bench.engine.submit(parked, fields: ["code": .text(bench.code)], client: client).get()
    let changed = try await bench.secret("pin_change", ["secret": "1", "new_secret": "2"], by: client).get()
    let now = bench.client(session: try await bench.signedIn(changed))
    let late = await bench.engine.begin(parked, provider: "pin", fields: ["new_secret": .text("3")], client: now)
      .refusal
    #expect(late?.code == .flowExpired)
  }

  /// Attack: the former owner of an address has a password reset waiting after its code.
  @Test func aPasswordResetThatWaitsDoesNotBringAnAddressBack() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await bench.signedIn(
      try await bench.pass("register", EngineTestBench.mail, "911111", by: bench.client()))
    let thief = try await bench.engine.create("password_reset", returnTo: nil, browser: nil, client: bench.client())
      .get()
      .id
    _ = try await bench.engine.begin(thief, provider: nil, fields: ["phone": .text("911111")], client: bench.client())
      .get()
    await bench.engine.deliveriesEnd()
    _ = try await bench.engine.submit(thief, fields: ["code": .text(bench.code)], client: bench.client()).get()
    _ = try await bench.pass("change_email", EngineTestBench.mail, "922222", by: bench.client(session: own))
    let late = await bench.engine.begin(
      thief, provider: "password", fields: ["new_secret": .text("x")], client: bench.client()
    ).refusal
    #expect(late?.code == .flowExpired)
    #expect(try await bench.store.account(own.account.id)?.identifiers.map(\.identifier.value) == ["+922222"])
  }

  /// Adding a first address keeps other sessions; replacing it ends them.
  @Test func aChangeEndsOtherSessionsAndAnAdditionDoesNot() async throws {
    let bench = try await EngineTestBench.full()
    var own = try await bench.signedIn(
      try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client()))
    let count = { try await bench.store.sessions(of: own.account.id).count }
    func another() async throws {
      _ = try await bench.pass("login", EngineTestBench.phone, "911111", by: bench.client())
    }
    try await another()
    own = try await bench.signedIn(
      try await bench.pass("change_email", EngineTestBench.mail, "922222", by: bench.client(session: own)))
    #expect(try await count() == 2, "the first address is an addition")
    own = try await bench.signedIn(
      try await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: own)).get())
    #expect(try await count() == 2, "the first PIN is an addition")
    #expect(try await bench.store.account(own.account.id)?.epoch == 0)
    own = try await bench.signedIn(
      try await bench.secret("pin_change", ["secret": "1", "new_secret": "2"], by: bench.client(session: own)).get())
    #expect(try await count() == 1)
    try await another()
    own = try await bench.signedIn(
      try await bench.pass("change_email", EngineTestBench.mail, "933333", by: bench.client(session: own)))
    #expect(try await count() == 1)
    try await another()
    own = try await bench.signedIn(
      try await bench.secret("pin_disable", ["secret": "2"], by: bench.client(session: own)).get())
    #expect(try await count() == 1)
    #expect(
      try await bench.store.sessions(of: own.account.id).first?.id == own.session.id, "the one that changed it goes on")
    #expect(try await bench.store.account(own.account.id)?.epoch == 3)
  }

  @Test func signingOutEverywhereEndsRunningFlows() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await bench.signedIn(
      try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client()))
    let thief = try await begun(bench, "login")
    try await bench.engine.signOutEverywhere(keepsOwn: false, client: bench.client(session: own)).get()
    #expect(try await bench.store.sessions(of: own.account.id).isEmpty)
    #expect(await bench.submit(thief, bench.code).refusal?.code == .flowExpired)
    #expect(try await bench.pass("login", EngineTestBench.phone, "911111", by: bench.client()).status == .complete)
  }

  @Test func disabledAccountStaysClosedForRunningFlows() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await bench.signedIn(
      try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client()))
    let accounts = AccountAdministration(
      store: bench.store, providers: try ProviderRegistry([]), keys: bench.keys, clock: bench.clock,
      random: SystemRandom()
    )
    let thief = try await begun(bench, "login")
    _ = try await accounts.disable(own.account.id)
    #expect(await bench.submit(thief, bench.code).refusal?.code == .disabled)
    _ = try await accounts.unlock(own.account.id)
    #expect(await bench.submit(thief, bench.code).refusal?.code == .flowExpired)
  }

  /// Attack: the thief's app has completed a flow and redeems its code after the owner has changed the number.
  @Test func anAppRedeemsNothingAfterTheChange() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await bench.signedIn(
      try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client()))
    let page = bench.client(browser: TokenHash(of: "browser".utf8), at: .page)
    let id = try await bench.openedForApp("login", in: page)
    _ = try await bench.engine.begin(id, provider: "phone_otp", fields: ["phone": .text("911111")], client: page).get()
    let code: [String: InputValue] = ["code": .text(bench.code)]
    let next = try #require(try await bench.engine.submit(id, fields: code, client: page).get().next)
    _ = try await bench.pass("change_phone", EngineTestBench.phone, "922222", by: bench.client(session: own))
    let fields: [String: InputValue] = [
      "code": .text(String(next.split(separator: "=").last ?? "")), "code_verifier": .text(Grant.testVerifier),
    ]
    #expect(await bench.engine.submit(id, fields: fields, client: bench.client()).refusal?.code == .flowExpired)
  }

  /// Attack: two right codes at once. One creates the account; telling the other that the number is registered would
  /// reveal the winner.
  @Test func loserOfARaceGetsStepNotOpen() async throws {
    let bench = try await EngineTestBench.full()
    let first = try await begun(bench, "enter")
    let firstCode = bench.code
    let second = try await begun(bench, "enter")
    let secondCode = bench.code
    let refusals = try await withThrowingTaskGroup(of: Refusal?.self) { group in
      for _ in 0..<5 { group.addTask { await bench.submit(first, firstCode).refusal } }
      for _ in 0..<5 { group.addTask { await bench.submit(second, secondCode).refusal } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(refusals.filter { $0 == nil }.count == 1)
    #expect(refusals.compactMap { $0?.code }.allSatisfy { $0 == .stepNotOpen }, "\(refusals)")
  }
}
