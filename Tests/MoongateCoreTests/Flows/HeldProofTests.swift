import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// Changes of an account need a recent proof of something that the account already holds.
@Suite struct HeldProofTests {
  private let day: Duration = .seconds(86_400)

  /// Creates a flow; returns its refusal, or nil if there is none.
  private func refusal(_ bench: EngineTestBench, _ flow: String, _ own: SessionSnapshot) async -> Refusal? {
    await bench.engine.create(flow, returnTo: nil, browser: nil, client: bench.client(session: own)).refusal
  }

  /// Attack: with a stolen session the thief replaces the number, and the owner never gets in again.
  @Test(arguments: ["change_phone", "change_email", "join_phone", "pin_set"]) func aChangeNeedsARecentProof(
    flow: String
  ) async throws {
    let bench = try await EngineTestBench.full()
    let own = try await bench.signedIn(
      try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client()))
    #expect(await refusal(bench, flow, own) == nil, "a recent sign-in counts")
    bench.clock.advance(by: .milliseconds(599_999))
    #expect(await refusal(bench, flow, own) == nil)
    bench.clock.advance(by: .milliseconds(1))
    let late = await refusal(bench, flow, own)
    #expect(late?.code == .stepUpRequired && late?.provider == EngineTestBench.phone && late?.flow == "step_up")
    let again = try await bench.signedIn(
      try await bench.pass("step_up", EngineTestBench.phone, nil, by: bench.client(session: own)))
    #expect(await refusal(bench, flow, again) == nil)
  }

  @Test func changeWindowFollowsTheConfiguration() async throws {
    let bench = try await EngineTestBench.full { $0.accounts.changeWithin = .seconds(60) }
    let own = try await bench.signedIn(
      try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client()))
    bench.clock.advance(by: .seconds(60))
    #expect(await refusal(bench, "change_phone", own)?.code == .stepUpRequired)
  }

  @Test func aFlowThatWasCreatedInTimeBeginsNoStepLater() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await bench.signedIn(
      try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client()))
    let client = bench.client(session: own)
    let id = try await bench.engine.create("change_phone", returnTo: nil, browser: nil, client: client).get().id
    bench.clock.advance(by: .seconds(600))
    let late = await bench.engine.begin(id, provider: nil, fields: ["phone": .text("922222")], client: client).refusal
    #expect(late?.code == .stepUpRequired)
  }

  @Test func anAccountWithAPasscodeIsAskedForThePasscode() async throws {
    let bench = try await EngineTestBench.full()
    let first = try await bench.signedIn(
      try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client()))
    let own = try await bench.signedIn(
      try await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: first)).get())
    let refused = await refusal(bench, "change_phone", own)
    #expect(refused?.code == .stepUpRequired && refused?.provider == EngineTestBench.pin && refused?.flow == "step_up")
    // Attack: a code to the number, from a stolen SIM, is not enough.
    let code = try await bench.signedIn(
      try await bench.pass("step_up", EngineTestBench.phone, nil, by: bench.client(session: own)))
    #expect(await refusal(bench, "change_phone", code)?.provider == EngineTestBench.pin)
    let unlocked = try await bench.signedIn(
      try await bench.secret("pin_unlock", ["secret": "1"], by: bench.client(session: code)).get())
    #expect(await refusal(bench, "change_phone", unlocked) == nil)
  }

  @Test func accountRegisteredByPasswordProvesThePassword() async throws {
    let bench = try await EngineTestBench.full {
      $0.flows["step_up"] = .test("step_up", account: .existing, steps: [.test(EngineTestBench.mail, "password")])
    }
    let view = try await bench.secret(
      "register_email", ["email": "911111", "new_secret": "s"], provider: "password", by: bench.client()
    ).get()
    let own = try await bench.signedIn(try await bench.engine.skip(view.id, client: bench.client()).get())
    #expect(await refusal(bench, "change_phone", own) == nil)
    bench.clock.advance(by: .seconds(600))
    let late = await refusal(bench, "change_phone", own)
    #expect(
      late?.code == .stepUpRequired && late?.provider == "password", "an address that is only claimed proves nothing")
    let client = bench.client(session: own)
    let proved = try await bench.signedIn(
      try await bench.secret("step_up", ["secret": "s"], provider: "password", by: client).get())
    #expect(await refusal(bench, "change_phone", proved) == nil)
  }

  @Test func accountWithOnlyGoogleProvesGoogle() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await bench.signedIn(try await bench.google(sub: "asha", by: bench.client()).get())
    bench.clock.advance(by: .seconds(600))
    #expect(await refusal(bench, "join_phone", own)?.provider == EngineTestBench.google)
    let again = try await bench.signedIn(
      try await bench.google("step_up", sub: "asha", by: bench.client(session: own)).get())
    #expect(await refusal(bench, "join_phone", again) == nil)
  }

  /// Attack: the thief proves a number of their own, and it counts for a route that requires a fresh code, for the ten
  /// minutes and for `aal`.
  @Test func newIdentifierIsNotAFactor() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await bench.signedIn(
      try await bench.pass("register", EngineTestBench.mail, "911111", by: bench.client()))
    bench.clock.advance(by: .seconds(300))
    let added = try await bench.pass("change_phone", EngineTestBench.phone, "922222", by: bench.client(session: own))
    #expect(
      added.session?.aal == 1 && added.session?.passed.map(\.provider) == [EngineTestBench.mail] && added.passed.isEmpty
    )
    let after = try await bench.signedIn(added)
    #expect(after.session.passed == own.session.passed)
    bench.clock.advance(by: .seconds(300))
    #expect(await refusal(bench, "change_phone", after)?.provider == EngineTestBench.mail)
  }

  @Test func proofOfARemovedIdentifierAuthorisesNothing() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await bench.signedIn(
      try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client()))
    let after = try await bench.signedIn(
      try await bench.pass("change_phone", EngineTestBench.phone, "922222", by: bench.client(session: own)))
    let refused = await refusal(bench, "change_email", after)
    #expect(refused?.code == .stepUpRequired && refused?.provider == EngineTestBench.phone)
  }

  /// Attack: an address that was added with a stolen session replaces PIN and password an hour later.
  @Test func newIdentifierSignsInButCannotChangeTheAccount() async throws {
    let bench = try await EngineTestBench.full()
    _ = try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client())
    bench.clock.advance(by: day + day)
    let own = try await bench.signedIn(
      try await bench.pass("login", EngineTestBench.phone, "911111", by: bench.client()))
    _ = try await bench.pass("change_email", EngineTestBench.mail, "922222", by: bench.client(session: own))
    bench.clock.advance(by: .seconds(3600))
    let byMail = try await bench.signedIn(
      try await bench.pass("login", EngineTestBench.mail, "922222", by: bench.client()))
    let refused = await refusal(bench, "pin_set", byMail)
    #expect(
      refused?.code == .stepUpRequired && refused?.provider == EngineTestBench.phone,
      "something else that is held can be named")

    #expect(
      await refusal(bench, "pin_reset", byMail)?.code == .stepUpRequired, "a PIN that is not there is set, not reset")

    let id = try await bench.engine.create("password_reset", returnTo: nil, browser: nil, client: bench.client()).get()
      .id
    _ = try await bench.engine.begin(id, provider: nil, fields: ["phone": .text("922222")], client: bench.client())
      .get()
    await bench.engine.deliveriesEnd()
    let parked = await bench.engine.submit(
      id, fields: ["code": .text(bench.code), "new_secret": .text("new")], client: bench.client()
    ).refusal
    #expect(parked?.code == .identifierTooNew, "concealed until the code was right")
    #expect(
      await bench.engine.submit(id, fields: ["new_secret": .text("new")], client: bench.client()).refusal?.code
        == .stepNotOpen)

    bench.clock.advance(by: .seconds(82_800))
    let later = try await bench.signedIn(
      try await bench.pass("login", EngineTestBench.mail, "922222", by: bench.client()))
    #expect(await refusal(bench, "pin_set", later) == nil)
  }

  /// Attack: an address that was added with a stolen session replaces the PIN an hour later.
  @Test func recentlyAddedIdentifierCannotResetAPIN() async throws {
    let bench = try await EngineTestBench.full()
    _ = try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client())
    bench.clock.advance(by: day + day)
    var own = try await bench.signedIn(
      try await bench.pass("login", EngineTestBench.phone, "911111", by: bench.client()))
    own = try await bench.signedIn(
      try await bench.pass("change_email", EngineTestBench.mail, "922222", by: bench.client(session: own)))
    own = try await bench.signedIn(
      try await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: own)).get())
    bench.clock.advance(by: .seconds(3600))
    let byMail = try await bench.signedIn(
      try await bench.pass("login", EngineTestBench.mail, "922222", by: bench.client()))
    let client = bench.client(session: byMail)
    let reset = try await bench.engine.create("pin_reset", returnTo: nil, browser: nil, client: client).get()
    #expect(reset.choices == [EngineTestBench.phone])
    let tooNew = await bench.engine.begin(reset.id, provider: "email_code", fields: [:], client: client).refusal
    #expect(tooNew?.code == .identifierTooNew && tooNew?.retryAfter == .seconds(82_800))

    bench.clock.advance(by: .seconds(82_800))
    let later = try await bench.signedIn(
      try await bench.pass("login", EngineTestBench.mail, "922222", by: bench.client()))
    let old = bench.client(session: later)
    let again = try await bench.engine.create("pin_reset", returnTo: nil, browser: nil, client: old).get()
    #expect(try await bench.engine.begin(again.id, provider: "email_code", fields: [:], client: old).get().step != nil)
  }

  /// Attack: a code to a mailbox sets a first password on an account that a PIN protects.
  @Test func aResetMakesNoFirstPasswordPastAFactor() async throws {
    let bench = try await EngineTestBench.full()
    let first = try await bench.pass("register", EngineTestBench.mail, "911111", by: bench.client())
    let own = try await bench.signedIn(first)
    _ = try await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: own)).get()
    let reset = await bench.engine.create("password_reset", returnTo: nil, browser: nil, client: bench.client())
    let id = try reset.get().id
    _ = try await bench.engine.begin(id, provider: nil, fields: ["phone": .text("911111")], client: bench.client())
      .get()
    await bench.engine.deliveriesEnd()
    var answer = await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: bench.client())
    if answer.refusal == nil {
      answer = await bench.engine.begin(
        id, provider: "password", fields: ["new_secret": .text("mule")], client: bench.client())
    }
    #expect(answer.refusal?.code == .denied)
    #expect(try await bench.store.account(own.account.id)?.credentials == [EngineTestBench.pin])
  }

  /// A user who has nothing old enough to prove is told how long to wait.
  @Test func userWithOnlyNewIdentifiersMustWait() async throws {
    let bench = try await EngineTestBench.full {
      $0.flows["step_up"] = .test("step_up", account: .existing, steps: [.test(EngineTestBench.mail)])
    }
    _ = try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client())
    bench.clock.advance(by: day + day)
    let own = try await bench.signedIn(
      try await bench.pass("login", EngineTestBench.phone, "911111", by: bench.client()))
    _ = try await bench.pass("change_email", EngineTestBench.mail, "922222", by: bench.client(session: own))
    let byMail = try await bench.signedIn(
      try await bench.pass("login", EngineTestBench.mail, "922222", by: bench.client()))
    let refused = await refusal(bench, "pin_set", byMail)
    #expect(refused?.code == .identifierTooNew && refused?.retryAfter == day)
  }

  @Test func firstIdentifierIsNeverTooNew() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await bench.signedIn(try await bench.google(sub: "asha", email: "911111", by: bench.client()).get())
    #expect(await refusal(bench, "pin_set", own) == nil)
    bench.clock.advance(by: .seconds(1))
    let added = try await bench.signedIn(
      try await bench.pass("join_phone", EngineTestBench.phone, "922222", by: bench.client(session: own)))
    let reset = try await bench.engine.create(
      "pin_reset", returnTo: nil, browser: nil, client: bench.client(session: added)
    ).get()
    #expect(reset.choices == [EngineTestBench.mail])
  }

  /// A lost number is replaced by proving the address, and vice versa.
  @Test func lostNumberIsReplacedByProvingTheAddress() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await bench.signedIn(
      try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client()))
    _ = try await bench.pass("change_email", EngineTestBench.mail, "922222", by: bench.client(session: own))
    bench.clock.advance(by: day)
    let byMail = try await bench.signedIn(
      try await bench.pass("login", EngineTestBench.mail, "922222", by: bench.client()))
    let changed = try await bench.pass(
      "change_phone", EngineTestBench.phone, "933333", by: bench.client(session: byMail))
    #expect(changed.account?.phone == "+933333")
  }

  /// Attack: an account that somebody else created for a stranger has a claimed address, and a code to it resets the
  /// PIN.
  @Test func aResetTakesVerifiedIdentifiersOnly() async throws {
    let bench = try await EngineTestBench.full()
    let view = try await bench.secret(
      "register_email", ["email": "911111", "new_secret": "s"], provider: "password", by: bench.client()
    ).get()
    let own = try await bench.signedIn(try await bench.engine.skip(view.id, client: bench.client()).get())
    #expect(await refusal(bench, "pin_reset", own)?.code == .denied)
  }

  @Test func aSessionOfAnOlderProgramStepsUpOnce() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await bench.signedIn(
      try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client()))
    var older = own.session
    older.passed = [PassedStep(provider: EngineTestBench.phone, at: bench.clock.now())]
    _ = try await bench.store.apply([.replaceSession(own.session.token, by: older)], at: bench.clock.now())
    let found = try #require(try await bench.store.session(older.token))
    #expect(await refusal(bench, "change_phone", found)?.code == .stepUpRequired)
    let again = try await bench.signedIn(
      try await bench.pass("step_up", EngineTestBench.phone, nil, by: bench.client(session: found)))
    #expect(await refusal(bench, "change_phone", again) == nil)
  }

  /// Attack: the thief begins a change of the number; the owner sets a PIN and believes that the account is safe.
  @Test func aChangeThatWaitsNeedsWhatTheAccountHasAtItsEnd() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await bench.signedIn(
      try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client()))
    let client = bench.client(session: own)
    let parked = try await bench.engine.create("change_phone", returnTo: nil, browser: nil, client: client).get().id
    _ = try await bench.engine.begin(parked, provider: nil, fields: ["phone": .text("922222")], client: client).get()
    let code = bench.code
    let after = try await bench.signedIn(try await bench.secret("pin_set", ["new_secret": "1"], by: client).get())
    let late = await bench.engine.submit(parked, fields: ["code": .text(code)], client: bench.client(session: after))
      .refusal
    #expect(late?.code == .stepUpRequired && late?.provider == EngineTestBench.pin)
    #expect(try await bench.store.account(own.account.id)?.identifiers.map(\.identifier.value) == ["+911111"])
  }

  /// Attack: two flows set a PIN at the same moment, and the second would replace the first.
  @Test func parallelFlowsSetASecretOnce() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await bench.signedIn(
      try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client()))
    _ = try await bench.pass("login", EngineTestBench.phone, "911111", by: bench.client())
    let made = try await withThrowingTaskGroup(of: Bool.self) { group in
      for number in 0..<8 {
        let other = try await bench.signedIn(
          try await bench.pass("login", EngineTestBench.phone, "911111", by: bench.client()))
        group.addTask {
          await bench.secret("pin_set", ["new_secret": "\(number)"], by: bench.client(session: other)).refusal == nil
        }
      }
      return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
    #expect(made == 1)
    #expect(try await bench.store.account(own.account.id)?.credentials == [EngineTestBench.pin])
  }
}
