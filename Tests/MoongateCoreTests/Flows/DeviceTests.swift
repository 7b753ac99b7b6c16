import MoongateSDK
import MoongateStore
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateCore

/// Trusted devices: other clients cannot lock an owner out of one, and it gives no advantage to other users.
@Suite struct DeviceTests {
  /// Signs in and returns the device token.
  private func device(
    _ bench: EngineTestBench, _ provider: ProviderName = EngineTestBench.phone, _ typed: String = "911111"
  )
    async throws -> SecretText
  {
    try #require(try await bench.pass("enter", provider, typed, by: bench.client()).deviceToken)
  }

  /// Enters wrong codes until the number is locked.
  private func lock(_ bench: EngineTestBench, _ number: String = "911111", device: SecretText? = nil) async throws {
    let client = bench.client(device: device)
    let id = try await bench.engine.create("login", returnTo: nil, browser: nil, client: client).get().id
    _ = try await bench.engine.begin(id, provider: "phone_otp", fields: ["phone": .text(number)], client: client).get()
    let wrong = bench.wrong
    for _ in 0..<5 { _ = await bench.engine.submit(id, fields: ["code": .text(wrong)], client: client) }
    #expect(await begin(bench, number, device: device).refusal?.code == .tooManyAttempts)
  }

  private func begin(_ bench: EngineTestBench, _ number: String = "911111", device: SecretText?) async -> Result<
    FlowView, Refusal
  > {
    let client = bench.client(device: device)
    switch await bench.engine.create("login", returnTo: nil, browser: nil, client: client) {
    case .failure(let refusal): return .failure(refusal)
    case .success(let view):
      return await bench.engine.begin(view.id, provider: "phone_otp", fields: ["phone": .text(number)], client: client)
    }
  }

  @Test func wrongAttemptsElsewhereDoNotLockATrustedDevice() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await device(bench)
    try await lock(bench)
    let client = bench.client(device: own)
    let begun = try await begin(bench, device: own).get()
    #expect(begun.step?.attemptsLeft == 5)
    #expect(
      try await bench.engine.submit(begun.id, fields: ["code": .text(bench.code)], client: client).get().status
        == .complete)
    // The owner's success does not help the stranger, whose lock stays.
    #expect(await begin(bench, device: nil).refusal?.code == .tooManyAttempts)
  }

  @Test func wrongAttemptsOfATrustedDeviceLockIt() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await device(bench)
    try await lock(bench, device: own)
    #expect(await begin(bench, device: own).refusal?.code == .tooManyAttempts)
    #expect(try await begin(bench, device: nil).get().step?.attemptsLeft == 5)
  }

  @Test func forgedOrForeignTokenIsIgnored() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await device(bench)
    let other = try await device(bench, EngineTestBench.phone, "922222")
    let account = try #require(try await bench.store.account(holding: phone("911111")))
    let elsewhere = try KeyRing(master: [UInt8](repeating: 8, count: 32)).remember(
      DeviceToken(from: SystemRandom(), at: bench.clock.now()), account.id,
      as: try #require(account.devices.first), [EngineTestBench.phone],
      at: bench.clock.now()
    )
    try await lock(bench)
    let text = own.reveal()
    let forged = [
      other, elsewhere, SecretText(""), SecretText("x"), SecretText(String(text.dropLast())), SecretText(text + "A"),
      SecretText((text.hasPrefix("A") ? "B" : "A") + text.dropFirst()),
      SecretText(String(repeating: "A", count: text.count)), SecretText(String(repeating: "A", count: 1_000_000)),
    ]
    for token in forged { #expect(await begin(bench, device: token).refusal?.code == .tooManyAttempts) }
    bench.clock.advance(by: DeviceToken.lifetime)
    bench.clock.advance(by: .seconds(-1))
    try await lock(bench)
    #expect(try await begin(bench, device: own).get().status == .pending, "to its last second")
    bench.clock.advance(by: .seconds(1))
    #expect(await begin(bench, device: own).refusal?.code == .tooManyAttempts)
  }

  /// Attack: an attacker who can pass one step signs in again and again to get fresh counters for another step.
  @Test func passingTheCodeGivesNoFreshBudgetOfPINs() async throws {
    let bench = try await EngineTestBench.full()
    let first = try #require(
      try await bench.session(try await bench.pass("enter", EngineTestBench.phone, "911111", by: bench.client())))
    _ = try await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: first)).get()
    var refusals: [RefusalCode?] = []
    for _ in 0..<6 {
      let view = try await bench.pass("login", EngineTestBench.phone, "911111", by: bench.client())
      let token = try #require(view.deviceToken)
      let client = bench.client(session: try await bench.session(view), device: token)
      refusals.append(await bench.secret("pin_unlock", ["secret": "2"], by: client).refusal?.code)
    }
    #expect(
      refusals == [.invalidPIN, .invalidPIN, .tooManyAttempts, .tooManyAttempts, .tooManyAttempts, .tooManyAttempts])
  }

  /// Attack: the number has a new owner, and the former owner's device hopes for a separate counter at their codes.
  @Test func deviceIsTrustedForItsAccountAndNotForANumber() async throws {
    let bench = try await EngineTestBench.full()
    let old = try await device(bench)
    let own = try #require(
      try await bench.session(try await bench.pass("login", EngineTestBench.phone, "911111", by: bench.client())))
    _ = try await bench.pass("change_phone", EngineTestBench.phone, "933333", by: bench.client(session: own))
    _ = try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client())
    try await lock(bench)
    #expect(await begin(bench, device: old).refusal?.code == .tooManyAttempts)
  }

  @Test func trustedDeviceHasASeparateResendTimer() async throws {
    let bench = try await EngineTestBench.full { $0.policies[EngineTestBench.phone] = .test(EngineTestBench.phone) }
    let own = try await device(bench)
    _ = try await begin(bench, device: nil).get()
    #expect(await begin(bench, device: nil).refusal?.code == .resendTooSoon)
    _ = try await begin(bench, device: own).get()
    #expect(await begin(bench, device: own).refusal?.code == .resendTooSoon)
  }

  @Test func policiesReadWhetherADeviceIsNewAndUsersAreNotified() async throws {
    let seen = Mutex<[Bool]>([])
    let verify = FunctionName("policies.phone_otp.verify")
    let bench = try await EngineTestBench.full { generation in
      let phone = ProviderPolicy.test(EngineTestBench.phone, resendAfter: [], limits: [])
      generation.policies[EngineTestBench.phone] = ProviderPolicy(
        provider: phone.provider, code: phone.code, resendAfter: [], limits: [], unknownAccount: .reveal,
        message: phone.message, send: nil,
        verify: verify, locations: [:])
      generation.verdicts[verify] = { facts in
        seen.withLock { $0.append(facts.client.isNewDevice) }
        return .allow
      }
    }
    let own = try await device(bench)
    await bench.engine.deliveriesEnd()
    #expect(bench.delivery.notices.isEmpty, "who has just registered knows")
    let again = try await bench.pass("login", EngineTestBench.phone, "911111", by: bench.client(device: own))
    await bench.engine.deliveriesEnd()
    #expect(bench.delivery.notices.isEmpty)
    _ = try await bench.pass("login", EngineTestBench.phone, "911111", by: bench.client())
    await bench.engine.deliveriesEnd()
    #expect(bench.delivery.notices.map(\.to) == ["+911111"])
    #expect(bench.delivery.notices.first?.text.contains("new device") == true)
    #expect(seen.withLock { $0 } == [true, false, true])
    #expect(again.deviceToken != nil)
  }

  @Test func aNoticeNeverFailsASignIn() async throws {
    let bench = try await EngineTestBench.full()
    _ = try await device(bench)
    let id = try await bench.engine.create("login", returnTo: nil, browser: nil, client: bench.client()).get().id
    _ = try await bench.engine.begin(
      id, provider: "phone_otp", fields: ["phone": .text("911111")], client: bench.client()
    ).get()
    let code = bench.code
    bench.delivery.fails = true
    #expect(
      try await bench.engine.submit(id, fields: ["code": .text(code)], client: bench.client()).get().status == .complete
    )
    await bench.engine.deliveriesEnd()
    #expect(
      try await bench.audit.events(limit: 100).contains {
        $0.kind == .deliveryFailed && $0.detail["notice"] == "newDevice"
      })
  }

  private func phone(_ digits: String) -> Identifier { Identifier(kind: .phone, value: "+" + digits, display: "") }
}
