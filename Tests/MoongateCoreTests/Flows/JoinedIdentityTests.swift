import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// Identities that a sign-in joins to an existing account: when that happens, who is told, and how it ends. Beside each
/// attack stands the legitimate use.
@Suite struct JoinedIdentityTests {
  private static let phone = EngineTestBench.phone
  private static let mail = EngineTestBench.mail
  private static let delay: Duration = .seconds(86_400)

  /// An account with one identifier and a session, a day after it was created.
  private func owner(_ bench: EngineTestBench, by provider: ProviderName = Self.mail) async throws -> SessionSnapshot {
    _ = try await bench.pass("register", provider, "911111", by: bench.client())
    bench.clock.advance(by: Self.delay)
    return try await bench.signedIn(try await bench.pass("login", provider, "911111", by: bench.client()))
  }

  /// Signs in by an identity with the account's address, and a code to that address if the site does not vouch for it.
  private func joins(_ bench: EngineTestBench, _ sub: String = "mallory", attested: Bool) async throws -> FlowView {
    let view = try await bench.google(sub: sub, email: "911111", attested: attested, by: bench.client()).get()
    guard view.status == .pending else { return view }
    _ = try await bench.engine.begin(view.id, provider: "email_code", fields: [:], client: bench.client()).get()
    await bench.engine.deliveriesEnd()
    return try await bench.engine.submit(view.id, fields: ["code": .text(bench.code)], client: bench.client()).get()
  }

  private func identities(_ bench: EngineTestBench, _ account: String) async throws -> [HeldIdentifier] {
    try #require(try await bench.store.account(account)).identifiers.filter { $0.identifier.kind == .federated }
  }

  /// Those who were told this text.
  private func told(_ text: String, _ bench: EngineTestBench) async -> [String] {
    await bench.engine.deliveriesEnd()
    return bench.delivery.notices.filter { $0.text.contains(text) }.map(\.to)
  }

  /// Resets the password by a code to the address.
  private func recovers(_ bench: EngineTestBench) async throws -> FlowView {
    bench.clock.advance(by: .seconds(100))
    let id = try await bench.begun("password_reset", phone: "911111")
    await bench.engine.deliveriesEnd()
    return try await bench.engine.submit(
      id, fields: ["code": .text(bench.code), "new_secret": .text("own")], client: bench.client()
    ).get()
  }

  /// Attack: someone who reads one code of the victim's mail uses an identity of their own with that address. It was
  /// joined silently, opened the account from then on, and survived the reset of the password and the sign-out
  /// everywhere.
  @Test(arguments: [true, false]) func joinedIdentityIsToldWaitsAndEndsWithARecovery(isAttested: Bool) async throws {
    let bench = try await EngineTestBench.full()
    let own = try await owner(bench)
    let joined = try await joins(bench, attested: isAttested)
    #expect(joined.account?.id == own.account.id && joined.status == .complete, "the proof of the address signs in")
    #expect(await told("was connected to your account", bench) == ["+911111"])
    let held = try await identities(bench, own.account.id)
    #expect(held.count == 1 && held[0].waitsUntil == bench.clock.now() + Self.delay)
    // By itself, it does not sign in.
    let alone = try await bench.google(sub: "mallory", by: bench.client()).refusal
    #expect(alone?.code == .identifierTooNew && alone?.retryAfter == Self.delay)
    // The legitimate use: until then, its owner signs in as on the first day.
    bench.clock.advance(by: .seconds(100))
    #expect(try await joins(bench, attested: isAttested).account?.id == own.account.id)
    #expect(try await identities(bench, own.account.id).count == 1)
    #expect(try await recovers(bench).status == .complete)
    #expect(try await identities(bench, own.account.id).isEmpty)
    #expect(await told("was disconnected from your account", bench) == ["+911111"])
    #expect(try await bench.google(sub: "mallory", by: bench.client()).get().account?.id != own.account.id)
  }

  @Test func joinedIdentitySignsInAloneOnceTheDelayHasPassed() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await owner(bench)
    _ = try await joins(bench, attested: false)
    bench.clock.advance(by: Self.delay)
    #expect(try await bench.google(sub: "mallory", by: bench.client()).get().account?.id == own.account.id)
    #expect(try await recovers(bench).status == .complete)
    #expect(try await identities(bench, own.account.id).count == 1, "it is older than the delay")
  }

  /// Attack: a thief within a stolen session adds an address of their own, and signs in, or passes a step-up, by an
  /// identity elsewhere that has the same address. Replacing the address left the identity.
  @Test(arguments: ["login", "step_up"]) func addressThatIsTooNewJoinsNoIdentity(flow: String) async throws {
    let bench = try await EngineTestBench.full {
      $0.flows["step_up"] = .test(
        "step_up", account: .existing, steps: [.test(EngineTestBench.phone, EngineTestBench.google)])
    }
    let own = try await owner(bench, by: Self.phone)
    let added = try await bench.signedIn(
      try await bench.pass("change_email", Self.mail, "933333", by: bench.client(session: own)))
    let client = flow == "login" ? bench.client() : bench.client(session: added)
    let entered = try await bench.google(flow, sub: "mallory", email: "933333", by: client).get()
    #expect(entered.account?.id == own.account.id, "the address signs in, as a code to it does")
    #expect(try await identities(bench, own.account.id).isEmpty)
    #expect(try await bench.google(sub: "mallory", by: bench.client()).get().account?.id != own.account.id)
  }

  /// Attack: within a stolen session, a step-up by the thief's identity with the owner's address joins it.
  @Test func stepUpJoinsNoIdentity() async throws {
    let bench = try await EngineTestBench.full {
      $0.flows["step_up"] = .test("step_up", account: .existing, steps: [.test(EngineTestBench.google)])
    }
    let own = try await owner(bench)
    let done = try await bench.google("step_up", sub: "mallory", email: "911111", by: bench.client(session: own)).get()
    #expect(done.account?.id == own.account.id)
    #expect(try await identities(bench, own.account.id).isEmpty)
  }

  /// Attack: the owner has an identity at the site, and the thief's becomes a second one there, which the account page
  /// does not show; by a sign-in, or by a merge.
  @Test func noSecondIdentityAtASiteIsJoined() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await owner(bench)
    _ = try await joins(bench, "asha", attested: false)
    bench.clock.advance(by: Self.delay)
    let joined = try await joins(bench, attested: true)
    #expect(joined.account?.id == own.account.id, "the code signs in")
    #expect(try await identities(bench, own.account.id).map(\.identifier.display) == ["asha"])
    let back = try await bench.signedIn(try await bench.google(sub: "asha", by: bench.client()).get())
    _ = try await bench.pass("change_phone", Self.phone, "922222", by: bench.client(session: back))
    let thief = try await bench.signedIn(try await bench.google(sub: "eve", by: bench.client()).get())
    await #expect(throws: Refusal.self) {
      try await bench.pass("join_phone", Self.phone, "922222", by: bench.client(session: thief))
    }
    #expect(try await identities(bench, own.account.id).map(\.identifier.display) == ["asha"])
  }

  /// Attack: a thief connects an identity of their own within a stolen session. Its owner signs out everywhere.
  @Test(arguments: [true, false]) func signingOutEverywhereDropsYoungIdentities(isProved: Bool) async throws {
    let bench = try await EngineTestBench.full()
    let own = try await owner(bench)
    _ = try await joins(bench, attested: false)
    if !isProved { bench.clock.advance(by: .seconds(1800)) }
    try await bench.engine.signOutEverywhere(keepsOwn: true, client: bench.client(session: own)).get()
    #expect(try await identities(bench, own.account.id).isEmpty == isProved)
    #expect(await told("was disconnected from your account", bench) == (isProved ? ["+911111"] : []))
  }

  /// Attack: an operator disables the compromised account, and the thief's identity opens it after the unlocking.
  @Test func disabledAccountIsOpenedByACodeOnly() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await owner(bench)
    _ = try await joins(bench, attested: false)
    let operators = AccountAdministration(
      store: bench.store, providers: bench.engine.providers, keys: bench.keys, clock: bench.clock,
      random: SystemRandom())
    #expect(try await operators.disable(own.account.id) == .done)
    #expect(try await operators.unlock(own.account.id) == .done)
    #expect(try await identities(bench, own.account.id).isEmpty)
    bench.clock.advance(by: Self.delay)
    #expect(try await bench.google(sub: "mallory", by: bench.client()).get().account?.id != own.account.id)
    #expect(try await bench.pass("login", Self.mail, "911111", by: bench.client()).account?.id == own.account.id)
    // An account that nothing else opens keeps its identity.
    let only = try #require(try await bench.google(sub: "ravi", by: bench.client()).get().account?.id)
    #expect(try await operators.disable(only) == .done)
    #expect(try await identities(bench, only).count == 1)
  }
}
