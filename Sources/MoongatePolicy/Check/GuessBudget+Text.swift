import Foundation
import MoongateCore
import MoongateSDK

extension GuessBudget {
  /// A table for terminals, 80 columns wide: the guesses that each provider allows, and their share of the accepted
  /// risk.
  /// - Parameters:
  /// - accepted: `risk_budget`, if it is set.
  /// - alone: the providers that open an account alone. Their probabilities add up.
  /// - colour: whether to use terminal colours.
  package static func table(_ budgets: [GuessBudget], accepted: Double?, alone: Set<ProviderName>, colour: Bool)
    -> String
  {
    guard !budgets.isEmpty else { return "" }
    let style = TerminalStyle(isOn: colour)
    let name = max(12, budgets.map { $0.provider.rawValue.count }.max() ?? 0)
    var lines = [style.dim("\(Columns.pad("guess budget", to: name))       a day   in 30 days   chance in 30 days")]
    for budget in budgets {
      let row =
        Columns.pad(budget.provider.rawValue, to: name)
        + Columns.right(budget.perDay.map(String.init) ?? "no end", to: 12)
        + Columns.right(budget.per30Days.map(String.init) ?? "no end", to: 13)
        + Columns.right(budget.probability30Days.map(percent) ?? "unknown", to: 20)
      lines.append(row + (alone.contains(budget.provider) ? "" : "  not alone"))
    }
    for budget in budgets {
      guard let share = budget.commonShare30Days else { continue }
      lines.append(
        style.dim(
          "\(budget.provider): if chosen uniformly; guesses cover \(percent(share)) of the \(grouped(common)) most common"
        ))
    }
    if let accepted {
      let sum = budgets.filter { alone.contains($0.provider) }.compactMap(\.probability30Days).reduce(0, +)
      let bar = Bar.text(sum / accepted)
      lines.append(
        "\(sum > accepted ? style.red(bar) : style.green(bar))  \(percent(sum)), accepted: \(percent(accepted))"
      )
    }
    return lines.joined(separator: "\n")
  }

  /// A percentage such as `0.0447 %`.
  package static func percent(_ probability: Double) -> String {
    if probability >= 1 { return "100 %" }
    return "\(String(format: "%.3g", probability * 100)) %"
  }

  private static func grouped(_ number: Int) -> String { "\(number / 1000),\(String(format: "%03d", number % 1000))" }
}
