import MoongateCore

extension CaseReport {
  /// For a person, in lines of at most 80 columns where words allow it.
  /// - Parameter colour: whether the reader is a terminal that shows it.
  package func text(colour: Bool) -> String {
    let paint = TerminalStyle(isOn: colour)
    var lines: [String] = []
    for outcome in outcomes {
      lines.append(outcome.holds ? "\(paint.green("✓")) \(outcome.name)" : "\(paint.red("✗")) \(paint.bold(outcome.name))")
      if let failure = outcome.failure { lines += Self.lines(of: outcome, failure, paint) }
    }
    if let unreached { lines.append("\(paint.red("✗")) \(unreached.name): not reached in time") }
    if !lines.isEmpty { lines.append("") }
    let count = outcomes.count
    let failed = failures.count + (unreached == nil ? 0 : 1)
    if count == 0, unreached == nil {
      lines.append("No cases: there is nothing in tests/.")
    } else if failed == 0 {
      lines.append(count == 1 ? "The one case holds." : "All \(count) cases hold.")
    } else {
      lines.append("\(failed) of \(count + (unreached == nil ? 0 : 1)) cases \(failed == 1 ? "fails" : "fail").")
    }
    return lines.joined(separator: "\n")
  }

  private static func lines(of outcome: CaseOutcome, _ failure: CaseOutcome.Failure, _ paint: TerminalStyle) -> [String] {
    let times = outcome.trace.map { $0.at == .zero ? "0s" : "+\($0.at.asWritten)" }
    let time = times.map(\.count).max() ?? 2
    let act = min(34, outcome.trace.dropLast().map(\.act.count).max() ?? 0)
    var lines = [paint.dim("  \(outcome.location)")]
    for (index, line) in outcome.trace.enumerated() {
      let isLast = index == outcome.trace.count - 1
      let lead = "    " + Columns.pad(times[index], to: time) + "  "
      if isLast {
        lines.append(lead + paint.bold(Columns.cut(line.act, to: Columns.width - lead.count)))
      } else {
        let word = Columns.pad(Columns.cut(line.act, to: act), to: act)
        let indent = lead.count + act + 2
        let told = Columns.wrapped(line.outcome, indent: indent, width: Columns.width)
        lines.append((lead + word + "  " + told[0].dropFirst(indent)).trimmedAtEnd)
        lines += told.dropFirst()
      }
    }
    lines.append("")
    lines.append("    " + paint.red("\(failure.location)"))
    if let sentence = failure.sentence { lines += Columns.wrapped(sentence, indent: 6, width: Columns.width) }
    let field = failure.differences.map(\.field.count).max() ?? 0
    let expected = failure.differences.map { $0.expected.count }.max() ?? 0
    for difference in failure.differences {
      lines.append(
        "      \(Columns.pad(difference.field, to: field))  expected \(paint.green(Columns.pad(difference.expected, to: expected)))  was \(paint.red(difference.actual))"
      )
    }
    lines.append("")
    return lines
  }
}
