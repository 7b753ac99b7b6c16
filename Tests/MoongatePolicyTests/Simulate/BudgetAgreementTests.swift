import Foundation
import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import PhoneOTP
import Testing

@testable import MoongatePolicy

/// Compares the guesses of an attacker on the real engine with the bound that `check` computes, for random policies.
///
/// `MOONGATE_RANDOM_POLICIES=1000` sets their number. Each takes a quarter of a second.
@Suite struct BudgetAgreementTests {
  private static let phone = ProviderName(test: "phone_otp")
  private static let count = ProcessInfo.processInfo.environment["MOONGATE_RANDOM_POLICIES"].flatMap { Int($0) } ?? 16

  /// One to three limits on guesses, of which the strictest applies.
  private static func limits(_ seed: Int) -> [Limit] {
    let random = SeededRandom(seed: UInt64(seed) &* 2_654_435_761)
    let number = { (below: UInt32) in Int(random.uniform(below: below)) }
    let keys: [LimitKey] = [.phone, .identifier, .account, .provider]
    let verify = (0...number(3)).map { place -> Limit in
      let window: Duration = .seconds([900, 3_600, 21_600, 86_400][number(4)])
      let isFinal = number(8) == 0
      let locks = isFinal ? [] : (0..<number(4)).map { _ in Duration.seconds(60 * (5 + number(235))) }
      return Limit(
        name: "verify_\(place)", action: .verify, key: keys[number(4)], max: .fixed(2 + number(6)),
        window: .fixed(window),
        counts: number(4) == 0 ? .all : .failures, lock: locks.map { .fixed($0) }, disables: isFinal,
        location: SourceLocation(file: "policies/phone_otp.lua", line: 2 + place))
    }
    return verify + [
      .test("ip", on: .verify, per: .ip, max: 50, window: .seconds(3600)),
      .test("send", on: .send, per: .ip, max: 10_000, window: .seconds(3600)),
    ]
  }

  @Test(arguments: 1...count) func guessesAgreeWithTheBudget(seed: Int) async throws {
    let limits = Self.limits(seed)
    let policy = ProviderPolicy.test(Self.phone, resendAfter: [], limits: limits)
    let generation = TestGeneration(
      gateway: .test(providers: [Self.phone: ProviderSettings(deliveries: ["sms": .outbox])]),
      flows: [.test("login", account: .existing, steps: [.test(Self.phone)])], policies: [policy])
    let report = try await Simulation(
      attacker: .guess, provider: Self.phone, span: .seconds(86_400), addresses: 20, timeLimit: .seconds(600)
    ).run(generation, providers: ProviderRegistry([PhoneOTP()])) { try SQLiteStore.memory() }
    let budget = try #require(GuessBudget(codesOf: policy).perDay)
    #expect(report.bound == budget && report.isComplete)
    // The bound of `check` is never exceeded.
    #expect(report.guesses <= budget, "\(limits)")
    let bounding = limits.filter { $0.action == .verify }
    // A single limit is used up, except for honest sign-ins. Several limits restrict each other's best plan.
    guard bounding.count == 1 else { return }
    let slack =
      max(bounding[0].max.highest, budget / 10)
      + (bounding[0].counts == .all ? report.ownerSignIns + report.otherSignIns : 0)
    #expect(report.guesses >= budget - slack, "\(report.guesses) of \(budget): \(limits)")
  }
}
