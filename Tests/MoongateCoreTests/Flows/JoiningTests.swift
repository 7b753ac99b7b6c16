import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// Which account a federated identity belongs to, and pre-hijacking attacks on it.
@Suite struct JoiningTests {
  @Test(arguments: ["login", "register", "enter"]) func aVerifiedAddressLeadsToItsAccount(flow: String) async throws {
    let bench = try await EngineTestBench.full()
    let known = try #require(
      try await bench.pass("register", EngineTestBench.mail, "911111", by: bench.client()).account)
    let joined = try await bench.google(flow, sub: "asha", email: "911111", by: bench.client()).get()
    #expect(joined.account?.id == known.id)
    #expect(joined.account?.isNewUser == false)
    #expect(joined.account?.firstName == "Asha", "a name that was missing")
    // Once the delay has passed, the identity alone is sufficient, even if the address changes.
    bench.clock.advance(by: .seconds(86_400))
    #expect(
      try await bench.google(sub: "asha", email: "922222", verified: false, by: bench.client()).get().account?.id
        == known.id)
  }

  /// In `login`, because the flow names the provider in `registers`.
  @Test(arguments: ["login", "register", "enter"]) func unknownIdentityCreatesAnAccountInEveryFlow(flow: String)
    async throws
  {
    let bench = try await EngineTestBench.full()
    let new = try await bench.google(flow, sub: "asha", email: "911111", by: bench.client()).get()
    #expect(new.account?.isNewUser == true)
    #expect(new.account?.isEmailVerified == true)
    #expect(new.next == "/profile-setup")
    #expect(
      try await bench.google(flow, sub: "asha", email: "911111", by: bench.client()).get().account?.isNewUser == false)
  }

  /// Attack: an account at the other site with the victim's address, which nobody verified there.
  @Test func anUnverifiedAddressNeverJoins() async throws {
    let bench = try await EngineTestBench.full()
    let asha = try #require(
      try await bench.pass("register", EngineTestBench.mail, "911111", by: bench.client()).account)
    let mallory = try await bench.google(sub: "mallory", email: "911111", verified: false, by: bench.client()).get()
    #expect(mallory.account?.id != asha.id)
    #expect(mallory.account?.isEmailVerified == false)
    #expect(try await bench.store.account(asha.id)?.identifiers.count == 1)
    // Conversely, an account that only claims the address is not joined to an identity that has it verified.
    let claimant = try await bench.google(sub: "eve", email: "933333", verified: false, by: bench.client()).get()
    let owner = try await bench.google(sub: "owner", email: "933333", by: bench.client()).get()
    #expect(owner.account?.id != claimant.account?.id)
    #expect(
      try await bench.store.account(try #require(claimant.account).id)?.identifiers.map(\.identifier.kind) == [
        .federated
      ], "and loses it")
  }

  /// Attack: a former employee has a Google account with a company address that now belongs to somebody else.
  @Test(arguments: ["login", "register", "enter"])
  func anAddressThatGoogleDoesNotVouchForJoinsOnlyAfterTheAccountsOwnProof(flow: String) async throws {
    let bench = try await EngineTestBench.full()
    let asha = try #require(
      try await bench.pass("register", EngineTestBench.mail, "911111", by: bench.client()).account)
    let waiting = try await bench.google(flow, sub: "mallory", email: "911111", attested: true, by: bench.client())
      .get()
    #expect(
      waiting.status == .pending && waiting.choices == [EngineTestBench.mail] && waiting.session == nil
        && waiting.passed.isEmpty)
    #expect(await bench.engine.skip(waiting.id, client: bench.client()).refusal?.code == .stepNotOpen)
    #expect(try await bench.store.account(asha.id)?.identifiers.count == 1, "nothing is joined yet")
    // Attack: a code to an address of the attacker's own.
    let stray = await bench.engine.begin(
      waiting.id, provider: "email_code", fields: ["phone": .text("922222")], client: bench.client())
    #expect(stray.refusal?.code == .denied)
    _ = try await bench.engine.begin(waiting.id, provider: "email_code", fields: [:], client: bench.client()).get()
    await bench.engine.deliveriesEnd()
    let joined = try await bench.engine.submit(waiting.id, fields: ["code": .text(bench.code)], client: bench.client())
      .get()
    #expect(joined.account?.id == asha.id && joined.session?.passed.map(\.provider) == [EngineTestBench.mail])
    bench.clock.advance(by: .seconds(86_400))
    #expect(
      try await bench.google(sub: "mallory", by: bench.client()).get().account?.id == asha.id,
      "once the delay has passed, the identity is the account's")
  }

  @Test func unverifiedGoogleAddressCreatesAnAccountIfItIsUnclaimed() async throws {
    let bench = try await EngineTestBench.full()
    let new = try await bench.google("enter", sub: "asha", email: "911111", attested: true, by: bench.client()).get()
    // Attack: an account at the other site was created with the victim's address before the victim comes here.
    #expect(new.account?.isNewUser == true && new.account?.isEmailVerified == false)
    #expect(
      try await bench.google(sub: "asha", email: "911111", attested: true, by: bench.client()).get().account?.id
        == new.account?.id)
  }

  /// Attack: one code to a number and the thief's own Google identity open an account that a PIN protects.
  @Test func accountWithOtherFactorsIsNotJoined() async throws {
    let bench = try await EngineTestBench.full()
    let phone = try #require(
      try await bench.session(try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client())))
    _ = try await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: phone)).get()
    let thief = try #require(try await bench.session(try await bench.google(sub: "mallory", by: bench.client()).get()))
    let client = bench.client(session: thief)
    let id = try await bench.engine.create("join_phone", returnTo: nil, browser: nil, client: client).get().id
    _ = try await bench.engine.begin(id, provider: nil, fields: ["phone": .text("911111")], client: client).get()
    #expect(
      await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: client).refusal?.code
        == .alreadyRegistered)
    #expect(try await bench.store.account(phone.account.id)?.identifiers.count == 1)
  }

  /// Attack: one code to a number and an identity of the thief's own open an account without the second factor that
  /// every sign-in requires.
  @Test func anAccountIsJoinedOnlyByWhatItsSignInRequires() async throws {
    let bench = try await EngineTestBench.full()
    let phone = try #require(
      try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client()).account)
    let thief = try #require(try await bench.session(try await bench.google(sub: "mallory", by: bench.client()).get()))
    guard var generation = bench.generations.current as? TestGeneration else { return }
    for (choices, isJoined) in [
      ([EngineTestBench.mail], false), ([EngineTestBench.phone, EngineTestBench.mail], true),
    ] {
      generation.id += "+"
      generation.accounts.signIn = [
        SignInRequirement(
          choices: choices, when: nil, enroll: false, location: SourceLocation(file: "accounts.lua", line: 2))
      ]
      bench.generations.activate(generation, at: bench.clock.now())
      let client = bench.client(session: thief)
      let id = try await bench.engine.create("join_phone", returnTo: nil, browser: nil, client: client).get().id
      _ = try await bench.engine.begin(id, provider: nil, fields: ["phone": .text("911111")], client: client).get()
      let done = await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: client)
      #expect(isJoined ? try done.get().account?.id == phone.id : done.refusal?.code == .alreadyRegistered)
      bench.clock.advance(by: .seconds(100))
    }
  }

  /// Attack: an account must replace a leaked password at its next sign-in, and is opened by joining instead.
  @Test func anAccountIsNotJoinedBeforeItReplacesItsPassword() async throws {
    let bench = try await EngineTestBench.full()
    let phone = try #require(
      try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client()).account)
    _ = try await bench.store.apply(
      [.putProviderRecord(account: phone.id, "password", sealed: [1])], at: bench.clock.now())
    let thief = try #require(try await bench.session(try await bench.google(sub: "mallory", by: bench.client()).get()))
    for due in [DueChange.breached, nil] {
      _ = try await bench.store.apply([.setDueChange(account: phone.id, "password", due)], at: bench.clock.now())
      let client = bench.client(session: thief)
      let id = try await bench.engine.create("join_phone", returnTo: nil, browser: nil, client: client).get().id
      _ = try await bench.engine.begin(id, provider: nil, fields: ["phone": .text("911111")], client: client).get()
      let done = await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: client)
      #expect(due == nil ? try done.get().account?.id == phone.id : done.refusal?.code == .alreadyRegistered)
      bench.clock.advance(by: .seconds(100))
    }
  }

  /// Attack: the thief's own address is added with the identity, and codes to it open the account from then on.
  @Test func joiningDoesNotAddTheAddressOfTheIdentity() async throws {
    let bench = try await EngineTestBench.full()
    let first = try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client())
    let owner = try #require(try await bench.session(first))
    _ = try await bench.pass("change_email", EngineTestBench.mail, "922222", by: bench.client(session: owner))
    let thief = try #require(
      try await bench.session(try await bench.google(sub: "mallory", email: "933333", by: bench.client()).get()))
    _ = try await bench.pass("join_phone", EngineTestBench.phone, "911111", by: bench.client(session: thief))
    let joined = try #require(try await bench.store.account(owner.account.id))
    #expect(joined.identifiers.filter { $0.identifier.kind == .email }.map(\.identifier.value) == ["+922222"])
    #expect(joined.identifiers.contains { $0.identifier.kind == .federated })
    let stray = Identifier(kind: .email, value: "+933333", display: "+933333")
    #expect(try await bench.store.account(holding: stray) == nil)
  }

  /// Attack: an attacker who reads an account's mail for a minute joins an identity of their own and gets in by it for
  /// ever, without the PIN.
  @Test(arguments: [true, false]) func anAccountWithFactorsKeepsNoIdentityThatNoneOfThemAuthorised(isAttested: Bool)
    async throws
  {
    let bench = try await EngineTestBench.full()
    let owner = try #require(
      try await bench.session(try await bench.pass("register", EngineTestBench.mail, "911111", by: bench.client())))
    _ = try await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: owner)).get()
    var done = try await bench.google(sub: "mallory", email: "911111", attested: isAttested, by: bench.client()).get()
    if isAttested {
      _ = try await bench.engine.begin(done.id, provider: "email_code", fields: [:], client: bench.client()).get()
      await bench.engine.deliveriesEnd()
      done = try await bench.engine.submit(done.id, fields: ["code": .text(bench.code)], client: bench.client()).get()
    }
    #expect(done.account?.id == owner.account.id, "the proof of the address signs in")
    #expect(try await bench.store.account(owner.account.id)?.identifiers.map(\.identifier.kind) == [.email])
    #expect(try await bench.google(sub: "mallory", by: bench.client()).get().account?.id != owner.account.id)
  }

  /// Attack: a number of the attacker's own and the victim's password, in a flow that asks for both; the number would
  /// be added to the victim's account.
  @Test func identifierProvedBeforeTheAccountIsNotAddedToIt() async throws {
    let bench = try await EngineTestBench.full {
      $0.flows["both"] = .test("both", account: .any, steps: [.test(EngineTestBench.phone), .test("password")])
    }
    let view = try await bench.secret(
      "register_email", ["email": "911111", "new_secret": "horse"], provider: "password", by: bench.client()
    ).get()
    let victim = try #require(try await bench.engine.skip(view.id, client: bench.client()).get().account)
    let id = try await bench.pass("both", EngineTestBench.phone, "933333", by: bench.client()).id
    let fields: [String: InputValue] = ["email": .text("911111"), "secret": .text("horse")]
    _ = try await bench.engine.begin(id, provider: "password", fields: fields, client: bench.client()).get()
    #expect(try await bench.store.account(victim.id)?.identifiers.map(\.identifier.kind) == [.email])
  }

  /// Attack: an identity that the thief prepared long ago is joined to the account and would be old enough there to
  /// reset its secrets.
  @Test func joinedIdentityIsNewToTheAccount() async throws {
    let bench = try await EngineTestBench.full()
    let phone = try #require(
      try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client()).account)
    let google = try await bench.google(sub: "asha", email: "922222", by: bench.client()).get()
    let own = try #require(try await bench.session(google))
    bench.clock.advance(by: .seconds(500))
    _ = try await bench.pass("join_phone", EngineTestBench.phone, "911111", by: bench.client(session: own))
    let joined = try #require(try await bench.store.account(phone.id))
    #expect(
      joined.identifiers.filter { $0.identifier.kind != .phone }.allSatisfy { $0.verifiedAt == bench.clock.now() })
  }

  /// Attack: somebody registers a stranger's address with a password of their own, and waits.
  @Test func proofOfAnAddressRemovesOtherClaims() async throws {
    let bench = try await EngineTestBench.full()
    let view = try await bench.secret(
      "register_email", ["email": "911111", "new_secret": "mallorys"], provider: "password", by: bench.client()
    ).get()
    let mallory = try await bench.engine.skip(view.id, client: bench.client()).get()
    let asha = try await bench.pass("enter", EngineTestBench.mail, "911111", by: bench.client())
    #expect(asha.account?.id != mallory.account?.id)
    #expect(try await bench.session(mallory) == nil)
    let account = try #require(mallory.account)
    let left = try #require(try await bench.store.account(account.id))
    #expect(left.identifiers.isEmpty && left.credentials.isEmpty)
    let refusal = await bench.secret(
      "login_password", ["email": "911111", "secret": "mallorys"], provider: "password", by: bench.client()
    ).refusal
    #expect(refusal?.code == .invalidPIN)
  }

  /// Attack: the stranger "recovers the password" of an account that the attacker can open by other means as well.
  @Test func anAddressThatIsOnlyClaimedDoesNotRecoverAnAccountThatIsSomeoneElses() async throws {
    let bench = try await EngineTestBench.full()
    let view = try await bench.secret(
      "register_email", ["email": "911111", "new_secret": "mallorys"], provider: "password", by: bench.client()
    ).get()
    let mallory = try #require(
      try await bench.session(try await bench.engine.skip(view.id, client: bench.client()).get()))
    _ = try await bench.pass("change_phone", EngineTestBench.phone, "922222", by: bench.client(session: mallory))
    let sent = bench.delivery.messages.count
    let id = try await bench.engine.create("password_reset", returnTo: nil, browser: nil, client: bench.client()).get()
      .id
    _ = try await bench.engine.begin(id, provider: nil, fields: ["phone": .text("911111")], client: bench.client())
      .get()
    await bench.engine.deliveriesEnd()
    #expect(bench.delivery.messages.count == sent, "concealed: like an unregistered identifier")
  }

  @Test func aClaimedAddressAloneIsRecovered() async throws {
    let bench = try await EngineTestBench.full()
    let view = try await bench.secret(
      "register_email", ["email": "911111", "new_secret": "old"], provider: "password", by: bench.client()
    ).get()
    let asha = try await bench.engine.skip(view.id, client: bench.client()).get()
    let id = try await bench.engine.create("password_reset", returnTo: nil, browser: nil, client: bench.client()).get()
      .id
    _ = try await bench.engine.begin(id, provider: nil, fields: ["phone": .text("911111")], client: bench.client())
      .get()
    await bench.engine.deliveriesEnd()
    let done = try await bench.engine.submit(
      id, fields: ["code": .text(bench.code), "new_secret": .text("new")], client: bench.client()
    ).get()
    #expect(done.account?.id == asha.account?.id)
    #expect(done.account?.isEmailVerified == true)
    #expect(try await bench.session(asha) == nil)
  }

  /// Attack: an attacker who reads the mail of the old address, such as a former employer, gets in again after its
  /// owner has signed in by Google.
  @Test func signInByGoogleDoesNotRestoreAReplacedAddress() async throws {
    let bench = try await EngineTestBench.full()
    let own = try #require(
      try await bench.session(try await bench.google(sub: "asha", email: "911111", by: bench.client()).get()))
    _ = try await bench.pass("change_email", EngineTestBench.mail, "922222", by: bench.client(session: own))
    let again = try await bench.google(sub: "asha", email: "911111", by: bench.client()).get()
    #expect(again.account?.id == own.account.id && again.account?.email == "+922222")
    let held = try #require(try await bench.store.account(own.account.id)).identifiers.filter {
      $0.identifier.kind == .email
    }
    #expect(held.map(\.identifier.value) == ["+922222"])
    // An account that has no address, or only claims one, is given it.
    for claims in [false, true] {
      let sub = claims ? "eve" : "noor"
      let before = try await bench.google(sub: sub, email: claims ? "933333" : nil, verified: false, by: bench.client())
        .get()
      let after = try await bench.google(sub: sub, email: claims ? "944444" : "955555", by: bench.client()).get()
      #expect(after.account?.id == before.account?.id)
      #expect(after.account?.email == (claims ? "+944444" : "+955555") && after.account?.isEmailVerified == true)
    }
  }

  @Test func aNumberThatIsProvedAfterGoogleJoinsTheAccountThatHasIt() async throws {
    let bench = try await EngineTestBench.full()
    let phone = try #require(
      try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client()).account)
    let google = try await bench.google(sub: "asha", email: "922222", by: bench.client()).get()
    let own = try #require(try await bench.session(google))
    let joined = try await bench.pass("join_phone", EngineTestBench.phone, "911111", by: bench.client(session: own))
    #expect(joined.account?.id == phone.id)
    #expect(joined.account?.email == "+922222")
    #expect(try await bench.session(google) == nil)
    let after = try #require(try await bench.session(joined))
    #expect(after.account.id == phone.id)
    #expect(after.session.id == own.session.id && after.session.expiresAt == own.session.expiresAt)
    #expect(
      after.session.passed.map(\.provider) == [EngineTestBench.phone],
      "an identity that was not the account's is no factor of it")
    #expect(try await bench.store.account(own.account.id) == nil, "the empty account is gone")
    bench.clock.advance(by: .seconds(86_400))
    #expect(try await bench.google(sub: "asha", by: bench.client()).get().account?.id == phone.id)
    #expect(try await bench.pass("login", EngineTestBench.mail, "922222", by: bench.client()).account?.id == phone.id)
  }

  @Test func unregisteredNumberIsAddedToTheAccount() async throws {
    let bench = try await EngineTestBench.full()
    let own = try #require(
      try await bench.session(try await bench.google(sub: "asha", email: "922222", by: bench.client()).get()))
    let added = try await bench.pass("join_phone", EngineTestBench.phone, "911111", by: bench.client(session: own))
    #expect(added.account?.id == own.account.id && added.account?.isPhoneVerified == true)
    await bench.engine.deliveriesEnd()
    #expect(
      bench.delivery.notices.contains {
        $0.text.contains("A phone number was added to your account") && $0.to == "+922222"
      })
  }

  /// Attack: an account that holds something of its own is merged into another by one code.
  @Test func onlyAnEmptyAccountIsJoined() async throws {
    let bench = try await EngineTestBench.full()
    _ = try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client())
    let google = try #require(try await bench.session(try await bench.google(sub: "asha", by: bench.client()).get()))
    let set = try #require(
      try await bench.session(
        try await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: google)).get()))
    let own = try #require(
      try await bench.session(
        try await bench.secret("pin_unlock", ["secret": "1"], by: bench.client(session: set)).get()))
    let client = bench.client(session: own)
    let id = try await bench.engine.create("join_phone", returnTo: nil, browser: nil, client: client).get().id
    _ = try await bench.engine.begin(id, provider: nil, fields: ["phone": .text("911111")], client: client).get()
    #expect(
      await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: client).refusal?.code
        == .alreadyRegistered)
    #expect(try await bench.store.account(own.account.id) != nil)
  }

  @Test func stateIsValidOnlyInItsBrowser() async throws {
    let bench = try await EngineTestBench.full()
    let browser = TokenHash(of: "browser".utf8)
    func begun(_ browser: TokenHash?) async throws -> (FlowID, String) {
      let client = bench.client(browser: browser)
      let id = try await bench.engine.create("login", returnTo: nil, browser: browser, client: client).get().id
      let site = try #require(
        try await bench.engine.begin(id, provider: "google_oauth", fields: [:], client: client).get().step?.redirectTo)
      #expect(site.hasSuffix("&to=http://localhost:8080/auth/callback/google_oauth"))
      return (id, String(site.dropFirst("https://google.example/?state=".count).prefix { $0 != "&" }))
    }
    let (id, state) = try await begun(browser)
    let found = { (state: String, provider: ProviderName, browser: TokenHash?) in
      await bench.engine.flow(ofCallback: state, provider: provider, client: bench.client(browser: browser))
    }
    #expect(try await found(state, EngineTestBench.google, browser).get().id == id)
    #expect(await found(state, EngineTestBench.google, nil).refusal?.code == .flowNotFound)
    #expect(await found(state, EngineTestBench.google, TokenHash(of: "other".utf8)).refusal?.code == .flowNotFound)
    #expect(await found(state, EngineTestBench.pin, browser).refusal?.code == .flowNotFound)
    for forged in ["", "x", String(state.dropLast()), String(repeating: "A", count: 100_000), id.secret.reveal()] {
      #expect(await found(forged, EngineTestBench.google, browser).refusal?.code == .flowNotFound)
    }
    // Attack: login CSRF. The attacker's flow, created without a browser, must not sign a victim's browser in as the
    // attacker.
    #expect(await found(try await begun(nil).1, EngineTestBench.google, nil).refusal?.code == .flowNotFound)
  }

  @Test func cancelledAttemptIsRefunded() async throws {
    let bench = try await EngineTestBench.full()
    let id = try await bench.engine.create("login", returnTo: nil, browser: nil, client: bench.client()).get().id
    _ = try await bench.engine.begin(id, provider: "google_oauth", fields: [:], client: bench.client()).get()
    #expect(await bench.engine.submit(id, fields: [:], client: bench.client()).refusal?.code == .oauthCancelled)
    #expect(
      try await bench.engine.submit(id, fields: ["sub": .text("asha")], client: bench.client()).get().status
        == .complete)
  }
}
