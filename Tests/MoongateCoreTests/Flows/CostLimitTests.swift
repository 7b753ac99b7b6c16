import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// Limits on expensive requests: begins, registrations and messages.
@Suite struct CostLimitTests {
  private static let hour: Duration = .seconds(3600)

  /// A bench that hashes passwords and limits registrations.
  private func registering(places: Int = 3, max: Int = 3) async throws -> EngineTestBench {
    try await EngineTestBench.full(hashing: CountedPermits(places), hashes: true) { generation in
      generation.policies["password"] = .test(
        "password",
        limits: EngineTestBench.perAccount + [
          .test("register_ip", on: .register, per: .ip, max: max, window: Self.hour)
        ],
        unknownAccount: .conceal)
    }
  }

  private func register(_ bench: EngineTestBench, _ number: Int, from address: [UInt8] = [192, 0, 2, 1]) async
    -> Result<
      FlowView, Refusal
    >
  {
    await bench.secret(
      "register_email", ["email": "\(900_000 + number)", "new_secret": "x"], provider: "password",
      by: bench.client(address))
  }

  // MARK: registrations

  /// Attack: registrations in a row, each of which costs a hash.
  @Test func registrationsBeyondTheLimitPayForNoHash() async throws {
    let bench = try await registering(places: 4)
    for number in 0..<3 { #expect(await register(bench, number).refusal == nil) }
    let refused = try #require(await register(bench, 3).refusal)
    #expect(refused.code == .rateLimited && refused.retryAfter == Self.hour)
    for number in 4..<20 { #expect(await register(bench, number).refusal?.code == .rateLimited) }
    #expect(
      await register(bench, 20, from: [192, 0, 2, 2]).refusal == nil,
      "the unused permit stays available")
    #expect(await register(bench, 21, from: [192, 0, 2, 3]).refusal?.code == .busy)
    let event = try #require(try await bench.audit.event(refused.decision))
    #expect(
      event.detail["act"] == "register" && event.detail["rule"] == "limits.register_ip"
        && event.detail["counter.register_ip"] == "3 -> 3 of 3")
    bench.clock.advance(by: Self.hour)
    #expect(await register(bench, 22).refusal?.code == .busy, "the window is over")
  }

  @Test func parallelRegistrationsRespectTheLimit() async throws {
    let bench = try await registering(places: 200, max: 10)
    let codes = await withTaskGroup(of: RefusalCode?.self) { group in
      for number in 0..<200 { group.addTask { await register(bench, number).refusal?.code } }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(codes.count { $0 == nil } == 10)
    #expect(codes.count { $0 == .rateLimited } == 190)
  }

  @Test func registrationWithSeveralStepsCountsOnce() async throws {
    let bench = try await registering(places: 9, max: 2)
    for number in 0..<2 {
      let flow = try await register(bench, number).get()
      #expect(try await bench.engine.skip(flow.id, client: bench.client()).get().status == .complete)
    }
    #expect(await register(bench, 2).refusal?.code == .rateLimited)
  }

  /// A registration is counted when the account is created, whatever proved it; the code remains valid.
  @Test func accountCreatedByACodeCountsAtItsCreation() async throws {
    let bench = try await EngineTestBench.full { generation in
      generation.policies[EngineTestBench.phone] = .test(
        EngineTestBench.phone, resendAfter: [],
        limits: [.test("register_ip", on: .register, per: .ip, max: 1, window: .seconds(300))])
    }
    _ = try await bench.pass("register", EngineTestBench.phone, "911111", by: bench.client())
    let client = bench.client()
    let id = try await bench.engine.create("enter", returnTo: nil, browser: nil, client: client).get().id
    _ = try await bench.engine.begin(id, provider: "phone_otp", fields: ["phone": .text("922222")], client: client)
      .get()
    let refused = await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: client).refusal
    #expect(refused?.code == .rateLimited && refused?.retryAfter == .seconds(300))
    // Signing in to an existing account does not count as a registration.
    _ = try await bench.pass("login", EngineTestBench.phone, "911111", by: bench.client())
    bench.clock.advance(by: .seconds(300))
    let codes = bench.delivery.messages.filter { $0.to == "+922222" }.compactMap(\.code)
    #expect(
      try await bench.engine.submit(id, fields: ["code": .text(codes[0])], client: client).get().account?.isNewUser
        == true)
  }

  // MARK: begins

  @Test func everyBeginCountsWithAnyResult() async throws {
    let bench = try await EngineTestBench.full { generation in
      generation.policies[EngineTestBench.google] = .test(
        EngineTestBench.google, limits: [.test("begin_ip", on: .begin, per: .ip, max: 3, window: Self.hour)],
        unknownAccount: .reveal)
      generation.policies[EngineTestBench.phone] = .test(
        EngineTestBench.phone, resendAfter: [],
        limits: [.test("begin_ip", on: .begin, per: .ip, max: 3, window: Self.hour)])
    }
    func begin(_ provider: ProviderName, _ fields: [String: InputValue] = [:], from address: [UInt8] = [192, 0, 2, 1])
      async throws -> Refusal?
    {
      let client = bench.client(address)
      let id = try await bench.engine.create("login", returnTo: nil, browser: nil, client: client).get().id
      return await bench.engine.begin(id, provider: provider.rawValue, fields: fields, client: client).refusal
    }
    for _ in 0..<3 { #expect(try await begin(EngineTestBench.google) == nil) }
    let refused = try #require(try await begin(EngineTestBench.google))
    #expect(refused.code == .rateLimited && refused.retryAfter == Self.hour)
    #expect(try await begin(EngineTestBench.google, from: [192, 0, 2, 2]) == nil)
    for _ in 0..<3 {
      #expect(try await begin(EngineTestBench.phone, ["phone": .text("955555")])?.code == .accountNotFound)
    }
    #expect(try await begin(EngineTestBench.phone, ["phone": .text("955555")])?.code == .rateLimited)
  }

  @Test func resendIsNotABegin() async throws {
    let bench = try await EngineTestBench.full { generation in
      generation.policies[EngineTestBench.phone] = .test(
        EngineTestBench.phone, resendAfter: [],
        limits: [.test("begin_ip", on: .begin, per: .ip, max: 1, window: Self.hour)])
    }
    let id = try await bench.engine.create("enter", returnTo: nil, browser: nil, client: bench.client()).get().id
    _ = try await bench.engine.begin(
      id, provider: "phone_otp", fields: ["phone": .text("911111")], client: bench.client()
    ).get()
    _ = try await bench.engine.resend(id, client: bench.client()).get()
    #expect(
      try await bench.engine.submit(id, fields: ["code": .text(bench.code)], client: bench.client()).get().status
        == .complete)
  }

  // MARK: trusted devices

  /// Ceilings of two, so that two strangers reach them.
  private func ceilings() async throws -> EngineTestBench {
    try await EngineTestBench.full { generation in
      for name in EngineTestBench.codes {
        generation.policies[name] = .test(
          name, resendAfter: [],
          limits: [LimitKey.network, .country, .prefix, .provider, .global].flatMap { key in
            [
              Limit.test("send_\(key)_\(name)", on: .send, per: key, max: 3, window: Self.hour),
              .test("begin_\(key)_\(name)", on: .begin, per: key, max: 4, window: Self.hour),
            ]
          })
      }
    }
  }

  private func sendCode(
    _ bench: EngineTestBench, _ flow: String = "enter", to number: String,
    by provider: ProviderName = EngineTestBench.phone,
    device: SecretText? = nil,
    session: SessionSnapshot? = nil
  ) async throws -> RefusalCode? {
    let client = bench.client(session: session, device: device)
    let id = try await bench.engine.create(flow, returnTo: nil, browser: nil, client: client).get().id
    return await bench.engine.begin(id, provider: provider.rawValue, fields: ["phone": .text(number)], client: client)
      .refusal?.code
  }

  /// Attack: a flood reaches the ceilings, and no user can sign in any more.
  @Test func aFloodStopsNewDevicesAndNotTrustedOnes() async throws {
    let bench = try await ceilings()
    let device = try #require(
      try await bench.pass("enter", EngineTestBench.phone, "911111", by: bench.client()).deviceToken)
    for _ in 0..<5 { #expect(try await sendCode(bench, to: "911111", device: device) == nil, "they do not count") }
    for number in 1...2 { #expect(try await sendCode(bench, to: "92222\(number)") == nil) }
    #expect(try await sendCode(bench, to: "922223") == .rateLimited)
    #expect(try await sendCode(bench, to: "911111") == .rateLimited, "the number on another device")
    #expect(try await sendCode(bench, to: "922224", device: device) == .rateLimited, "the device for another user")
    for _ in 0..<5 { #expect(try await sendCode(bench, to: "911111", device: device) == nil) }
  }

  /// Attack: accounts claim strangers' addresses, each with a device that passed for the claim, so that mail to
  /// strangers has no ceiling.
  @Test func anAddressThatIsOnlyClaimedHasCeilings() async throws {
    let bench = try await ceilings()
    let made = try await bench.secret(
      "register_email", ["email": "944444", "new_secret": "x"], provider: "password", by: bench.client()
    ).get()
    let view = try await bench.engine.skip(made.id, client: bench.client()).get()
    let session = try #require(try await bench.session(view))
    let device = try #require(view.deviceToken)
    var codes: [RefusalCode?] = []
    for _ in 0..<4 {
      codes.append(
        try await sendCode(
          bench, "verify_email", to: "944444", by: EngineTestBench.mail, device: device, session: session))
    }
    #expect(codes == [nil, nil, nil, .rateLimited])
  }

  /// Attack: messages to a number of the attacker's own. Every code that arrives creates another trusted device with a
  /// counter of its own.
  @Test func trustedDevicesOfAnAccountShareTheirMessages() async throws {
    let bench = try await EngineTestBench.full { generation in
      generation.policies[EngineTestBench.phone] = .test(
        EngineTestBench.phone, resendAfter: [],
        limits: [.test("send", on: .send, per: .phone, max: 3, window: Self.hour)])
    }
    let first = try #require(
      try await bench.pass("enter", EngineTestBench.phone, "911111", by: bench.client()).deviceToken)
    let second = try #require(
      try await bench.pass("enter", EngineTestBench.phone, "911111", by: bench.client()).deviceToken)
    var codes: [RefusalCode?] = []
    for device in [first, second, first, second] {
      codes.append(try await sendCode(bench, to: "911111", device: device))
    }
    #expect(codes == [nil, nil, nil, .sendLimit])
    #expect(try await sendCode(bench, to: "911111") == nil, "a stranger's messages are counted apart")
    #expect(try await sendCode(bench, to: "911111") == .sendLimit)
  }
}
