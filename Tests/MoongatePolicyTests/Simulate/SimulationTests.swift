import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import PhoneOTP
import Testing

@testable import MoongatePolicy

/// Attackers on the real engine, against what `check` computes.
@Suite struct SimulationTests {
  private static let phone = ProviderName(test: "phone_otp")

  private func run(
    _ attacker: Simulation.Attacker, limits: [Limit]? = nil, resendAfter: [Duration] = [.seconds(60), .seconds(120)], span: Duration,
    addresses: Int = 50, accounts: Int = 20
  ) async throws -> SimulationReport {
    let policy: ProviderPolicy = limits.map { .test(Self.phone, resendAfter: resendAfter, limits: $0) } ?? .test(Self.phone)
    let generation = TestGeneration(
      gateway: .test(providers: [Self.phone: ProviderSettings(deliveries: ["sms": .outbox])]),
      flows: [
        .test("login", account: .existing, steps: [.test(Self.phone)]), .test("register", account: .new, steps: [.test(Self.phone)]),
      ], policies: [policy])
    return try await Simulation(
      attacker: attacker, provider: Self.phone, span: span, addresses: addresses, accounts: accounts, patience: .seconds(600)
    ).run(generation, providers: ProviderRegistry([PhoneOTP()])) { try SQLiteStore(path: ":memory:", keyFingerprint: [1]) }
  }

  @Test func aMonthOfGuessingAtTheShippedPolicyMeetsTheBound() async throws {
    let report = try await run(.guess, span: .seconds(30 * 86_400))
    #expect(report.isComplete)
    #expect(report.bound == 447)
    #expect(report.guesses <= 447)
    // What the owner does in between costs the attacker a minute here and there.
    #expect(report.guesses >= 430, "\(report)")
    #expect(report.ownerSignIns == 90)
    #expect(report.ownerRefused > 0)
    #expect(report.ownerLockedOutSeconds > 86_400)
  }

  @Test(arguments: 1...12) func noAttackBeatsTheBound(seed: Int) async throws {
    let random = SeededRandom(seed: UInt64(seed))
    let number = { (below: UInt32) in Int(random.uniform(below: below)) }
    let minutes = { (from: Int, below: UInt32) in Duration.seconds(60 * (from + number(below))) }
    let limits: [Limit] = [
      .test("verify", on: .verify, per: .phone, max: 2 + number(4), window: minutes(60, 1_380), lock: (0..<number(4)).map { _ in minutes(5, 240) }),
      .test("ip", on: .verify, per: .ip, max: 50, window: .seconds(3600)), .test("send", on: .send, per: .ip, max: 1_000, window: .seconds(3600)),
    ]
    let report = try await run(.guess, limits: limits, resendAfter: [], span: .seconds(3 * 86_400))
    let bound = try #require(report.bound)
    #expect(report.guesses <= bound, "\(limits.map(\.lock))")
    #expect(report.guesses >= bound * 9 / 10, "\(report.guesses) of \(bound): \(limits[0])")
  }

  @Test func aFloodIsHeldByTheAddresses() async throws {
    let report = try await run(.flood, span: .seconds(3 * 3600), addresses: 4)
    // 30 an hour and address, and the owner's own.
    #expect(report.messages <= 4 * 30 * 3 + report.ownerSignIns)
    #expect(report.messages >= 4 * 30 * 3)
    #expect(report.bound == nil)
  }

  @Test func sprayingLocksNobodyOut() async throws {
    let report = try await run(.spray, span: .seconds(2 * 86_400), addresses: 50, accounts: 20)
    // Four guesses a day at each of twenty; the owner's own success takes nothing away from that.
    #expect(report.guesses == 2 * 4 * 20)
    #expect(report.ownerRefused == 0)
    #expect(report.ownerLockedOutSeconds == 0)
  }

  @Test func whatCannotBeAttackedSaysWhy() async throws {
    let generation = TestGeneration(gateway: .test(), flows: [], policies: [.test(Self.phone)])
    let providers = try ProviderRegistry([PhoneOTP()])
    for (name, sentence) in [
      ("phone_otp", "no flow begins with phone_otp, so nobody can be attacked through it"),
      ("pin", "gateway.lua configures no provider pin; it has phone_otp"),
    ] {
      let simulation = Simulation(attacker: .guess, provider: try #require(ProviderName(rawValue: name)), span: .seconds(1), addresses: 1)
      await #expect(
        performing: {
          _ = try await simulation.run(generation, providers: providers) { try SQLiteStore(path: ":memory:", keyFingerprint: [1]) }
        }, throws: { "\($0)" == sentence })
    }
  }
}
