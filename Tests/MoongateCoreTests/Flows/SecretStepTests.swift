import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// Setting, changing, resetting and forgetting secrets, and the attempts that this costs.
@Suite struct SecretStepTests {
  private func owner(_ bench: EngineTestBench, pin: String = "1") async throws -> SessionSnapshot {
    let first = try #require(
      try await bench.session(try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client())))
    return try #require(
      try await bench.session(
        try await bench.secret("pin_set", ["new_secret": pin], by: bench.client(session: first)).get()))
  }

  @Test func wrongSecretsOfAllFlowsCountTogether() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await owner(bench)
    #expect(
      await bench.secret("pin_unlock", ["secret": "2"], by: bench.client(session: own)).refusal?.attemptsLeft == 2)
    #expect(
      await bench.secret("pin_change", ["secret": "2", "new_secret": "3"], by: bench.client(session: own)).refusal?
        .attemptsLeft == 1)
    #expect(
      await bench.secret("pin_change", ["secret": "2", "new_secret": "weak"], by: bench.client(session: own)).refusal?
        .code == .weakPIN)
    #expect(
      await bench.secret("pin_disable", ["secret": "2"], by: bench.client(session: own)).refusal?.code
        == .tooManyAttempts
    )
    #expect(
      await bench.secret("pin_unlock", ["secret": "1"], by: bench.client(session: own)).refusal?.code
        == .tooManyAttempts)
    #expect(
      await bench.secret("pin_set", ["new_secret": "3"], by: bench.client(session: own)).refusal?.code == .alreadySet)
    await bench.engine.deliveriesEnd()
    #expect(bench.delivery.notices.map(\.text).contains { $0.contains("locked for 15 minutes") })
  }

  @Test func aStepThatWasBegunWithAWrongSecretStaysOpen() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await owner(bench)
    let client = bench.client(session: own)
    let id = try await bench.engine.create("pin_unlock", returnTo: nil, browser: nil, client: client).get().id
    #expect(
      await bench.engine.begin(id, provider: "pin", fields: ["secret": .text("2")], client: client).refusal?
        .attemptsLeft
        == 2)
    #expect(try await bench.engine.view(id, client: client).get().step?.fields.map(\.name) == ["secret"])
    #expect(try await bench.engine.submit(id, fields: ["secret": .text("1")], client: client).get().status == .complete)
  }

  @Test func twoHundredParallelWrongSecretsAreThreeAttempts() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await owner(bench)
    let refusals = try await withThrowingTaskGroup(of: Refusal?.self) { group in
      for _ in 0..<200 {
        group.addTask { await bench.secret("pin_unlock", ["secret": "2"], by: bench.client(session: own)).refusal }
      }
      return try await group.reduce(into: [Refusal]()) { if let refusal = $1 { $0.append(refusal) } }
    }
    #expect(refusals.compactMap(\.attemptsLeft).sorted() == [1, 2])
    #expect(refusals.count { $0.code == .tooManyAttempts } == 198)
  }

  @Test func outcomeWithoutAVerdictIsRefunded() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await owner(bench)
    for _ in 0..<9 {
      #expect(
        await bench.secret("pin_set", ["new_secret": "3"], by: bench.client(session: own)).refusal?.code == .alreadySet)
    }
    for _ in 0..<9 {
      #expect(
        await bench.secret("pin_unlock", ["secret": "broken"], by: bench.client(session: own)).refusal?.code == .busy)
    }
    #expect(
      await bench.secret("pin_unlock", ["secret": "2"], by: bench.client(session: own)).refusal?.attemptsLeft == 2)
    let off = try #require(
      try await bench.session(
        try await bench.secret("pin_disable", ["secret": "1"], by: bench.client(session: own)).get())
    )
    #expect(off.account.credentials.isEmpty)
    for _ in 0..<9 {
      #expect(await bench.secret("pin_unlock", ["secret": "1"], by: bench.client(session: off)).refusal?.code == .noPIN)
    }
  }

  /// All hashing places are taken: the answer is 503, and nothing is charged.
  @Test func busyAnswerChargesNoAttempt() async throws {
    let bench = try await EngineTestBench.full(hashing: CountedPermits(2), hashes: true)
    let own = try await owner(bench)
    #expect(
      await bench.secret("pin_unlock", ["secret": "2"], by: bench.client(session: own)).refusal?.attemptsLeft == 2)
    for _ in 0..<9 {
      #expect(await bench.secret("pin_unlock", ["secret": "2"], by: bench.client(session: own)).refusal?.code == .busy)
    }
    let limit = try #require(bench.generations.current.policies[EngineTestBench.pin]?.limits.first)
    #expect(limit.max == .fixed(3))
    #expect(try await bench.store.locks(at: bench.clock.now()).isEmpty)
  }

  @Test(arguments: [true, false]) func aForgottenPINIsResetByACode(inOneCall: Bool) async throws {
    let bench = try await EngineTestBench.full()
    let own = try await owner(bench)
    let other = try #require(
      try await bench.session(try await bench.pass("login", EngineTestBench.phone, "911111", by: bench.client())))
    for _ in 0..<3 { _ = await bench.secret("pin_unlock", ["secret": "2"], by: bench.client(session: own)) }
    #expect(try await bench.store.locks(at: bench.clock.now()).count == 1)
    let client = bench.client(session: own)
    let id = try await bench.engine.create("pin_reset", returnTo: nil, browser: nil, client: client).get().id
    _ = try await bench.engine.begin(id, provider: "phone_otp", fields: [:], client: client).get()
    let code = bench.code
    // A weak secret neither charges an attempt nor consumes the code, whether the code is right or not.
    for typed in [code, bench.wrong] {
      let weak = await bench.engine.submit(
        id, fields: ["code": .text(typed), "new_secret": .text("weak")], client: client
      ).refusal
      #expect(weak?.code == .weakPIN)
    }
    #expect(try await bench.engine.view(id, client: client).get().step?.attemptsLeft == 5)
    #expect(
      await bench.engine.submit(id, fields: ["code": .text(bench.wrong), "new_secret": .text("3")], client: client)
        .refusal?.code == .invalidCode)
    let done: FlowView
    if inOneCall {
      done = try await bench.engine.submit(id, fields: ["code": .text(code), "new_secret": .text("3")], client: client)
        .get()
    } else {
      let half = try await bench.engine.submit(id, fields: ["code": .text(code)], client: client).get()
      #expect(half.status == .pending && half.choices == [EngineTestBench.pin])
      #expect(try await bench.store.account(own.account.id)?.credentials == [EngineTestBench.pin])
      done = try await bench.engine.begin(id, provider: "pin", fields: ["new_secret": .text("3")], client: client).get()
    }
    #expect(done.status == .complete)
    #expect(done.session?.passed.map(\.provider) == [EngineTestBench.phone], "setting a PIN is not passing it")
    #expect(try await bench.store.locks(at: bench.clock.now()).isEmpty, "its lock is cleared")
    let after = try #require(try await bench.session(done))
    #expect(try await bench.store.sessions(of: own.account.id).map(\.id) == [after.session.id], "the others ended")
    #expect(try await bench.store.session(other.session.token) == nil)
    #expect(
      try await bench.secret("pin_unlock", ["secret": "3"], by: bench.client(session: after)).get().status == .complete)
  }

  @Test func aForgottenPasswordIsReplacedAndEverySessionEnds() async throws {
    let bench = try await EngineTestBench.full()
    let first = try await bench.secret(
      "register_email", ["email": "955555", "new_secret": "old"], provider: "password", by: bench.client()
    ).get()
    _ = try await bench.engine.begin(first.id, provider: "email_code", fields: [:], client: bench.client()).get()
    await bench.engine.deliveriesEnd()
    let account = try #require(
      try await bench.engine.submit(first.id, fields: ["code": .text(bench.code)], client: bench.client()).get().account
    )
    #expect(account.isEmailVerified)
    let id = try await bench.engine.create("password_reset", returnTo: nil, browser: nil, client: bench.client()).get()
      .id
    _ = try await bench.engine.begin(id, provider: nil, fields: ["phone": .text("955555")], client: bench.client())
      .get()
    await bench.engine.deliveriesEnd()
    // Attack: whether the rule "your name is no password" applies reveals the name; nothing is told before the code is
    // proved.
    let done = try await bench.engine.submit(
      id, fields: ["code": .text(bench.code), "new_secret": .text("new")], client: bench.client()
    ).get()
    #expect(done.account?.id == account.id)
    #expect(try await bench.store.sessions(of: account.id).count == 1)
    let signIn = { (secret: String) in
      await bench.secret(
        "login_password", ["email": "955555", "secret": secret], provider: "password", by: bench.client())
    }
    #expect(await signIn("old").refusal?.code == .invalidPIN)
    #expect(try await signIn("new").get().account?.id == account.id)
    await bench.engine.deliveriesEnd()
    #expect(
      bench.delivery.notices.contains { $0.text.contains("password on your account was changed") && $0.to == "+955555" }
    )
  }

  /// Attack: a registration flow takes `any` account. Whoever reads one code to an address replaces the password of its
  /// account, whichever of the two is asked for first.
  @Test(arguments: [true, false]) func aRegistrationReplacesNoSecret(isCodeFirst: Bool) async throws {
    let bench = try await EngineTestBench.full { generation in
      let steps: [StepRule] = [.test(EngineTestBench.mail), .test("password")]
      generation.flows["sign_up"] = .test(
        "sign_up", purpose: .register(setting: "password"), account: .any, steps: isCodeFirst ? steps : steps.reversed()
      )
    }
    let first = try await bench.secret(
      "register_email", ["email": "955555", "new_secret": "old"], provider: "password", by: bench.client()
    ).get()
    _ = try await bench.engine.begin(first.id, provider: "email_code", fields: [:], client: bench.client()).get()
    await bench.engine.deliveriesEnd()
    let account = try #require(
      try await bench.engine.submit(first.id, fields: ["code": .text(bench.code)], client: bench.client()).get().account
    )
    let id = try await bench.engine.create("sign_up", returnTo: nil, browser: nil, client: bench.client()).get().id
    var refusal: Refusal?
    for isCode in [isCodeFirst, !isCodeFirst] {
      if isCode {
        _ = try await bench.engine.begin(
          id, provider: "email_code", fields: ["phone": .text("955555")], client: bench.client()
        ).get()
        await bench.engine.deliveriesEnd()
        refusal =
          await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: bench.client()).refusal ?? refusal
      } else {
        let fields: [String: InputValue] = ["email": .text("955555"), "new_secret": .text("new")]
        refusal =
          await bench.engine.begin(id, provider: "password", fields: fields, client: bench.client()).refusal ?? refusal
      }
    }
    #expect(refusal?.code == .alreadyRegistered)
    let signIn = await bench.secret(
      "login_password", ["email": "955555", "secret": "old"], provider: "password", by: bench.client())
    #expect(try signIn.get().account?.id == account.id)
  }

  /// A refusal that can only be made after the code was proved leaves the next step open: the same call works again
  /// with another secret.
  @Test func aSecretThatIsRefusedAfterItsCodeMayBeSentAgain() async throws {
    let bench = try await EngineTestBench.full()
    let first = try await bench.secret(
      "register_email", ["email": "955555", "new_secret": "old", "first_name": "Asha"], provider: "password",
      by: bench.client()
    ).get()
    _ = try await bench.engine.skip(first.id, client: bench.client()).get()
    let id = try await bench.engine.create("password_reset", returnTo: nil, browser: nil, client: bench.client()).get()
      .id
    _ = try await bench.engine.begin(id, provider: nil, fields: ["phone": .text("955555")], client: bench.client())
      .get()
    await bench.engine.deliveriesEnd()
    let send = { (secret: String) in
      await bench.engine.submit(
        id, fields: ["code": .text(bench.code), "new_secret": .text(secret)], client: bench.client())
    }
    #expect(await send("Asha").refusal?.code == .weakPIN)
    #expect(try await bench.engine.view(id, client: bench.client()).get().step?.provider.rawValue == "password")
    #expect(await send("weak").refusal?.code == .weakPIN)
    #expect(try await send("new").get().status == .complete)
  }

  /// A limit with `disable` holds until an operator lifts it or the secret is replaced.
  @Test func replacedSecretEndsADisablingLock() async throws {
    let off = Limit.test("hard", on: .verify, per: .account, max: 2, counts: .consecutiveFailures, disables: true)
    let bench = try await EngineTestBench.full {
      $0.policies["password"] = .test("password", limits: [off], unknownAccount: .conceal)
      $0.policies[EngineTestBench.phone] = .test(
        EngineTestBench.phone, resendAfter: [], limits: [off], unknownAccount: .reveal)
    }
    func signIn(_ secret: String) async -> Result<FlowView, Refusal> {
      await bench.secret(
        "login_password", ["email": "955555", "secret": secret], provider: "password", by: bench.client())
    }
    let first = try await bench.secret(
      "register_email", ["email": "955555", "new_secret": "old"], provider: "password", by: bench.client()
    ).get()
    let own = try #require(try await bench.session(try await bench.engine.skip(first.id, client: bench.client()).get()))
    for _ in 0..<2 { _ = await signIn("x") }
    #expect(await signIn("old").refusal?.code == .invalidPIN, "disabled and concealed: like an unregistered identifier")
    let id = try await bench.engine.create("password_reset", returnTo: nil, browser: nil, client: bench.client()).get()
      .id
    _ = try await bench.engine.begin(id, provider: nil, fields: ["phone": .text("955555")], client: bench.client())
      .get()
    await bench.engine.deliveriesEnd()
    let reset = try await bench.engine.submit(
      id, fields: ["code": .text(bench.code), "new_secret": .text("new")], client: bench.client()
    ).get()
    #expect(try await signIn("new").get().status == .complete)

    // The same for a number: wrong codes have disabled it, and another number replaces it.
    // The code to the address authorises that, and the password that was just reset does not.
    let now = try #require(try await bench.session(reset))
    #expect(now.account.id == own.account.id && reset.status == .complete)
    let added = try #require(
      try await bench.session(
        try await bench.pass("change_phone", EngineTestBench.phone, "911111", by: bench.client(session: now))))
    let login = try await bench.engine.create("login", returnTo: nil, browser: nil, client: bench.client()).get().id
    _ = try await bench.engine.begin(
      login, provider: "phone_otp", fields: ["phone": .text("911111")], client: bench.client()
    ).get()
    for _ in 0..<2 { _ = await bench.submit(login, bench.wrong) }
    #expect(await bench.submit(login, bench.code).refusal?.code == .disabled)
    _ = try await bench.pass("change_phone", EngineTestBench.phone, "922222", by: bench.client(session: added))
    #expect(
      try await bench.pass("login", EngineTestBench.phone, "922222", by: bench.client()).account?.id == own.account.id)
  }

  /// Attack: an operator wrote the steps of a flow in the wrong order, and it sets a password for anybody.
  @Test func nothingIsSetBeforeSomethingIsProved() async throws {
    let bench = try await EngineTestBench.full {
      $0.flows["password_reset"] = .test(
        "password_reset", account: .existing, steps: [.test("password"), .test(EngineTestBench.mail)])
    }
    let refusal = await bench.engine.create("password_reset", returnTo: nil, browser: nil, client: bench.client())
      .refusal
    #expect(refusal?.code == .denied)
  }

  @Test func unknownAndKnownAddressesAnswerAlike() async throws {
    let bench = try await EngineTestBench.full()
    _ = try await bench.secret(
      "register_email", ["email": "955555", "new_secret": "s"], provider: "password", by: bench.client()
    ).get()
    for email in ["955555", "966666"] {
      for left in [2, 1] {
        let refusal = await bench.secret(
          "login_password", ["email": email, "secret": "x"], provider: "password", by: bench.client()
        ).refusal
        #expect(refusal?.code == .invalidPIN)
        #expect(refusal?.attemptsLeft == left)
      }
      #expect(
        await bench.secret("login_password", ["email": email, "secret": "x"], provider: "password", by: bench.client())
          .refusal?.code
          == .tooManyAttempts)
    }
  }

  @Test func storedSecretsAreEncrypted() async throws {
    let bench = try await EngineTestBench.full()
    let first = try await bench.secret(
      "register_email", ["email": "955555", "new_secret": "tOpSeCrEt"], provider: "password", by: bench.client()
    ).get()
    let record = try #require(try await bench.store.flow(first.id.hash))
    #expect(record.pendingProofs.records["password"]?.sealed != nil)
    #expect(record.pendingProofs.records["password"]?.sealed.map { !$0.contains(Array("tOpSeCrEt".utf8)) } ?? false)
    let done = try await bench.engine.skip(first.id, client: bench.client()).get()
    let account = try #require(done.account)
    let sealed = try #require(try await bench.store.providerRecord(of: account.id, for: "password"))
    #expect(!sealed.contains(Array("tOpSeCrEt".utf8)))
  }
}
