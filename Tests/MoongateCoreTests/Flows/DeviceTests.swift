import MoongateSDK
import MoongateStore
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateCore

/// Trusted devices: strangers cannot lock an owner out of one, and it gives no advantage to other users.
@Suite struct DeviceTests {
  /// Signs in and returns the device token.
  private func device(
    _ desk: EngineTestBench, _ provider: ProviderName = EngineTestBench.phone, _ typed: String = "911111"
  )
    async throws -> SecretText
  {
    try #require(try await desk.pass("enter", provider, typed, by: desk.client()).deviceToken)
  }

  /// Enters wrong codes until the number is locked.
  private func lock(_ desk: EngineTestBench, _ number: String = "911111", device: SecretText? = nil) async throws {
    let client = desk.client(device: device)
    let id = try await desk.engine.create("login", returnTo: nil, browser: nil, client: client).get().id
    _ = try await desk.engine.begin(id, provider: "phone_otp", fields: ["phone": .text(number)], client: client).get()
    let wrong = desk.wrong
    for _ in 0..<5 { _ = await desk.engine.submit(id, fields: ["code": .text(wrong)], client: client) }
    #expect(await begin(desk, number, device: device).refusal?.code == .tooManyAttempts)
  }

  private func begin(_ desk: EngineTestBench, _ number: String = "911111", device: SecretText?) async -> Result<
    FlowView, Refusal
  > {
    let client = desk.client(device: device)
    switch await desk.engine.create("login", returnTo: nil, browser: nil, client: client) {
    case .failure(let refusal): return .failure(refusal)
    case .success(let view):
      return await desk.engine.begin(view.id, provider: "phone_otp", fields: ["phone": .text(number)], client: client)
    }
  }

  @Test func aStrangersTriesDoNotLockTheOwnerOut() async throws {
    let desk = try await EngineTestBench.full()
    let own = try await device(desk)
    try await lock(desk)
    let client = desk.client(device: own)
    let begun = try await begin(desk, device: own).get()
    #expect(begun.step?.attemptsLeft == 5)
    #expect(
      try await desk.engine.submit(begun.id, fields: ["code": .text(desk.code)], client: client).get().status
        == .complete)
    // The owner's success does not help the stranger, whose lock stays.
    #expect(await begin(desk, device: nil).refusal?.code == .tooManyAttempts)
  }

  @Test func itsOwnTriesLockItToo() async throws {
    let desk = try await EngineTestBench.full()
    let own = try await device(desk)
    try await lock(desk, device: own)
    #expect(await begin(desk, device: own).refusal?.code == .tooManyAttempts)
    #expect(try await begin(desk, device: nil).get().step?.attemptsLeft == 5)
  }

  @Test func forgedOrForeignTokenIsIgnored() async throws {
    let desk = try await EngineTestBench.full()
    let own = try await device(desk)
    let other = try await device(desk, EngineTestBench.phone, "922222")
    let account = try #require(try await desk.store.account(holding: phone("911111")))
    let elsewhere = try KeyRing(master: [UInt8](repeating: 8, count: 32)).remember(
      DeviceToken(from: SystemRandom(), at: desk.clock.now()), account.id, [EngineTestBench.phone], at: desk.clock.now()
    )
    try await lock(desk)
    let text = own.reveal()
    let forged = [
      other, elsewhere, SecretText(""), SecretText("x"), SecretText(String(text.dropLast())), SecretText(text + "A"),
      SecretText((text.hasPrefix("A") ? "B" : "A") + text.dropFirst()),
      SecretText(String(repeating: "A", count: text.count)), SecretText(String(repeating: "A", count: 1_000_000)),
    ]
    for token in forged { #expect(await begin(desk, device: token).refusal?.code == .tooManyAttempts) }
    desk.clock.advance(by: DeviceToken.lifetime)
    desk.clock.advance(by: .seconds(-1))
    try await lock(desk)
    #expect(try await begin(desk, device: own).get().status == .pending, "to its last second")
    desk.clock.advance(by: .seconds(1))
    #expect(await begin(desk, device: own).refusal?.code == .tooManyAttempts)
  }

  /// Attack: an attacker who can pass one step signs in again and again to get fresh counters for another step.
  @Test func passingTheCodeGivesNoFreshBudgetOfPINs() async throws {
    let desk = try await EngineTestBench.full()
    let first = try #require(
      try await desk.session(try await desk.pass("enter", EngineTestBench.phone, "911111", by: desk.client())))
    _ = try await desk.secret("pin_set", ["new_secret": "1"], by: desk.client(session: first)).get()
    var refusals: [RefusalCode?] = []
    for _ in 0..<6 {
      let view = try await desk.pass("login", EngineTestBench.phone, "911111", by: desk.client())
      let token = try #require(view.deviceToken)
      let client = desk.client(session: try await desk.session(view), device: token)
      refusals.append(await desk.secret("pin_unlock", ["secret": "2"], by: client).refusal?.code)
    }
    #expect(
      refusals == [.invalidPIN, .invalidPIN, .tooManyAttempts, .tooManyAttempts, .tooManyAttempts, .tooManyAttempts])
  }

  /// Attack: the number has a new owner, and the former owner's device hopes for a separate counter at their codes.
  @Test func aDeviceIsKnownToAnAccountAndNotToANumber() async throws {
    let desk = try await EngineTestBench.full()
    let old = try await device(desk)
    let own = try #require(
      try await desk.session(try await desk.pass("login", EngineTestBench.phone, "911111", by: desk.client())))
    _ = try await desk.pass("change_phone", EngineTestBench.phone, "933333", by: desk.client(session: own))
    _ = try await desk.pass("register", EngineTestBench.phone, "911111", by: desk.client())
    try await lock(desk)
    #expect(await begin(desk, device: old).refusal?.code == .tooManyAttempts)
  }

  @Test func theResendTimerIsItsOwn() async throws {
    let desk = try await EngineTestBench.full { $0.policies[EngineTestBench.phone] = .test(EngineTestBench.phone) }
    let own = try await device(desk)
    _ = try await begin(desk, device: nil).get()
    #expect(await begin(desk, device: nil).refusal?.code == .resendTooSoon)
    _ = try await begin(desk, device: own).get()
    #expect(await begin(desk, device: own).refusal?.code == .resendTooSoon)
  }

  @Test func policiesReadWhetherADeviceIsNewAndUsersAreNotified() async throws {
    let seen = Mutex<[Bool]>([])
    let verify = FunctionName("policies.phone_otp.verify")
    let desk = try await EngineTestBench.full { generation in
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
    let own = try await device(desk)
    await desk.engine.deliveriesEnd()
    #expect(desk.delivery.notices.isEmpty, "who has just registered knows")
    let again = try await desk.pass("login", EngineTestBench.phone, "911111", by: desk.client(device: own))
    await desk.engine.deliveriesEnd()
    #expect(desk.delivery.notices.isEmpty)
    _ = try await desk.pass("login", EngineTestBench.phone, "911111", by: desk.client())
    await desk.engine.deliveriesEnd()
    #expect(desk.delivery.notices.map(\.to) == ["+911111"])
    #expect(desk.delivery.notices.first?.text.contains("new device") == true)
    #expect(seen.withLock { $0 } == [true, false, true])
    #expect(again.deviceToken != nil)
  }

  @Test func aNoticeNeverFailsASignIn() async throws {
    let desk = try await EngineTestBench.full()
    _ = try await device(desk)
    let id = try await desk.engine.create("login", returnTo: nil, browser: nil, client: desk.client()).get().id
    _ = try await desk.engine.begin(
      id, provider: "phone_otp", fields: ["phone": .text("911111")], client: desk.client()
    ).get()
    let code = desk.code
    desk.delivery.fails = true
    #expect(
      try await desk.engine.submit(id, fields: ["code": .text(code)], client: desk.client()).get().status == .complete)
    await desk.engine.deliveriesEnd()
    #expect(
      try await desk.audit.events(limit: 100).contains {
        $0.kind == .deliveryFailed && $0.detail["notice"] == "newDevice"
      })
  }

  private func phone(_ digits: String) -> Identifier { Identifier(kind: .phone, value: "+" + digits, display: "") }
}
