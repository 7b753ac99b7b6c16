import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// Takeovers that combine features, each of which is right alone. Beside each attack stands the legitimate use.
@Suite struct TakeoverTests {
  private static let phone = EngineTestBench.phone
  private static let mail = EngineTestBench.mail
  private static let delay: Duration = .seconds(86_400)

  /// An account with a number only, and its session. A day has passed since it was created.
  private func owner(_ bench: EngineTestBench, on device: SecretText? = nil) async throws -> (
    session: SessionSnapshot, device: SecretText
  ) {
    _ = try await bench.pass("register", Self.phone, "911111", by: bench.client(device: device))
    bench.clock.advance(by: Self.delay)
    let view = try await bench.pass("login", Self.phone, "911111", by: bench.client(device: device))
    return (try await bench.signedIn(view), try #require(view.deviceToken))
  }

  /// Whether the account trusts the device.
  private func isTrusted(
    _ device: SecretText, _ account: String, by provider: ProviderName? = nil, _ bench: EngineTestBench
  ) async throws -> Bool {
    let stored = try #require(try await bench.store.account(account))
    return bench.keys.knows(bench.keys.device(device, at: bench.clock.now()), stored, by: provider)
  }

  private func refusal(_ body: () async throws -> FlowView) async -> Refusal? {
    do {
      _ = try await body()
      return nil
    } catch {
      return error as? Refusal
    }
  }

  // MARK: - Flows that prove nothing

  /// Attack: a copy of a session of any age completes a flow by skipping its only step, and gets a new token, which the
  /// owner's sign-out does not end, and a device that is trusted for a year.
  @Test func flowThatProvesNothingLeavesTheSessionAsItIs() async throws {
    let bench = try await EngineTestBench.full()
    let registered = try await bench.secret(
      "register_email", ["email": "911111", "new_secret": "horse"], provider: "password", by: bench.client()
    ).get()
    let done = try await bench.engine.skip(registered.id, client: bench.client()).get()
    let own = try await bench.signedIn(done)
    bench.clock.advance(by: .seconds(1800))
    let client = bench.client(session: own)
    let id = try await bench.engine.create("verify_email", returnTo: nil, browser: nil, client: client).get().id
    let skipped = try await bench.engine.skip(id, client: client).get()
    #expect(skipped.status == .complete && skipped.session?.token == nil && skipped.deviceToken == nil)
    #expect(try await bench.store.session(own.session.token)?.session == own.session, "nothing has changed")
    // The legitimate use: the address is verified later.
    let verified = try await bench.pass("verify_email", Self.mail, nil, by: client)
    #expect(verified.account?.isEmailVerified == true && verified.session?.token != nil)
    #expect(verified.deviceToken == nil, "only a sign-in trusts a device")
  }

  /// Attack: a stolen session begins such a flow although there is nothing to verify.
  @Test func verificationNeedsAnUnverifiedAddress() async throws {
    let bench = try await EngineTestBench.full()
    let (own, _) = try await owner(bench)
    let create = { (session: SessionSnapshot) in
      await bench.engine.create("verify_email", returnTo: nil, browser: nil, client: bench.client(session: session))
        .refusal?.code
    }
    #expect(await create(own) == .denied)
    let changed = try await bench.pass("change_email", Self.mail, "922222", by: bench.client(session: own))
    #expect(await create(try await bench.signedIn(changed)) == .alreadySet)
  }

  /// Attack: a thief completes a flow within a stolen session, on a device of their own.
  @Test func flowsOfASessionTrustNoDevice() async throws {
    let bench = try await EngineTestBench.full()
    let (own, device) = try await owner(bench)
    #expect(try await isTrusted(device, own.account.id, bench))
    let proved = try await bench.pass("step_up", Self.phone, nil, by: bench.client(session: own))
    #expect(proved.session?.token != nil && proved.deviceToken == nil)
  }

  /// Attack: the thief has the session's token replaced; the owner signs out with the old one, and the thief's session
  /// lives on.
  @Test func signingOutWithAReplacedTokenEndsTheSession() async throws {
    let bench = try await EngineTestBench.full()
    let (own, _) = try await owner(bench)
    let ending = SessionEnding(store: bench.store, clock: bench.clock, random: SystemRandom())
    let address = ClientAddress(bytes: [192, 0, 2, 1]) ?? .unspecified
    let first = try await bench.signedIn(
      try await bench.pass("step_up", Self.phone, nil, by: bench.client(session: own)))
    let second = try await bench.signedIn(
      try await bench.pass("step_up", Self.phone, nil, by: bench.client(session: first)))
    #expect(try await bench.store.session(own.session.token) == nil, "the old token authorises nothing")
    #expect(try await ending.end(replaced: TokenHash(of: "stranger".utf8), by: address) == false)
    #expect(try await ending.end(replaced: own.session.token, by: address))
    #expect(try await bench.store.session(second.session.token) == nil)
    // Not for ever: the token is remembered for a week.
    let view = try await bench.pass("login", Self.phone, "911111", by: bench.client())
    let next = try await bench.signedIn(view)
    _ = try await bench.pass("step_up", Self.phone, nil, by: bench.client(session: next))
    bench.clock.advance(by: .seconds(7 * 86_400))
    #expect(try await ending.end(replaced: next.session.token, by: address) == false)
  }

  // MARK: - Trusted devices

  /// Attack: the attacker registers an account with the victim's address, and their device stays trusted after the
  /// victim has recovered the account. Trusted again, it must not get back what it had passed before.
  @Test func recoveryEndsTheTrustInEveryDevice() async throws {
    let bench = try await EngineTestBench.full()
    let registered = try await bench.secret(
      "register_email", ["email": "911111", "new_secret": "mallorys"], provider: "password", by: bench.client()
    ).get()
    let done = try await bench.engine.skip(registered.id, client: bench.client()).get()
    let account = try #require(done.account?.id)
    let device = try #require(done.deviceToken)
    #expect(try await isTrusted(device, account, by: "password", bench))
    let id = try await bench.begun("password_reset", phone: "911111")
    await bench.engine.deliveriesEnd()
    let recovered = try await bench.engine.submit(
      id, fields: ["code": .text(bench.code), "new_secret": .text("own")], client: bench.client()
    ).get()
    #expect(try await isTrusted(device, account, bench) == false)
    #expect(try await isTrusted(try #require(recovered.deviceToken), account, bench), "the one that recovered it is")
    let again = try await bench.pass("login", Self.mail, "911111", by: bench.client(device: device))
    let renewed = try #require(again.deviceToken)
    #expect(try await isTrusted(renewed, account, by: Self.mail, bench))
    #expect(try await isTrusted(renewed, account, by: "password", bench) == false)
  }

  /// Attack: a PIN that others know is reset by its owner, and the device on which they signed in stays trusted.
  @Test func resetOfAFactorEndsTheTrustInEveryDevice() async throws {
    let bench = try await EngineTestBench.full()
    let (own, device) = try await owner(bench)
    let set = try await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: own)).get()
    #expect(try await isTrusted(device, own.account.id, bench), "setting a factor changes nothing")
    _ = try await reset(bench, try await bench.signedIn(set))
    #expect(try await isTrusted(device, own.account.id, bench) == false)
  }

  @Test func signingOutEverywhereElseKeepsTheTrustInThisDevice() async throws {
    let bench = try await EngineTestBench.full()
    let (own, device) = try await owner(bench)
    let other = try #require(try await bench.pass("login", Self.phone, "911111", by: bench.client()).deviceToken)
    let client = bench.client(session: own, device: device)
    try await bench.engine.signOutEverywhere(keepsOwn: true, client: client).get()
    #expect(try await isTrusted(device, own.account.id, bench))
    #expect(try await isTrusted(other, own.account.id, bench) == false)
    try await bench.engine.signOutEverywhere(keepsOwn: false, client: client).get()
    #expect(try await isTrusted(device, own.account.id, bench) == false)
  }

  @Test func ownerSeesTrustedDevicesAndRemovesOne() async throws {
    let bench = try await EngineTestBench.full()
    let (own, device) = try await owner(bench)
    let second = try await bench.pass("login", Self.phone, "911111", by: bench.client())
    let client = bench.client(session: own, device: device)
    let found = try await bench.engine.trustedDevices(client: client).get()
    #expect(found.devices.count == 3 && found.devices.allSatisfy { $0.userAgent == "test" })
    let current = try #require(found.current)
    // Attack: one account removes the device of another.
    let stranger = try await bench.pass("register", Self.phone, "922222", by: bench.client())
    let foreign = bench.client(session: try await bench.signedIn(stranger))
    #expect(await bench.engine.removeDevice(current, client: foreign).refusal?.code == .notFound)
    try await bench.engine.removeDevice(current, client: client).get()
    #expect(try await isTrusted(device, own.account.id, bench) == false)
    #expect(try await isTrusted(try #require(second.deviceToken), own.account.id, bench))
    #expect(try await bench.engine.trustedDevices(client: client).get().current == nil)
    #expect(try await bench.session(second) != nil, "sessions continue")
  }

  @Test func deviceThatSignsInAgainIsListedOnce() async throws {
    let bench = try await EngineTestBench.full()
    let (own, device) = try await owner(bench)
    let before = try #require(try await bench.store.account(own.account.id)).devices
    bench.clock.advance(by: .seconds(60))
    _ = try await bench.pass("login", Self.phone, "911111", by: bench.client(device: device))
    #expect(try await bench.store.account(own.account.id)?.devices == before)
    let listed = try await bench.store.devices(of: own.account.id, at: bench.clock.now())
    #expect(listed.first?.lastSeenAt == bench.clock.now() && listed.first?.createdAt != bench.clock.now())
  }

  // MARK: - Merged accounts

  /// Attack: one code to the victim's number, read once, gives the attacker's identity and mailbox a way into the
  /// account for ever, and only the attacker's address is told.
  @Test func mergeTellsTheOwnerAndWaits() async throws {
    let bench = try await EngineTestBench.full()
    let (own, _) = try await owner(bench)
    let google = try await bench.google(sub: "mallory", email: "933333", by: bench.client()).get()
    let thief = try await bench.signedIn(google)
    await bench.engine.deliveriesEnd()
    let before = bench.delivery.notices.count
    let merged = try await bench.pass("join_phone", Self.phone, "911111", by: bench.client(session: thief))
    #expect(merged.account?.id == own.account.id && merged.deviceToken == nil)
    await bench.engine.deliveriesEnd()
    let told = bench.delivery.notices.dropFirst(before)
    #expect(told.allSatisfy { $0.to == "+911111" }, "the owner's number, and not the address that was added")
    for text in ["new device", "was connected to your account", "An email address was added to your account"] {
      #expect(told.contains { $0.text.contains(text) }, "\(text)")
    }
    // Attack: in the merged session, the identity is disconnected and connected again, or an address is added.
    let client = bench.client(session: try await bench.signedIn(merged))
    #expect(await bench.engine.disconnect(EngineTestBench.google, client: client).refusal?.code == .stepUpRequired)
    let added = await bench.engine.create("change_email", returnTo: nil, browser: nil, client: client)
    #expect(added.refusal?.code == .stepUpRequired && added.refusal?.provider == Self.phone)
    let byGoogle = try await bench.google(sub: "mallory", by: bench.client()).refusal
    #expect(byGoogle?.code == .identifierTooNew && byGoogle?.retryAfter == Self.delay)
    let byMail = await refusal { try await bench.pass("login", Self.mail, "933333", by: bench.client()) }
    #expect(byMail?.code == .identifierTooNew)
    #expect(try await bench.pass("login", Self.phone, "911111", by: bench.client()).account?.id == own.account.id)
    // The legitimate use: the owner has not removed them meanwhile.
    bench.clock.advance(by: Self.delay)
    #expect(try await bench.google(sub: "mallory", by: bench.client()).get().account?.id == own.account.id)
    #expect(try await bench.pass("login", Self.mail, "933333", by: bench.client()).account?.id == own.account.id)
  }

  // MARK: - New identifiers

  /// Attack: a thief who holds a session for a minute adds an address of their own, and passes it as a second factor.
  @Test func addedAddressCountsForNothingUntilTheDelayHasPassed() async throws {
    let bench = try await EngineTestBench.full()
    let (own, _) = try await owner(bench)
    let added = try await bench.signedIn(
      try await bench.pass("change_email", Self.mail, "933333", by: bench.client(session: own)))
    #expect(added.session.assuranceLevel == 1)
    let stepUp = await refusal {
      try await bench.pass("step_up", Self.mail, nil, by: bench.client(session: added))
    }
    #expect(stepUp?.code == .identifierTooNew && stepUp?.retryAfter == Self.delay)
    let named = await refusal {
      try await bench.pass("step_up", Self.mail, "933333", by: bench.client(session: added))
    }
    #expect(named?.code == .identifierTooNew)
    // It signs in, and counts for nothing else.
    let signedIn = try await bench.signedIn(try await bench.pass("login", Self.mail, "933333", by: bench.client()))
    #expect(signedIn.session.passed.map(\.provider) == [Self.mail] && signedIn.session.counted.isEmpty)
    let both = try await bench.signedIn(
      try await bench.pass("step_up", Self.phone, nil, by: bench.client(session: signedIn)))
    #expect(both.session.assuranceLevel == 1 && both.sessionFacts(at: bench.clock.now()).passed.count == 1)
    bench.clock.advance(by: Self.delay)
    let back = try await bench.signedIn(try await bench.pass("login", Self.phone, "911111", by: bench.client()))
    let later = try await bench.signedIn(
      try await bench.pass("step_up", Self.mail, nil, by: bench.client(session: back)))
    #expect(later.session.assuranceLevel == 2)
  }

  /// The first address of a new account is as old as the account can be.
  @Test func firstIdentifierOfANewAccountCountsAtOnce() async throws {
    let bench = try await EngineTestBench.full()
    let new = try await bench.signedIn(try await bench.pass("register", Self.phone, "911111", by: bench.client()))
    #expect(new.session.counted.map(\.provider) == [Self.phone])
    let again = try await bench.pass("step_up", Self.phone, nil, by: bench.client(session: new))
    #expect(try await bench.signedIn(again).session.counted.map(\.provider) == [Self.phone])
  }

  /// Attack: a thief adds an address silently, and all later notices go there alone.
  @Test func addedAddressIsToldToTheNumberAndTakesNoNoticesOver() async throws {
    let bench = try await EngineTestBench.full()
    let (own, _) = try await owner(bench)
    let told = { (text: String) async -> Set<String> in
      await bench.engine.deliveriesEnd()
      return Set(bench.delivery.notices.filter { $0.text.contains(text) }.map(\.to))
    }
    let added = try await bench.signedIn(
      try await bench.pass("change_email", Self.mail, "933333", by: bench.client(session: own)))
    #expect(await told("An email address was added to your account") == ["+911111"])
    _ = try await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: added)).get()
    #expect(await told("set up for your account") == ["+911111", "+933333"])
    bench.clock.advance(by: Self.delay)
    let stored = try #require(try await bench.store.account(own.account.id))
    let addresses = stored.noticeAddresses(bench.generations.current.accounts, at: bench.clock.now())
    #expect(addresses.map(\.to) == ["+933333"], "once it is settled, the address alone")
  }

  // MARK: - Reset factors

  private func reset(_ bench: EngineTestBench, _ own: SessionSnapshot, to secret: String = "2") async throws
    -> SessionSnapshot
  {
    let client = bench.client(session: own)
    let id = try await bench.engine.create("pin_reset", returnTo: nil, browser: nil, client: client).get().id
    _ = try await bench.engine.begin(id, provider: "phone_otp", fields: [:], client: client).get()
    await bench.engine.deliveriesEnd()
    let fields: [String: InputValue] = ["code": .text(bench.code), "new_secret": .text(secret)]
    return try await bench.signedIn(try await bench.engine.submit(id, fields: fields, client: client).get())
  }

  /// Attack: someone who has the SIM alone resets the PIN by a code to it, passes the PIN as a second factor, and
  /// changes the number.
  @Test func resetFactorProvesNoMoreThanWhatResetIt() async throws {
    let bench = try await EngineTestBench.full()
    let (own, _) = try await owner(bench)
    _ = try await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: own)).get()
    let thief = try await bench.signedIn(try await bench.pass("login", Self.phone, "911111", by: bench.client()))
    let client = { (session: SessionSnapshot) in bench.client(session: session) }
    let created = await bench.engine.create("change_phone", returnTo: nil, browser: nil, client: client(thief))
    #expect(created.refusal?.code == .stepUpRequired && created.refusal?.provider == EngineTestBench.pin)
    let after = try await reset(bench, thief)
    let stepUp = await bench.secret("step_up", ["secret": "2"], by: client(after)).refusal
    #expect(stepUp?.code == .identifierTooNew && stepUp?.retryAfter == Self.delay)
    let unlocked = try await bench.signedIn(
      try await bench.secret("pin_unlock", ["secret": "2"], by: client(after)).get())
    #expect(unlocked.session.assuranceLevel == 1 && !unlocked.session.counted.contains { $0.provider == "pin" })
    let change = await bench.engine.create("change_phone", returnTo: nil, browser: nil, client: client(unlocked))
    #expect(change.refusal?.code == .identifierTooNew)
    #expect(await bench.secret("pin_disable", ["secret": "2"], by: client(unlocked)).refusal?.code == .identifierTooNew)
    // Changing it does not make it older.
    let changed = try await bench.signedIn(
      try await bench.secret("pin_change", ["secret": "2", "new_secret": "3"], by: client(unlocked)).get())
    #expect(await bench.secret("step_up", ["secret": "3"], by: client(changed)).refusal?.code == .identifierTooNew)
    // The legitimate use: the owner waits.
    bench.clock.advance(by: Self.delay)
    let back = try await bench.signedIn(try await bench.pass("login", Self.phone, "911111", by: bench.client()))
    let proved = try await bench.signedIn(
      try await bench.secret("step_up", ["secret": "3"], by: client(back)).get())
    #expect(proved.session.assuranceLevel == 2)
    #expect(
      await bench.engine.create("change_phone", returnTo: nil, browser: nil, client: client(proved)).refusal == nil)
  }

  /// A PIN that was set and never reset counts at once, and a reset PIN still signs in.
  @Test func setFactorCountsAtOnceAndAResetOneSignsIn() async throws {
    let bench = try await EngineTestBench.full()
    let (own, _) = try await owner(bench)
    let set = try await bench.signedIn(
      try await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: own)).get())
    let proved = try await bench.signedIn(
      try await bench.secret("step_up", ["secret": "1"], by: bench.client(session: set)).get())
    #expect(proved.session.assuranceLevel == 2)
    _ = try await reset(bench, proved)
    guard var generation = bench.generations.current as? TestGeneration else { return }
    generation.id += "+"
    generation.accounts.signIn = [
      SignInRequirement(
        choices: [EngineTestBench.pin], when: nil, enroll: false,
        location: SourceLocation(file: "accounts.lua", line: 2))
    ]
    bench.generations.activate(generation, at: bench.clock.now())
    let waiting = try await bench.pass("login", Self.phone, "911111", by: bench.client())
    #expect(waiting.choices == [EngineTestBench.pin])
    let done = try await bench.engine.begin(
      waiting.id, provider: "pin", fields: ["secret": .text("2")], client: bench.client()
    ).get()
    #expect(done.status == .complete && done.session?.aal == 1)
  }

  /// Attack: a session that passed a factor which is too new. A route refuses it, and says until when, instead of
  /// asking for the same step again and again.
  @Test func routeRefusesAStepThatIsTooNew() throws {
    let now = Timestamp(milliseconds: 1_800_000_000_000)
    var step = PassedStep(provider: "pin", at: now)
    step.tooNewUntil = now + .seconds(60)
    let session = Session(
      id: "se_1", token: TokenHash(of: "t".utf8), account: "ac_1", createdAt: now, expiresAt: now + .seconds(3600),
      idle: .seconds(3600), lastSeenAt: now, passed: [step], userAgent: nil)
    let snapshot = SessionSnapshot(
      session: session, account: Account(id: "ac_1", createdAt: now, lastSeenAt: now))
    let route = Route(
      host: nil, path: PathPattern(text: "/**", segments: []), methods: nil, upstreams: [], isOpen: false,
      flow: "login",
      requirement: .passed("pin", within: nil), decide: nil, timeout: .seconds(30), allowsUpgrade: false, headers: [],
      bodyLimit: nil, location: SourceLocation(file: "routes.lua", line: 2))
    let verdict = { (at: Timestamp) in
      route.verdict(snapshot, .success(.none), at: at) { _, _, _ in .allow }
    }
    #expect(verdict(now) == .tooNew("pin", until: now + .seconds(60)))
    #expect(verdict(now + .seconds(60)) == .needs("pin"), "from then on, another proof counts")
  }
}
