import MoongateCore
import MoongateSDK

/// Policies that grant a better chance of guessing than the operator accepts, with the limit that grants most.
package struct RiskExcess: Sendable {
  private let accepted: Double
  private let probability: Double
  private let budgets: [GuessBudget]
  private let alone: Set<ProviderName>
  private let policies: [ProviderName: ProviderPolicy]

  /// - Parameters:
  ///   - accepted: `risk_budget`.
  ///   - probability: what all providers that open an account alone grant together in 30 days.
  ///   - alone: those providers.
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

  /// What is granted, by which limit most, and what to do.
  package var sentence: String {
    let counted = budgets.filter { alone.contains($0.provider) && $0.probability30Days != nil }
    let most = counted.max { ($0.probability30Days ?? 0) < ($1.probability30Days ?? 0) }
    let chance =
      "someone who only guesses gets in with a chance of \(GuessBudget.percent(probability)) per 30 days, above \(GuessBudget.percent(accepted))"
    guard let most else { return chance }
    // What adds next to nothing is no reason.
    let others = counted.filter { $0.provider != most.provider && ($0.probability30Days ?? 0) > probability / 100 }.map(
      Self.granted
    ).joined(
      separator: ", ")
    let advice = advice(
      most, others: counted.filter { $0.provider != most.provider }.compactMap(\.probability30Days).reduce(0, +))
    return "\(chance). \(Self.granted(most)), the most of all\(others.isEmpty ? "" : "; \(others)"). \(advice)"
  }

  private static func granted(_ budget: GuessBudget) -> String {
    "\(budget.provider) grants \(budget.per30Days.map(String.init) ?? "unbounded") guesses per 30 days"
      + (budget.limit.map { " by limits.\($0.name) (\($0.location))" }
        ?? ", since no verify limit counts per identifier or account")
  }

  private func advice(_ budget: GuessBudget, others: Double) -> String {
    guard let limit = budget.limit, let policy = policies[budget.provider] else {
      return
        "Add a verify limit with per = \"identifier\" to policies/\(budget.provider).lua, make codes longer, or accept more"
    }
    let fitting = fitting(policy, limit.name, below: accepted - others, budget)
    let ways =
      fitting.map { "Lower its `max` (\($0) is low enough) or lengthen its `lock`" }
      ?? "Lengthen its `lock` and lower its `max`"
    return "\(ways), make codes longer, or accept more"
  }

  /// The largest `max` of the limit by which the provider stays below a probability; nil where none does.
  private func fitting(_ policy: ProviderPolicy, _ name: String, below most: Double, _ budget: GuessBudget) -> Int? {
    guard let limit = policy.limits.first(where: { $0.name == name }), let guesses = budget.per30Days,
      let chance = budget.probability30Days,
      guesses > 0, chance < 1, most > 0
    else { return nil }
    // Small chances add up: each guess is worth as much as another.
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
  /// The same limit with another number.
  fileprivate func with(max: Int) -> Limit {
    Limit(
      name: name, action: action, key: key, max: .fixed(max), window: window, counts: counts, lock: lock,
      disables: disables, location: location)
  }
}
