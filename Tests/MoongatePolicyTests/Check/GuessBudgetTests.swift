import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// The maximum number of guesses, compared with the rules of limits.
@Suite struct GuessBudgetTests {
  private static let day: Duration = .seconds(86_400)
  private let phone = ProviderName(test: "phone_otp")

  @Test func theShippedPhonePolicyGives447() {
    let budget = GuessBudget(codesOf: .test(phone))
    #expect(budget.per30Days == 447)
    // Three bursts and their locks fit into 24 h, and a fourth burst at 7 h 15 min.
    #expect(budget.perDay == 20)
    #expect(abs((budget.probability30Days ?? 0) - 0.000447) < 0.000001)
  }

  /// The output of `check` for the shipped files, 80 columns wide. The last row covers the providers that open an
  /// account alone.
  @Test func tableOfTheShippedFilesIsAsExpected() throws {
    let generation = try ShippedProviders.generation()
    let budgets = ShippedProviders.all.compactMap { provider in
      generation.policies[provider.descriptor.name].map { GuessBudget(of: provider, $0) }
    }
    let table = { (colour: Bool) in
      GuessBudget.table(
        budgets, accepted: generation.gateway.riskBudget, alone: generation.singleFactorProviders, colour: colour)
    }
    #expect(
      table(false) == """
        guess budget       a day   in 30 days   chance in 30 days
        phone_otp             20          447            0.0447 %
        email_code            20          447            0.0447 %
        pin                   20          447            0.0496 %  not alone
        password              20          447             unknown
        google_oauth           0            0                 0 %
        totp                  20          379             0.114 %  not alone
        passkey              925        26846          2.91e-13 %
        pin: if chosen uniformly; guesses cover 44.7 % of the 1,000 most common
        █████████████████░░░  0.0894 %, accepted: 0.1 %
        """, "\(table(false))")
    #expect(table(false).split(separator: "\n").allSatisfy { $0.count <= 80 })
    #expect(table(true).contains("\u{1b}[32m█"))
  }

  /// A password that is typed here, for an identity that is proved elsewhere.
  @Test func passwordOfADirectoryCanBeGuessed() throws {
    let directory = try #require(ShippedProviders.all.first { $0.descriptor.name.rawValue == "ldap" })
    let limit = Limit.test("v", on: .verify, per: .identifier, max: 3, window: Self.day, lock: [.seconds(1800)])
    let budget = GuessBudget(of: directory, .test(directory.descriptor.name, limits: [limit]))
    #expect(budget.per30Days ?? 0 >= 90 && budget.probability30Days == nil)
  }

  @Test func limitsThatDoNotBoundAnAttacker() {
    for key in [LimitKey.ip, .network, .clientCountry, .asn, .device, .flow, .challenge] {
      #expect(
        GuessBudget(codesOf: .test(phone, limits: [.test("v", on: .verify, per: key, max: 5, window: .seconds(60))]))
          .per30Days == nil)
    }
    let consecutive = Limit.test(
      "v", on: .verify, per: .account, max: 100, counts: .consecutiveFailures, disables: true)
    #expect(GuessBudget(codesOf: .test(phone, limits: [consecutive])).probability30Days == 1)
    #expect(
      GuessBudget(codesOf: .test(phone, limits: [.test("s", on: .send, per: .phone, max: 1, window: Self.day)]))
        .per30Days == nil)
  }

  @Test(
    arguments: [
      (10, 86_400, [Int](), 10, 300), (10, 3600, [], 240, 7200), (1, 86_400, [86_400], 1, 30),
      (3, 86_400, [900], 288, 8640),
    ] as [(Int, Int, [Int], Int, Int)]) func simpleLimits(
      max: Int, window: Int, lock: [Int], perDay: Int, per30Days: Int
    )
  {
    let limit = Limit.test(
      "v", on: .verify, per: .phone, max: max, window: .seconds(window), lock: lock.map { .seconds($0) })
    let budget = GuessBudget(codesOf: .test(phone, limits: [limit]))
    #expect(budget.perDay == perDay)
    #expect(budget.per30Days == per30Days)
  }

  @Test func disablingLimitAllowsOneAttemptLess() {
    let limit = Limit.test("v", on: .verify, per: .phone, max: 5, window: Self.day, disables: true)
    #expect(GuessBudget(codesOf: .test(phone, limits: [limit])).per30Days == 4 * 29 + 5)
  }

  @Test func strictestLimitDeterminesTheBudget() {
    let limits: [Limit] = [
      .test("a", on: .verify, per: .phone, max: 5, window: .seconds(60)),
      .test("b", on: .verify, per: .account, max: 50, window: Self.day * 30),
    ]
    #expect(GuessBudget(codesOf: .test(phone, limits: limits)).per30Days == 50)
  }

  @Test func aVaryingNumberIsTakenAtItsWorseEnd() {
    let function = FunctionName("f")
    let limit = Limit(
      name: "v", action: .verify, key: .phone, max: .varying(lowest: 2, highest: 7, function),
      window: .varying(lowest: .seconds(3600), highest: Self.day, function), counts: .failures, lock: [],
      disables: false,
      location: SourceLocation(file: "f", line: 1))
    #expect(GuessBudget(codesOf: .test(phone, limits: [limit])).perDay == 7 * 24)
  }

  @Test(arguments: [1, 7, 999]) func locksOfAnyLengthAreCountedAtOnce(milliseconds: Int) {
    let limit = Limit.test("v", on: .verify, per: .phone, max: 5, window: Self.day, lock: [.milliseconds(milliseconds)])
    let most = GuessBudget(codesOf: .test(phone, limits: [limit])).per30Days ?? 0
    #expect(most >= 5 * 30 * 86_400_000 / milliseconds)
  }

  /// No strategy on a small time grid, played against `CounterState`, exceeds the bound; the best one reaches it.
  @Test(arguments: 1...60) func bestStrategyReachesTheBound(seed: Int) throws {
    let random = SeededRandom(seed: UInt64(seed))
    let number = { (below: UInt32) in Int(random.uniform(below: below)) }
    let span = 8 + number(8)
    let limit = Limit.test(
      "v", on: .verify, per: .phone, max: 1 + number(3), window: .seconds(1 + number(8)),
      lock: (0..<number(4)).map { _ in .seconds(1 + number(6)) },
      disables: number(6) == 0)
    var search = StrategySearch(limit, span: span)
    let best = search.best()
    #expect(
      try #require(GuessBound(limit)).most(in: .seconds(span)) == best,
      "max \(limit.max) window \(limit.window as Any) lock \(limit.lock)")
  }
}

/// Tries every number of guesses at every second.
private struct StrategySearch {
  private struct Counter: Hashable {
    var events: [Int] = []
    var lockedUntil: Int?
    var level = 0
    var isDisabled = false
  }

  private struct Place: Hashable {
    let second: Int
    let counter: Counter
  }

  private let limit: ResolvedLimit
  private let windowSeconds: Int
  private let span: Int
  private var known: [Place: Int] = [:]

  init(_ limit: Limit, span: Int) {
    windowSeconds = Int(limit.window?.lowest.components.seconds ?? 1)
    self.limit = ResolvedLimit(
      provider: ProviderName(test: "phone_otp"), name: "v", key: .phone, counter: [], max: limit.max.highest,
      window: limit.window?.lowest,
      counts: .failures, lock: limit.lock.map(\.lowest), disables: limit.disables)
    self.span = span
  }

  mutating func best() -> Int { best(Place(second: 0, counter: Counter())) }

  private mutating func best(_ place: Place) -> Int {
    guard place.second < span, !place.counter.isDisabled else { return 0 }
    if let found = known[place] { return found }
    var counter = place.counter
    counter.events.removeAll { place.second >= $0 + windowSeconds }
    var most = best(Place(second: place.second + 1, counter: counter))
    var guesses = 0
    while guess(&counter, at: place.second) {
      guesses += 1
      most = max(most, guesses + best(Place(second: place.second + 1, counter: counter)))
    }
    known[place] = most
    return most
  }

  /// One wrong guess, evaluated by the rules of limits.
  private func guess(_ counter: inout Counter, at second: Int) -> Bool {
    let now = Timestamp(milliseconds: Int64(second) * 1000)
    guard case .open = state(counter).judge(limit, at: now) else { return false }
    counter.events.append(second)
    switch state(counter).afterFailure(limit, at: now) {
    case .lock(let lock):
      counter.events = []
      counter.lockedUntil = Int(lock.until.seconds)
      counter.level = lock.level
    case .disable: counter.isDisabled = true
    default: break
    }
    return true
  }

  private func state(_ counter: Counter) -> CounterState {
    CounterState(
      settled: counter.events.count, oldest: counter.events.first.map { Timestamp(milliseconds: Int64($0) * 1000) },
      lockedUntil: counter.lockedUntil.map { Timestamp(milliseconds: Int64($0) * 1000) }, lockLevel: counter.level,
      isDisabled: counter.isDisabled)
  }
}
