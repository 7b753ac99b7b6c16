import MoongateCore

extension PolicyDiff {
  /// The differences as text, 80 columns wide: settings, access, and decisions by root cause.
  /// - Parameter colour: whether to use terminal colours.
  package func text(colour: Bool) -> String {
    let style = TerminalStyle(isOn: colour)
    let before = [settings.text(colour: colour), AccessDiff(access: access, groups: groups).text(colour: colour)]
      .compactMap(\.self)
    return (before + [decisionsText(style)]).joined(separator: "\n\n")
  }

  private func decisionsText(_ style: TerminalStyle) -> String {
    let total = flips.map(\.count).reduce(0, +)
    let what = "\(decisions) decisions about \(people) \(people == 1 ? "person" : "people")"
    guard total > 0 else { return "\(what): \(style.green("none differs"))." }
    let share = Double(total) / Double(decisions)
    let reasons = causes.count == 1 ? "for one cause" : "for \(causes.count) causes"
    var lines = [
      "\(what): \(style.bold("\(total) differ")), \(reasons).", Bar.text(share) + "  \(GuessBudget.percent(share))", "",
    ]
    let change = causes.map { $0.old.count + $0.new.count + 3 }.max() ?? 0
    lines.append(style.dim("  \(Columns.right("count", to: 7))  act    \(Columns.pad("was → is", to: change))  by"))
    for cause in causes {
      let lead = "  \(Columns.right(String(cause.count), to: 7))  \(Columns.pad(cause.act, to: 5))  "
      let pair =
        "\(style.answer(cause.old)) → \(style.answer(cause.new))"
        + String(repeating: " ", count: change - cause.old.count - cause.new.count - 3)
      let rule = cause.rule ?? ""
      if lead.count + change + 2 + rule.count <= Columns.width {
        lines.append((lead + pair + "  " + rule).trimmedAtEnd)
      } else {
        lines += [(lead + pair).trimmedAtEnd, String(repeating: " ", count: lead.count) + rule]
      }
      let followUps = cause.followUps.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { "\($0.value) \($0.key)" }
      if !followUps.isEmpty {
        let people = cause.people == 1 ? "one person" : "\(cause.people) people"
        lines.append(
          style.dim(
            "  \(Columns.right("+ \(cause.size - cause.count)", to: 7))  that follow, of \(people): \(followUps.joined(separator: ", "))"
          ))
      }
    }
    return lines.joined(separator: "\n")
  }
}

extension TerminalStyle {
  /// The answer in green for success, in red for a refusal.
  fileprivate func answer(_ answer: String) -> String { answer == "ok" ? green(answer) : red(answer) }
}
