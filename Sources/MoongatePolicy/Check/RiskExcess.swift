import Foundation
import MoongateCore
import MoongateSDK

/// Reports policies that allow guesses with a higher probability of success than `risk_budget` accepts, and what would
/// be enough to allow fewer.
package struct RiskExcess: Sendable {
  private let accepted: Double
  private let probability: Double
  private let budgets: [GuessBudget]
  private let alone: Set<ProviderName>
  private let policies: [ProviderName: ProviderPolicy]

  /// The locks that are suggested after those of a limit.
  private static let locks: [Duration] = [1, 6, 12, 24, 48, 168].map { .seconds($0 * 3600) }
  private static let month: Duration = .seconds(30 * 86_400)

  /// - Parameters:
  /// - accepted: `risk_budget`.
  /// - probability: the probability for 30 days, over all providers that open an account alone.
  /// - alone: those providers.
  package init(
    accepted: Double, probability: Double, budgets: [GuessBudget], alone: Set<ProviderName>,
    policies: [ProviderName: ProviderPolicy]
  ) {
    self.accepted = accepted
    self.probability = probability
    self.budgets = budgets
    self.alone = alone
    self.policies = policies
  }

  /// The message: the probability, the limit that contributes most, and the changes that are enough.
  package var sentence: String {
    let counted = budgets.filter { alone.contains($0.provider) && $0.probability30Days != nil }
    let most = counted.max { ($0.probability30Days ?? 0) < ($1.probability30Days ?? 0) }
    let chance =
      "guessing opens an account with a probability of \(GuessBudget.percent(probability)) per 30 days, above \(GuessBudget.percent(accepted))"
    guard let most else { return chance }
    return "\(chance). \(Self.granted(most)), the most of all. \(advice(most, among: counted))"
  }

  private static func granted(_ budget: GuessBudget) -> String {
    "\(budget.provider) allows \(budget.per30Days.map(String.init) ?? "unbounded") guesses per 30 days"
      + (budget.limit.map { " by limits.\($0.name) (\($0.location))" }
        ?? ", since no verify limit counts per identifier or account")
  }

  /// Changes each of which is enough, or else one change for each of several providers, which are enough together.
  private func advice(_ most: GuessBudget, among counted: [GuessBudget]) -> String {
    let others = counted.filter { $0.provider != most.provider }.compactMap(\.probability30Days).reduce(0, +)
    let single = changes(of: most, below: accepted - others)
    if !single.isEmpty {
      let changes = single + [raised].compactMap(\.self)
      return "\(changes.count == 1 ? "This" : "One of these") is enough: \(changes.joined(separator: "; "))"
    }
    let share = accepted / Double(counted.count)
    let above = counted.filter { ($0.probability30Days ?? 0) > share }
    let together = above.compactMap { changes(of: $0, below: share).first }
    let raise = raised.map { ". Or accept the probability: \($0)" } ?? ""
    if together.count == above.count {
      return "No single change is enough. These together are: \(together.joined(separator: "; "))\(raise)"
    }
    return "Add verify limits with per = \"identifier\" that lock for longer, or make codes longer\(raise)"
  }

  /// `risk_budget` that accepts the probability, rounded up to two digits; nil if no such value can be written.
  private var raised: String? {
    let percent = probability * 100
    guard percent > 0, percent < 50 else { return nil }
    let unit = pow(10, floor(log10(percent)) - 1)
    return "risk_budget = \"\(String(format: "%.2g", (percent / unit).rounded(.up) * unit))% per 30d\" in gateway.lua"
  }

  /// The changes to the provider's policy, each of which brings its probability to `most` or below.
  private func changes(of budget: GuessBudget, below most: Double) -> [String] {
    guard let policy = policies[budget.provider], most > 0 else { return [] }
    let file = "in policies/\(budget.provider).lua"
    var changes: [String] = []
    if let limit = budget.limit.flatMap({ bound in policy.limits.first { $0.name == bound.name } }) {
      if let max = fitting(limit, below: most, budget) { changes.append("limits.\(limit.name).max = \(max) \(file)") }
      let lock = Self.locks.first { lock in
        guard let last = limit.lock.last?.lowest, lock > last else { return false }
        return allows(limit.with(lock: limit.lock + [.fixed(lock)]), below: most, budget)
      }
      if let lock { changes.append("limits.\(limit.name).lock = \(Self.list(limit, last: lock)) \(file)") }
    }
    if let length = budget.codeLength, let guesses = budget.per30Days {
      let characters = Double(policy.code.alphabet.characters.count)
      let fitting = (length + 1..<11).first { Self.chance(guesses, of: pow(characters, Double($0))) <= most }
      if let fitting { changes.append("code.length = \(fitting) \(file)") }
    }
    return changes
  }

  /// The locks of the limit with one more, as they are written.
  private static func list(_ limit: Limit, last: Duration) -> String {
    let texts = (limit.lock.map(\.lowest) + [last]).map { "\"\($0.asWritten)\"" }
    return "{ \(texts.joined(separator: ", ")) }"
  }

  private static func chance(_ guesses: Int, of space: Double) -> Double { -expm1(Double(guesses) * log1p(-1 / space)) }

  /// The largest `max` of the limit with which the provider stays below the probability; nil if none does.
  private func fitting(_ limit: Limit, below most: Double, _ budget: GuessBudget) -> Int? {
    var (low, high) = (0, limit.max.highest - 1)
    while low < high {
      let middle = (low + high + 1) / 2
      if allows(limit.with(max: middle), below: most, budget) { low = middle } else { high = middle - 1 }
    }
    return low > 0 ? low : nil
  }

  /// Whether the provider stays below the probability with this limit.
  private func allows(_ limit: Limit, below most: Double, _ budget: GuessBudget) -> Bool {
    guard let guesses = budget.per30Days, let chance = budget.probability30Days, guesses > 0, chance > 0 else {
      return false
    }
    // Each guess has the same chance: 1 - (1 - chance) ^ (1 / guesses).
    let single = chance < 1 ? -expm1(log1p(-chance) / Double(guesses)) : 1
    let granted = GuessBound(limit)?.most(in: Self.month) ?? .max
    return single < 1 && -expm1(Double(granted) * log1p(-single)) <= most
  }
}

extension Limit {
  /// The same limit with another `max`.
  fileprivate func with(max: Int) -> Limit {
    Limit(
      name: name, action: action, key: key, max: .fixed(max), window: window, counts: counts, lock: lock,
      disables: disables, location: location)
  }

  /// The same limit with other locks.
  fileprivate func with(lock: [Varying<Duration>]) -> Limit {
    Limit(
      name: name, action: action, key: key, max: max, window: window, counts: counts, lock: lock,
      disables: disables, location: location)
  }
}
