import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// Flows of a user who is signed in.
@Suite struct AccountFlowTests {
  @Test(arguments: [
    "verify_email", "change_email", "change_phone", "join_phone", "pin_set", "pin_change", "pin_unlock", "pin_reset",
    "pin_disable", "step_up",
  ]) func theyBeginWithASession(flow: String) async throws {
    let desk = try await EngineTestBench.full()
    let refusal = await desk.engine.create(flow, returnTo: nil, browser: nil, client: desk.client()).refusal
    #expect(refusal?.code == .unauthenticated)
  }

  @Test func aFlowThatCannotTellWhoSomeoneIsBeginsWithASession() async throws {
    let desk = try await EngineTestBench.full()
    #expect(
      await desk.engine.create("backwards", returnTo: nil, browser: nil, client: desk.client()).refusal?.code
        == .unauthenticated)
  }

  @Test func aStepUpAddsToTheSessionAndItsOldTokenIsDead() async throws {
    let desk = try await EngineTestBench.full()
    let first = try await desk.pass("register", EngineTestBench.phone, "919999999999", by: desk.client())
    let before = try #require(try await desk.session(first))
    desk.clock.advance(by: .seconds(1000))
    #expect(
      await desk.secret("pin_set", ["new_secret": "1"], by: desk.client(session: before)).refusal?.code
        == .stepUpRequired)
    let again = try await desk.pass("step_up", EngineTestBench.phone, nil, by: desk.client(session: before))
    #expect(try await desk.session(first) == nil, "the old token is dead at once")
    let after = try #require(try await desk.session(again))
    #expect(after.session.id == before.session.id)
    #expect(after.session.createdAt == before.session.createdAt)
    #expect(after.session.expiresAt == before.session.expiresAt, "a step-up is no way to live for ever")
    let held = try #require(after.account.identifier(.phone)).identifier
    #expect(
      after.session.passed == [
        PassedStep(provider: EngineTestBench.phone, at: desk.clock.now(), identifier: desk.keys.proofHash(of: held))
      ])
    // Setting a PIN does not count as passing it.
    let set = try await desk.secret("pin_set", ["new_secret": "1"], by: desk.client(session: after)).get()
    let owner = try #require(try await desk.session(set))
    #expect(set.account?.hasPIN == true)
    #expect(owner.session.passed.map(\.provider) == [EngineTestBench.phone])
    #expect(owner.session.assuranceLevel == 1)
    desk.clock.advance(by: .seconds(60))
    let unlocked = try await desk.secret("pin_unlock", ["secret": "1"], by: desk.client(session: owner)).get()
    #expect(unlocked.session?.aal == 2)
    #expect(unlocked.session?.passed.map(\.provider) == [EngineTestBench.phone, EngineTestBench.pin])
    #expect(
      unlocked.session?.passed.map(\.at) == [desk.clock.now() - .seconds(60), desk.clock.now()],
      "earlier steps keep their own times")
  }

  /// Attack: somebody claims a stranger's address and changes it away again, and each time the stranger gets a mail
  /// that no limit counts.
  @Test func unverifiedAddressReceivesNoNoticeOfItsChange() async throws {
    let desk = try await EngineTestBench.full()
    let view = try await desk.secret(
      "register_email", ["email": "955555", "new_secret": "s"], provider: "password", by: desk.client()
    ).get()
    let own = try #require(try await desk.session(try await desk.engine.skip(view.id, client: desk.client()).get()))
    let changed = try await desk.pass("change_email", EngineTestBench.mail, "966666", by: desk.client(session: own))
    let now = try #require(try await desk.session(changed))
    _ = try await desk.pass("change_email", EngineTestBench.mail, "977777", by: desk.client(session: now))
    await desk.engine.deliveriesEnd()
    #expect(desk.delivery.notices.map(\.to) == ["+966666"], "the old one, which was proved, is told")
  }

  /// Before the account is proved, all choices of a step are offered; afterwards only those that the account has.
  @Test func offeredChoicesMatchTheAccount() async throws {
    let desk = try await EngineTestBench.full()
    let offered = { (flow: String, own: SessionSnapshot?) in
      Set(
        try await desk.engine.create(flow, returnTo: nil, browser: nil, client: desk.client(session: own)).get().choices
      )
    }
    let asha = try #require(try await desk.session(try await desk.google(sub: "asha", by: desk.client()).get()))
    #expect(
      try await offered("step_up", asha) == [EngineTestBench.google], "what a flow pin_set makes has to be made first")
    let ravi = try #require(
      try await desk.session(try await desk.pass("register", EngineTestBench.phone, "911111", by: desk.client())))
    #expect(try await offered("step_up", ravi) == [EngineTestBench.phone])
    #expect(try await offered("pin_reset", ravi) == [EngineTestBench.phone])
    #expect(try await offered("login", nil) == [EngineTestBench.phone, EngineTestBench.mail, EngineTestBench.google])
    let strict = try await EngineTestBench.full(hashing: CountedPermits(9), hashes: true)
    let noor = try #require(
      try await strict.session(try await strict.pass("register", EngineTestBench.mail, "911111", by: strict.client())))
    let client = strict.client(session: noor)
    #expect(
      try await strict.engine.create("step_up", returnTo: nil, browser: nil, client: client).get().choices == [
        EngineTestBench.mail
      ])
  }

  /// Attack: a stolen session sets the first PIN.
  @Test func aPINIsSetOnlyAfterAFreshProof() async throws {
    let desk = try await EngineTestBench.full()
    let first = try await desk.pass("register", EngineTestBench.phone, "919999999999", by: desk.client())
    let stolen = try #require(try await desk.session(first))
    desk.clock.advance(by: .milliseconds(599_999))
    let id = try await desk.engine.create("pin_set", returnTo: nil, browser: nil, client: desk.client(session: stolen))
      .get().id
    desk.clock.advance(by: .milliseconds(1))
    let late = await desk.engine.begin(
      id, provider: nil, fields: ["new_secret": .text("1")], client: desk.client(session: stolen)
    ).refusal
    #expect(late?.code == .stepUpRequired, "a flow that was begun in time is no way round")
    #expect(
      await desk.secret("pin_set", ["new_secret": "1"], by: desk.client(session: stolen)).refusal?.code
        == .stepUpRequired)
    #expect(try await desk.store.account(stolen.account.id)?.credentials.isEmpty == true)
  }

  /// Attack: the link of the attacker's own flow is opened by the victim. The same for another session of the same
  /// user, and for a session that has ended.
  @Test func onlyItsOwnSessionDrivesAFlow() async throws {
    let desk = try await EngineTestBench.full()
    let mallory = try #require(
      try await desk.session(try await desk.pass("register", EngineTestBench.phone, "911111", by: desk.client())))
    let asha = try #require(
      try await desk.session(try await desk.pass("register", EngineTestBench.phone, "922222", by: desk.client())))
    let id = try await desk.engine.create("step_up", returnTo: nil, browser: nil, client: desk.client(session: mallory))
      .get().id
    for client in [desk.client(), desk.client(session: asha)] {
      #expect(await desk.engine.view(id, client: client).refusal?.code == .unauthenticated)
      #expect(
        await desk.engine.begin(id, provider: "phone_otp", fields: [:], client: client).refusal?.code
          == .unauthenticated)
    }
    let other = try #require(
      try await desk.session(try await desk.pass("login", EngineTestBench.phone, "911111", by: desk.client())))
    #expect(await desk.engine.view(id, client: desk.client(session: other)).refusal?.code == .unauthenticated)
    _ = try await desk.engine.begin(id, provider: "phone_otp", fields: [:], client: desk.client(session: mallory)).get()
    let code = desk.code
    // The session ends between the code and the answer: nothing is revived, even if the request had already been
    // admitted.
    _ = try await desk.store.apply([.endSession(mallory.session.token)], at: desk.clock.now())
    #expect(
      await desk.engine.submit(id, fields: ["code": .text(code)], client: desk.client(session: mallory)).refusal?.code
        == .unauthenticated)
    #expect(try await desk.store.sessions(of: mallory.account.id).map(\.id) == [other.session.id])
  }

  @Test func twoTabsBothWork() async throws {
    let desk = try await EngineTestBench.full()
    let first = try #require(
      try await desk.session(try await desk.pass("register", EngineTestBench.phone, "911111", by: desk.client())))
    let tabs = [
      try await desk.engine.create("step_up", returnTo: nil, browser: nil, client: desk.client(session: first)).get()
        .id,
      try await desk.engine.create("step_up", returnTo: nil, browser: nil, client: desk.client(session: first)).get()
        .id,
    ]
    var own = first
    for id in tabs {
      let client = desk.client(session: own)
      _ = try await desk.engine.begin(id, provider: "phone_otp", fields: [:], client: client).get()
      own = try #require(
        try await desk.session(
          try await desk.engine.submit(id, fields: ["code": .text(desk.code)], client: client).get()))
    }
    #expect(own.session.id == first.session.id)
    #expect(try await desk.store.sessions(of: own.account.id).count == 1)
  }

  @Test func aStepUpIsByWhatTheAccountHolds() async throws {
    let desk = try await EngineTestBench.full()
    let own = try #require(
      try await desk.session(try await desk.pass("register", EngineTestBench.phone, "911111", by: desk.client())))
    _ = try await desk.pass("register", EngineTestBench.phone, "922222", by: desk.client())
    for number in ["922222", "933333"] {
      let id = try await desk.engine.create("step_up", returnTo: nil, browser: nil, client: desk.client(session: own))
        .get().id
      let refusal = await desk.engine.begin(
        id, provider: "phone_otp", fields: ["phone": .text(number)], client: desk.client(session: own)
      ).refusal
      #expect(refusal?.code == .denied)
      #expect(
        await desk.engine.begin(id, provider: "email_code", fields: [:], client: desk.client(session: own)).refusal?
          .code == .denied)
    }
    // A federated identity that is unknown, or belongs to another account, is no step-up.
    let google = try await desk.google("step_up", sub: "mallory", email: "944444", by: desk.client(session: own))
    #expect(google.refusal?.code == .denied)
    #expect(try await desk.store.account(own.account.id)?.identifiers.count == 1)
  }

  @Test func anAddressIsVerifiedOrLeftForLater() async throws {
    let desk = try await EngineTestBench.full()
    let registered = try await desk.secret(
      "register_email", ["email": "955555", "new_secret": "s", "first_name": "Asha"], provider: "password",
      by: desk.client()
    ).get()
    #expect(registered.status == .pending)
    let done = try await desk.engine.skip(registered.id, client: desk.client()).get()
    #expect(done.account?.isEmailVerified == false)
    #expect(done.account?.firstName == "Asha")
    let own = try #require(try await desk.session(done))
    #expect(own.account.credentials == ["password"])
    let verified = try await desk.pass("verify_email", EngineTestBench.mail, nil, by: desk.client(session: own))
    #expect(verified.account?.isEmailVerified == true)
    let after = try #require(try await desk.session(verified))
    let id = try await desk.engine.create(
      "verify_email", returnTo: nil, browser: nil, client: desk.client(session: after)
    ).get().id
    #expect(
      await desk.engine.begin(id, provider: nil, fields: [:], client: desk.client(session: after)).refusal?.code
        == .alreadySet)
  }

  @Test func newAddressReplacesTheOldOneWhichReceivesANotice() async throws {
    let desk = try await EngineTestBench.full()
    let own = try #require(
      try await desk.session(try await desk.pass("register", EngineTestBench.mail, "911111", by: desk.client())))
    _ = try await desk.pass("register", EngineTestBench.mail, "922222", by: desk.client())
    // An address of another account: this is concealed until the address is proved.
    let id = try await desk.engine.create(
      "change_email", returnTo: nil, browser: nil, client: desk.client(session: own)
    ).get().id
    _ = try await desk.engine.begin(
      id, provider: nil, fields: ["phone": .text("922222")], client: desk.client(session: own)
    ).get()
    await desk.engine.deliveriesEnd()
    #expect(
      await desk.engine.submit(id, fields: ["code": .text(desk.code)], client: desk.client(session: own)).refusal?.code
        == .alreadyRegistered)
    #expect(try await desk.store.account(own.account.id)?.identifiers.map(\.identifier.value) == ["+911111"])
    let changed = try await desk.pass("change_email", EngineTestBench.mail, "933333", by: desk.client(session: own))
    #expect(changed.account?.email == "+933333")
    #expect(try await desk.store.account(own.account.id)?.identifiers.map(\.identifier.value) == ["+933333"])
    await desk.engine.deliveriesEnd()
    #expect(desk.delivery.notices.map(\.to) == ["+911111"])
    #expect(desk.delivery.notices.first?.subject == "Moongate: Email address changed")
  }

  @Test func anotherPersonsNumberIsNotTaken() async throws {
    let desk = try await EngineTestBench.full()
    let own = try #require(
      try await desk.session(try await desk.pass("register", EngineTestBench.phone, "911111", by: desk.client())))
    _ = try await desk.pass("register", EngineTestBench.phone, "922222", by: desk.client())
    let id = try await desk.engine.create(
      "change_phone", returnTo: nil, browser: nil, client: desk.client(session: own)
    ).get().id
    let refusal = await desk.engine.begin(
      id, provider: nil, fields: ["phone": .text("922222")], client: desk.client(session: own)
    ).refusal
    #expect(refusal?.code == .alreadyRegistered)
    let changed = try await desk.pass("change_phone", EngineTestBench.phone, "933333", by: desk.client(session: own))
    #expect(changed.account?.phone == "+933333")
  }
}
