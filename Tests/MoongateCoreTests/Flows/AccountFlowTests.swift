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
  ]) func accountFlowsRequireASession(flow: String) async throws {
    let bench = try await EngineTestBench.full()
    let refusal = await bench.engine.create(flow, returnTo: nil, browser: nil, client: bench.client()).refusal
    #expect(refusal?.code == .unauthenticated)
  }

  @Test func flowThatCannotIdentifyAUserRequiresASession() async throws {
    let bench = try await EngineTestBench.full()
    #expect(
      await bench.engine.create("backwards", returnTo: nil, browser: nil, client: bench.client()).refusal?.code
        == .unauthenticated)
  }

  @Test func stepUpKeepsTheSessionAndReplacesItsToken() async throws {
    let bench = try await EngineTestBench.full()
    let first = try await bench.pass("register", EngineTestBench.phone, "919999999999", by: bench.client())
    let before = try #require(try await bench.session(first))
    bench.clock.advance(by: .seconds(1000))
    #expect(
      await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: before)).refusal?.code
        == .stepUpRequired)
    let again = try await bench.pass("step_up", EngineTestBench.phone, nil, by: bench.client(session: before))
    #expect(try await bench.session(first) == nil, "the old token is dead at once")
    let after = try #require(try await bench.session(again))
    #expect(after.session.id == before.session.id)
    #expect(after.session.createdAt == before.session.createdAt)
    #expect(after.session.expiresAt == before.session.expiresAt, "a step-up is no way to live for ever")
    let held = try #require(after.account.identifier(.phone)).identifier
    #expect(
      after.session.passed == [
        PassedStep(provider: EngineTestBench.phone, at: bench.clock.now(), identifier: bench.keys.proofHash(of: held))
      ])
    // Setting a PIN does not count as passing it.
    let set = try await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: after)).get()
    let owner = try #require(try await bench.session(set))
    #expect(set.account?.hasPIN == true)
    #expect(owner.session.passed.map(\.provider) == [EngineTestBench.phone])
    #expect(owner.session.assuranceLevel == 1)
    bench.clock.advance(by: .seconds(60))
    let unlocked = try await bench.secret("pin_unlock", ["secret": "1"], by: bench.client(session: owner)).get()
    #expect(unlocked.session?.aal == 2)
    #expect(unlocked.session?.passed.map(\.provider) == [EngineTestBench.phone, EngineTestBench.pin])
    #expect(
      unlocked.session?.passed.map(\.at) == [bench.clock.now() - .seconds(60), bench.clock.now()],
      "earlier steps keep their own times")
  }

  /// Attack: somebody claims a stranger's address and changes it away again, and each time the stranger gets a mail
  /// that no limit counts.
  @Test func unverifiedAddressReceivesNoNoticeOfItsChange() async throws {
    let bench = try await EngineTestBench.full()
    let view = try await bench.secret(
      "register_email", ["email": "955555", "new_secret": "s"], provider: "password", by: bench.client()
    ).get()
    let own = try #require(try await bench.session(try await bench.engine.skip(view.id, client: bench.client()).get()))
    let changed = try await bench.pass("change_email", EngineTestBench.mail, "966666", by: bench.client(session: own))
    let now = try #require(try await bench.session(changed))
    _ = try await bench.pass("change_email", EngineTestBench.mail, "977777", by: bench.client(session: now))
    await bench.engine.deliveriesEnd()
    #expect(bench.delivery.notices.map(\.to) == ["+966666"], "the old one, which was proved, is told")
  }

  /// Before the account is proved, all choices of a step are offered; afterwards only those that the account has.
  @Test func offeredChoicesMatchTheAccount() async throws {
    let bench = try await EngineTestBench.full()
    let offered = { (flow: String, own: SessionSnapshot?) in
      Set(
        try await bench.engine.create(flow, returnTo: nil, browser: nil, client: bench.client(session: own)).get()
          .choices
      )
    }
    let asha = try #require(try await bench.session(try await bench.google(sub: "asha", by: bench.client()).get()))
    #expect(
      try await offered("step_up", asha) == [EngineTestBench.google], "what a flow pin_set makes has to be made first")
    let ravi = try #require(
      try await bench.session(try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client())))
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
    let bench = try await EngineTestBench.full()
    let first = try await bench.pass("register", EngineTestBench.phone, "919999999999", by: bench.client())
    let stolen = try #require(try await bench.session(first))
    bench.clock.advance(by: .milliseconds(599_999))
    let id = try await bench.engine.create(
      "pin_set", returnTo: nil, browser: nil, client: bench.client(session: stolen)
    )
    .get().id
    bench.clock.advance(by: .milliseconds(1))
    let late = await bench.engine.begin(
      id, provider: nil, fields: ["new_secret": .text("1")], client: bench.client(session: stolen)
    ).refusal
    #expect(late?.code == .stepUpRequired, "a flow that was begun in time is no way round")
    #expect(
      await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: stolen)).refusal?.code
        == .stepUpRequired)
    #expect(try await bench.store.account(stolen.account.id)?.credentials.isEmpty == true)
  }

  /// Attack: the link of the attacker's own flow is opened by the victim. The same for another session of the same
  /// user, and for a session that has ended.
  @Test func onlyItsOwnSessionDrivesAFlow() async throws {
    let bench = try await EngineTestBench.full()
    let mallory = try #require(
      try await bench.session(try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client())))
    let asha = try #require(
      try await bench.session(try await bench.pass("register", EngineTestBench.phone, "922222", by: bench.client())))
    let id = try await bench.engine.create(
      "step_up", returnTo: nil, browser: nil, client: bench.client(session: mallory)
    )
    .get().id
    for client in [bench.client(), bench.client(session: asha)] {
      #expect(await bench.engine.view(id, client: client).refusal?.code == .unauthenticated)
      #expect(
        await bench.engine.begin(id, provider: "phone_otp", fields: [:], client: client).refusal?.code
          == .unauthenticated)
    }
    let other = try #require(
      try await bench.session(try await bench.pass("login", EngineTestBench.phone, "911111", by: bench.client())))
    #expect(await bench.engine.view(id, client: bench.client(session: other)).refusal?.code == .unauthenticated)
    _ = try await bench.engine.begin(id, provider: "phone_otp", fields: [:], client: bench.client(session: mallory))
      .get()
    let code = bench.code
    // The session ends between the code and the answer: nothing is revived, even if the request had already been
    // admitted.
    _ = try await bench.store.apply([.endSession(mallory.session.token)], at: bench.clock.now())
    #expect(
      await bench.engine.submit(id, fields: ["code": .text(code)], client: bench.client(session: mallory)).refusal?.code
        == .unauthenticated)
    #expect(try await bench.store.sessions(of: mallory.account.id).map(\.id) == [other.session.id])
  }

  @Test func twoTabsBothWork() async throws {
    let bench = try await EngineTestBench.full()
    let first = try #require(
      try await bench.session(try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client())))
    let tabs = [
      try await bench.engine.create("step_up", returnTo: nil, browser: nil, client: bench.client(session: first)).get()
        .id,
      try await bench.engine.create("step_up", returnTo: nil, browser: nil, client: bench.client(session: first)).get()
        .id,
    ]
    var own = first
    for id in tabs {
      let client = bench.client(session: own)
      _ = try await bench.engine.begin(id, provider: "phone_otp", fields: [:], client: client).get()
      own = try #require(
        try await bench.session(
          try await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: client).get()))
    }
    #expect(own.session.id == first.session.id)
    #expect(try await bench.store.sessions(of: own.account.id).count == 1)
  }

  @Test func stepUpAcceptsOnlyIdentifiersOfTheAccount() async throws {
    let bench = try await EngineTestBench.full()
    let own = try #require(
      try await bench.session(try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client())))
    _ = try await bench.pass("register", EngineTestBench.phone, "922222", by: bench.client())
    for number in ["922222", "933333"] {
      let id = try await bench.engine.create("step_up", returnTo: nil, browser: nil, client: bench.client(session: own))
        .get().id
      let refusal = await bench.engine.begin(
        id, provider: "phone_otp", fields: ["phone": .text(number)], client: bench.client(session: own)
      ).refusal
      #expect(refusal?.code == .denied)
      #expect(
        await bench.engine.begin(id, provider: "email_code", fields: [:], client: bench.client(session: own)).refusal?
          .code == .denied)
    }
    // A federated identity that is unknown, or belongs to another account, is no step-up.
    let google = try await bench.google("step_up", sub: "mallory", email: "944444", by: bench.client(session: own))
    #expect(google.refusal?.code == .denied)
    #expect(try await bench.store.account(own.account.id)?.identifiers.count == 1)
  }

  @Test func anAddressIsVerifiedOrLeftForLater() async throws {
    let bench = try await EngineTestBench.full()
    let registered = try await bench.secret(
      "register_email", ["email": "955555", "new_secret": "s", "first_name": "Asha"], provider: "password",
      by: bench.client()
    ).get()
    #expect(registered.status == .pending)
    let done = try await bench.engine.skip(registered.id, client: bench.client()).get()
    #expect(done.account?.isEmailVerified == false)
    #expect(done.account?.firstName == "Asha")
    let own = try #require(try await bench.session(done))
    #expect(own.account.credentials == ["password"])
    let verified = try await bench.pass("verify_email", EngineTestBench.mail, nil, by: bench.client(session: own))
    #expect(verified.account?.isEmailVerified == true)
    let after = try #require(try await bench.session(verified))
    let again = await bench.engine.create(
      "verify_email", returnTo: nil, browser: nil, client: bench.client(session: after))
    #expect(again.refusal?.code == .alreadySet)
  }

  @Test func newAddressReplacesTheOldOneWhichReceivesANotice() async throws {
    let bench = try await EngineTestBench.full()
    let own = try #require(
      try await bench.session(try await bench.pass("register", EngineTestBench.mail, "911111", by: bench.client())))
    _ = try await bench.pass("register", EngineTestBench.mail, "922222", by: bench.client())
    // An address of another account: this is concealed until the address is proved.
    let id = try await bench.engine.create(
      "change_email", returnTo: nil, browser: nil, client: bench.client(session: own)
    ).get().id
    _ = try await bench.engine.begin(
      id, provider: nil, fields: ["phone": .text("922222")], client: bench.client(session: own)
    ).get()
    await bench.engine.deliveriesEnd()
    #expect(
      await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: bench.client(session: own)).refusal?
        .code
        == .alreadyRegistered)
    #expect(try await bench.store.account(own.account.id)?.identifiers.map(\.identifier.value) == ["+911111"])
    let changed = try await bench.pass("change_email", EngineTestBench.mail, "933333", by: bench.client(session: own))
    #expect(changed.account?.email == "+933333")
    #expect(try await bench.store.account(own.account.id)?.identifiers.map(\.identifier.value) == ["+933333"])
    await bench.engine.deliveriesEnd()
    #expect(bench.delivery.notices.map(\.to) == ["+911111"])
    #expect(bench.delivery.notices.first?.subject == "Moongate: Email address changed")
  }

  @Test func numberOfAnotherAccountCannotBeAdded() async throws {
    let bench = try await EngineTestBench.full()
    let own = try #require(
      try await bench.session(try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client())))
    _ = try await bench.pass("register", EngineTestBench.phone, "922222", by: bench.client())
    let id = try await bench.engine.create(
      "change_phone", returnTo: nil, browser: nil, client: bench.client(session: own)
    ).get().id
    let refusal = await bench.engine.begin(
      id, provider: nil, fields: ["phone": .text("922222")], client: bench.client(session: own)
    ).refusal
    #expect(refusal?.code == .alreadyRegistered)
    let changed = try await bench.pass("change_phone", EngineTestBench.phone, "933333", by: bench.client(session: own))
    #expect(changed.account?.phone == "+933333")
  }
}
