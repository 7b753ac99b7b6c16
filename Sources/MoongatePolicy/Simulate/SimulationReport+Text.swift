import Foundation
import MoongateCore

extension SimulationReport {
  /// For a person, 80 columns at most.
  package var text: String {
    var lines = ["\(attacker) against \(provider), \(Self.length(seconds)), \(addresses) address\(addresses == 1 ? "" : "es")", ""]
    let row = { (name: String, value: String, rest: String) in
      "  " + name.padding(toLength: 18, withPad: " ", startingAt: 0) + String(repeating: " ", count: max(0, 12 - value.count)) + value
        + (rest.isEmpty ? "" : "  " + rest)
    }
    if attacker != "flood" {
      lines.append(row("guesses", String(guesses), bound.map { "\(Self.bar(guesses, of: $0)) of \($0) that check allows for" } ?? ""))
      lines.append(row("chance of entry", String(format: "%.4f%%", probability * 100), ""))
    }
    lines.append(row("messages sent", String(messages), attacker == "flood" ? "each one is money" : ""))
    lines.append(row("owner's sign-ins", String(ownerSignIns), "\(ownerRefused) of them refused"))
    lines.append(row("owner locked out", Self.length(ownerLockedOutSeconds), Self.share(ownerLockedOutSeconds, of: seconds)))
    if !isComplete {
      lines += ["", "  Real time ran out: \(Self.length(seconds)) of \(Self.length(askedSeconds)) were played."]
    }
    return lines.joined(separator: "\n")
  }

  private static func bar(_ part: Int, of whole: Int) -> String {
    let filled = whole > 0 ? min(20, part * 20 / whole) : 0
    return String(repeating: "█", count: filled) + String(repeating: "░", count: 20 - filled)
  }

  private static func share(_ part: Int64, of whole: Int64) -> String { whole > 0 ? "\(part * 100 / whole)% of the time" : "" }

  /// The two largest units: `29d 4h`, `15m`, `0s`.
  private static func length(_ seconds: Int64) -> String {
    var left = seconds
    var parts: [String] = []
    for (unit, size) in [("d", Int64(86_400)), ("h", 3_600), ("m", 60), ("s", 1)] where left >= size {
      parts.append("\(left / size)\(unit)")
      left %= size
    }
    return parts.isEmpty ? "0s" : parts.prefix(2).joined(separator: " ")
  }
}
