import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// With `conceal`, anything that an operator or a limit has turned off looks like an unknown account until the user has
/// proved who they are.
@Suite struct ConcealedLockTests {
  /// What a client sees, without ids and times, which always differ.
  private func seen(_ result: Result<FlowView, Refusal>) -> String {
    switch result {
    case .success(let view):
      let step =
        view.step.map {
          "\($0.provider) \($0.fields.map(\.name)) left \($0.attemptsLeft ?? -1) sends \($0.resendsLeft ?? -1)"
        } ?? "no step"
      return "\(view.status) \(view.choices) \(step)"
    case .failure(let refusal):
      return
        "\(refusal.code.name) left \(refusal.attemptsLeft ?? -1) wait \(refusal.retryAfter.map { "\($0)" } ?? "none")"
    }
  }

  /// Begins, resends, and enters wrong codes until the address is locked.
  private func attack(_ bench: EngineTestBench, _ address: String, from last: UInt8) async throws -> [String] {
    let client = bench.client([192, 0, 2, last])
    let id = try await bench.engine.create("login", returnTo: nil, browser: nil, client: client).get().id
    var all = [
      seen(await bench.engine.begin(id, provider: "email_code", fields: ["phone": .text(address)], client: client))
    ]
    all.append(seen(await bench.engine.resend(id, client: client)))
    await bench.engine.deliveriesEnd()
    for number in 0..<6 {
      all.append(
        seen(
          await bench.submit(
            id, "00000\(number)" == bench.code ? "999999" : "00000\(number)", address: [192, 0, 2, last])))
    }
    all.append(seen(await bench.engine.view(id, client: client)))
    let password = await bench.secret("login_password", ["email": address], provider: "password", by: client)
    all.append(seen(password))
    for _ in 0..<4 { all.append(seen(await bench.logIn(address, "wrong", by: client))) }
    return all
  }

  private func locked() async throws -> (EngineTestBench, account: String) {
    let bench = try await EngineTestBench.full()
    let account = try #require(
      try await bench.pass("register", EngineTestBench.mail, "911111", by: bench.client()).account)
    return (bench, account.id)
  }

  /// Attack: an attacker who tries an address learns that an operator has locked its account, and therefore that it
  /// exists.
  @Test func lockByAnOperatorLooksLikeAnUnregisteredAddress() async throws {
    let (bench, account) = try await locked()
    _ = try await bench.store.apply([.setLocked(account: account, true)], at: bench.clock.now())
    let known = try await attack(bench, "911111", from: 8)
    #expect(try await attack(bench, "933333", from: 9) == known)
  }

  @Test func lockIsRevealedToTheOwnerAfterTheCode() async throws {
    let (bench, account) = try await locked()
    _ = try await bench.store.apply([.setLocked(account: account, true)], at: bench.clock.now())
    let id = try await bench.engine.create("login", returnTo: nil, browser: nil, client: bench.client()).get().id
    _ = try await bench.engine.begin(
      id, provider: "email_code", fields: ["phone": .text("911111")], client: bench.client()
    ).get()
    await bench.engine.deliveriesEnd()
    #expect(await bench.submit(id, bench.code).refusal?.code == .disabled)
    #expect(try await bench.store.sessions(of: account).isEmpty)
  }

  @Test func lockIsRevealedToTheOwnerAfterThePassword() async throws {
    let bench = try await EngineTestBench.full()
    let account = try #require(try await bench.claim("911111", "ashas").account)
    _ = try await bench.store.apply([.setLocked(account: account.id, true)], at: bench.clock.now())
    #expect(await bench.logIn("911111", "wrong").refusal?.code == .invalidPIN)
    #expect(await bench.logIn("911111", "ashas").refusal?.code == .disabled)
  }

  @Test func aLockedAccountIsOfferedNoFurtherStep() async throws {
    let bench = try await EngineTestBench.full { generation in
      generation.flows["two"] = .test(
        "two", account: .existing, steps: [.test(EngineTestBench.mail), .test(EngineTestBench.phone)])
    }
    let account = try #require(
      try await bench.pass("register", EngineTestBench.mail, "911111", by: bench.client()).account)
    _ = try await bench.store.apply([.setLocked(account: account.id, true)], at: bench.clock.now())
    let id = try await bench.engine.create("two", returnTo: nil, browser: nil, client: bench.client()).get().id
    _ = try await bench.engine.begin(id, provider: nil, fields: ["phone": .text("911111")], client: bench.client())
      .get()
    await bench.engine.deliveriesEnd()
    #expect(await bench.submit(id, bench.code).refusal?.code == .disabled)
  }

  @Test func revealingPolicyReportsALockAtOnce() async throws {
    let bench = try await EngineTestBench.full()
    let account = try #require(
      try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client()).account)
    _ = try await bench.store.apply([.setLocked(account: account.id, true)], at: bench.clock.now())
    let id = try await bench.engine.create("login", returnTo: nil, browser: nil, client: bench.client()).get().id
    #expect(
      await bench.engine.begin(id, provider: "phone_otp", fields: ["phone": .text("911111")], client: bench.client())
        .refusal?.code == .disabled)
  }

  /// A limit that disables the password after six wrong ones, beside one that locks after three.
  private func turningOff() async throws -> EngineTestBench {
    try await EngineTestBench.full { generation in
      generation.policies["password"] = .test(
        "password",
        limits: [
          .test("soft", on: .verify, per: .account, max: 3, window: .seconds(60), lock: [.seconds(60)]),
          .test("hard", on: .verify, per: .account, max: 6, window: .seconds(86_400), disables: true),
        ], unknownAccount: .conceal)
    }
  }

  private func proved(_ bench: EngineTestBench) async throws {
    let begun = try await bench.secret(
      "register_email", ["email": "911111", "new_secret": "ashas"], provider: "password", by: bench.client()
    ).get()
    _ = try await bench.engine.begin(begun.id, provider: "email_code", fields: [:], client: bench.client()).get()
    await bench.engine.deliveriesEnd()
    _ = try await bench.submit(begun.id, bench.code).get()
  }

  /// Attack: "turned off" at the first attempt reveals that there is a password that somebody has tried before.
  @Test func disabledPasswordLooksLikeAnUnregisteredAddress() async throws {
    let bench = try await turningOff()
    try await proved(bench)
    func wrong(_ address: String, _ count: Int) async -> [String] {
      var all: [String] = []
      for _ in 0..<count {
        all.append(seen(await bench.logIn(address, "wrong")))
        if all.last?.hasPrefix("too_many") ?? false { bench.clock.advance(by: .seconds(61)) }
      }
      return all
    }
    let known = await wrong("911111", 10)
    #expect(await wrong("933333", 10) == known)
    #expect(!known.contains { $0.hasPrefix("disabled") })
    // It is off: the right password is treated like a wrong one, and the first attempts at an unknown account look the
    // same.
    #expect(try await bench.store.locks(at: bench.clock.now()).count { $0.until == nil } == 2)
    bench.clock.advance(by: .seconds(3600))
    let right = await bench.logIn("911111", "ashas")
    let nobodys = await bench.logIn("944444", "wrong")
    #expect(seen(right) == seen(nobodys))
  }

  @Test func disabledPasswordIsRevealedAfterAProof() async throws {
    let bench = try await EngineTestBench.full { generation in
      generation.flows["both"] = .test(
        "both", account: .existing, steps: [.test(EngineTestBench.mail), .test("password")])
      generation.policies["password"] = .test(
        "password",
        limits: [.test("hard", on: .verify, per: .account, max: 1, window: .seconds(86_400), disables: true)],
        unknownAccount: .conceal)
    }
    try await proved(bench)
    #expect(await bench.logIn("911111", "wrong").refusal?.code == .invalidPIN)
    let id = try await bench.engine.create("both", returnTo: nil, browser: nil, client: bench.client()).get().id
    _ = try await bench.engine.begin(id, provider: nil, fields: ["phone": .text("911111")], client: bench.client())
      .get()
    await bench.engine.deliveriesEnd()
    _ = try await bench.submit(id, bench.code).get()
    #expect(
      await bench.engine.begin(id, provider: "password", fields: [:], client: bench.client()).refusal?.code == .disabled
    )
  }

  /// Attack: codes are disabled for one address; whether a message is sent must not reveal that.
  @Test func disabledCodesLookLikeAnUnregisteredAddress() async throws {
    let bench = try await EngineTestBench.full { generation in
      generation.policies[EngineTestBench.mail] = .test(
        EngineTestBench.mail, resendAfter: [],
        limits: [
          .test("hard", on: .verify, per: .account, max: 1, window: .seconds(86_400), disables: true),
          .test("soft", on: .verify, per: .identifier, max: 5, window: .seconds(86_400), lock: [.seconds(900)]),
        ], unknownAccount: .conceal)
    }
    _ = try await bench.pass("register", EngineTestBench.mail, "911111", by: bench.client())
    func flow(_ address: String) async throws -> (FlowID, String) {
      let id = try await bench.engine.create("login", returnTo: nil, browser: nil, client: bench.client()).get().id
      let begun = await bench.engine.begin(
        id, provider: "email_code", fields: ["phone": .text(address)], client: bench.client())
      await bench.engine.deliveriesEnd()
      return (id, seen(begun))
    }
    for address in ["911111", "933333"] {
      let (id, _) = try await flow(address)
      let wrong = await bench.submit(id, bench.wrong)
      #expect(seen(wrong).hasPrefix("invalid_code"))
    }
    let sent = bench.delivery.messages.count
    let (known, asKnown) = try await flow("911111")
    let (unknown, asUnknown) = try await flow("933333")
    #expect(asKnown == asUnknown)
    #expect(bench.delivery.messages.count == sent, "what is turned off sends nothing")
    let (first, second) = (await bench.submit(known, "123456"), await bench.submit(unknown, "123456"))
    #expect(seen(first) == seen(second))
  }
}
