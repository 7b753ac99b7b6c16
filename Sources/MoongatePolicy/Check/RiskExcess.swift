import MoongateCore
import MoongateSDK

/// Reports policies that allow guesses with a higher probability of success than `risk_budget` accepts.
package struct RiskExcess: Sendable {
  private let accepted: Double
  private let probability: Double
  private let budgets: [GuessBudget]
  private let alone: Set<ProviderName>
  private let policies: [ProviderName: ProviderPolicy]

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

  /// The message: the probability, the limit that contributes most, and advice.
  package var sentence: String {
    let counted = budgets.filter { alone.contains($0.provider) && $0.probability30Days != nil }
    let most = counted.max { ($0.probability30Days ?? 0) < ($1.probability30Days ?? 0) }
    let chance =
      "guessing opens an account with a probability of \(GuessBudget.percent(probability)) per 30 days, above \(GuessBudget.percent(accepted))"
    guard let most else { return chance }
    // Providers that contribute almost nothing are not listed.
    let others = counted.filter { $0.provider != most.provider && ($0.probability30Days ?? 0) > probability / 100 }.map(
      Self.granted
    ).joined(
      separator: ", ")
    let advice = advice(
      most, others: counted.filter { $0.provider != most.provider }.compactMap(\.probability30Days).reduce(0, +))
    return "\(chance). \(Self.granted(most)), the most of all\(others.isEmpty ? "" : "; \(others)"). \(advice)"
  }

  private static func granted(_ budget: GuessBudget) -> String {
    "\(budget.provider) allows \(budget.per30Days.map(String.init) ?? "unbounded") guesses per 30 days"
      + (budget.limit.map { " by limits.\($0.name) (\($0.location))" }
        ?? ", since no verify limit counts per identifier or account")
  }

  private func advice(_ budget: GuessBudget, others: Double) -> String {
    guard let limit = budget.limit, let policy = policies[budget.provider] else {
      return
        "Add a verify limit with per = \"identifier\" to policies/\(budget.provider).lua, make codes longer, or raise risk_budget"
    }
    let fitting = fitting(policy, limit.name, below: accepted - others, budget)
    let ways =
      fitting.map { "Lower its `max` (\($0) is low enough) or lengthen its `lock`" }
      ?? "Lengthen its `lock` and lower its `max`"
    return "\(ways), make codes longer, or raise risk_budget"
  }

  /// The largest `max` of the limit with which the provider stays below the probability; nil if none does.
  private func fitting(_ policy: ProviderPolicy, _ name: String, below most: Double, _ budget: GuessBudget) -> Int? {
    guard let limit = policy.limits.first(where: { $0.name == name }), let guesses = budget.per30Days,
      let chance = budget.probability30Days,
      guesses > 0, chance < 1, most > 0
    else { return nil }
    // Small probabilities add up, so each guess contributes the same amount.
    let allowed = Int(Double(guesses) * most / chance)
    var (low, high) = (0, limit.max.highest)
    while low < high {
      let middle = (low + high + 1) / 2
      let granted = GuessBound(limit.with(max: middle))?.most(in: .seconds(30 * 86_400)) ?? .max
      if granted <= allowed { low = middle } else { high = middle - 1 }
    }
    return low > 0 ? low : nil
  }
}

extension Limit {
  /// The same limit with another `max`.
  fileprivate func with(max: Int) -> Limit {
    Limit(
      name: name, action: action, key: key, max: .fixed(max), window: window, counts: counts, lock: lock,
      disables: disables, location: location)
  }
}
