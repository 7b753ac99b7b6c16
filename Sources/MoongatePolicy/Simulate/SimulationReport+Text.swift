import Foundation
import MoongateCore

extension SimulationReport {
  /// The report as text, 80 columns wide.
  /// - Parameter colour: whether to use terminal colours.
  package func text(colour: Bool) -> String {
    let style = TerminalStyle(isOn: colour)
    var lines = [style.bold("\(attacker) against \(provider), \(Self.length(seconds)), \(origin)"), ""]
    func row(_ name: String, _ value: String, _ rest: String) {
      lines.append(("  " + Columns.pad(name, to: 17) + Columns.right(value, to: 10) + "  " + rest).trimmedAtEnd)
    }
    if let registrations { row("registrations", String(registrations), "each one is an account") }
    if let hashes { row("hashes computed", String(hashes), hashes > 0 ? "each one is processor time" : "") }
    if attacker != "flood", attacker != "register" {
      row("guesses", String(guesses), bound.map { "\(Bar.text(guesses, of: $0)) of \($0) that check allows" } ?? "")
      let chance = probability.flatMap { probability in accepted.map { (probability, $0) } }.map {
        probability, accepted in
        let bar = Bar.text(probability / accepted)
        return "\(isTooLikely ? style.red(bar) : style.green(bar)) accepted: \(GuessBudget.percent(accepted))"
      }
      row("chance of entry", probability.map(GuessBudget.percent) ?? "unknown", chance ?? "")
    }
    let money = cost.map { "\(Self.money($0)) at \(Self.price(price)) each" }
    row("messages sent", String(messages), money ?? (attacker != "guess" && messages > 0 ? "each one is money" : ""))
    row("owner's sign-ins", String(ownerSignIns), Self.refused(ownerRefused, style))
    row("owner locked out", Self.length(ownerLockedOutSeconds), Self.share(ownerLockedOutSeconds, of: seconds))
    let isNewOnly = otherRefused > 0 && otherRefusedOnNewDevices == otherRefused
    row(
      "others' sign-ins", String(otherSignIns),
      Self.refused(otherRefused, style) + (isNewOnly ? ", all on new devices" : ""))
    if let otherRegistrations {
      row("newcomers", String(otherRegistrations), Self.refused(otherRegistrationsRefused ?? 0, style))
    }
    if let ended {
      let sentence = "The attacker gave up after \(Self.length(ended.seconds)): \(ended.sentence)."
      lines += [""] + Columns.wrapped(sentence, indent: 2, width: Columns.width).map(style.yellow)
    }
    if !isComplete {
      let pace = [
        ("registrations", registrationsAtThisPace ?? 0), ("guesses", atThisPace?.guesses ?? 0),
        ("messages", atThisPace?.messages ?? 0),
      ].filter { $0.1 > 0 }.map { "\($1) \($0)" }
      let took = timeLimit.map { " (\($0.asWritten))" } ?? ""
      let played =
        "Time limit\(took) reached: \(Self.length(seconds)) of \(Self.length(askedSeconds)) simulated."
      lines += ["", style.yellow("  " + played + (pace.isEmpty ? "" : " Extrapolated:"))]
      if !pace.isEmpty {
        let all =
          price.flatMap { price in atThisPace.map { ", \(Self.money(Double($0.messages) * price)) for messages" } }
          ?? ""
        lines.append("  " + pace.joined(separator: ", ") + all)
      }
    }
    return lines.joined(separator: "\n")
  }

  /// With two decimals, as for amounts of money.
  private static func money(_ amount: Double) -> String { String(format: "%.2f", amount) }

  /// As it was given.
  private static func price(_ price: Double?) -> String { price.map { String(format: "%g", $0) } ?? "" }

  private var origin: String {
    "\(addresses) address\(addresses == 1 ? "" : "es")" + (networks > 1 ? " in \(networks) networks" : "")
  }

  private static func refused(_ count: Int, _ style: TerminalStyle) -> String {
    count == 0 ? style.green("none refused") : style.red("\(count) of them refused")
  }

  private static func share(_ part: Int64, of whole: Int64) -> String {
    whole > 0 ? "\(part * 100 / whole)% of the time" : ""
  }

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
