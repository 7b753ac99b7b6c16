import MoongateCore

extension CaseReport {
  /// The report as text, at most 80 columns wide if possible: the failing cases, and the number of passing ones.
  /// - Parameters:
  /// - colour: whether to use terminal colours.
  /// - isVerbose: whether to list every case with its file, and all acts of cases that fail for the same reason.
  package func text(colour: Bool, isVerbose: Bool = false) -> String {
    let style = TerminalStyle(isOn: colour)
    var lines: [String] = []
    let causes = causes
    if !isVerbose { for (cause, failures) in causes { lines += Self.lines(of: failures, because: cause, style) } }
    var file = ""
    for outcome in outcomes where isVerbose || !outcome.holds && outcome.failure?.cause == nil {
      if isVerbose, outcome.location.file != file {
        file = outcome.location.file
        lines += (lines.isEmpty || lines.last == "" ? [] : [""]) + [style.bold(file)]
      }
      lines.append(
        outcome.holds ? "\(style.green("✓")) \(outcome.name)" : "\(style.red("✗")) \(style.bold(outcome.name))")
      if let failure = outcome.failure { lines += Self.lines(of: outcome, failure, style) }
    }
    if let unreached { lines.append("\(style.red("✗")) \(unreached.name): not reached in time") }
    for warning in warnings { lines += Columns.wrapped("warning: \(warning)", indent: 0, width: Columns.width) }
    if !lines.isEmpty, lines.last != "" { lines.append("") }
    let count = outcomes.count
    let failed = failures.count + (unreached == nil ? 0 : 1)
    if count == 0, unreached == nil {
      lines.append("No cases: tests/ is empty.")
    } else if failed == 0 {
      lines.append(count == 1 ? "The only case passes." : "All \(count) cases pass.")
    } else {
      lines.append("\(failed) of \(count + (unreached == nil ? 0 : 1)) cases \(failed == 1 ? "fails" : "fail").")
    }
    return lines.joined(separator: "\n")
  }

  /// Cases that fail because of the same function, with the function's failure first.
  private static func lines(of failures: [CaseOutcome], because cause: String, _ style: TerminalStyle) -> [String] {
    let head = Columns.wrapped(cause, indent: 2, width: Columns.width)
    let count = failures.count == 1 ? "1 case fails because of it:" : "\(failures.count) cases fail because of it:"
    let place = failures.map { "\($0.location)".count }.max() ?? 0
    return ["\(style.red("✗")) \(style.bold(String(head[0].dropFirst(2))))"] + head.dropFirst().map(style.bold) + [
      "  \(count)"
    ]
      + failures.map { "    \(Columns.pad("\($0.location)", to: place))  \($0.name)" } + [""]
  }

  private static func lines(of outcome: CaseOutcome, _ failure: CaseOutcome.Failure, _ style: TerminalStyle) -> [String]
  {
    let times = outcome.trace.map { $0.at == .zero ? "0s" : "+\($0.at.asWritten)" }
    let time = times.map(\.count).max() ?? 2
    let act = min(34, outcome.trace.dropLast().map(\.act.count).max() ?? 0)
    var lines = [style.dim("  \(outcome.location)")]
    for (index, line) in outcome.trace.enumerated() {
      let isLast = index == outcome.trace.count - 1
      let lead = "    " + Columns.pad(times[index], to: time) + "  "
      if isLast {
        lines.append(lead + style.bold(Columns.cut(line.act, to: Columns.width - lead.count)))
      } else {
        let word = Columns.pad(Columns.cut(line.act, to: act), to: act)
        let indent = lead.count + act + 2
        let told = Columns.wrapped(line.outcome, indent: indent, width: Columns.width)
        lines.append((lead + word + "  " + told[0].dropFirst(indent)).trimmedAtEnd)
        lines += told.dropFirst()
      }
    }
    lines.append("")
    lines.append("    " + style.red("\(failure.location)"))
    if let cause = failure.cause { lines += Columns.wrapped(cause, indent: 6, width: Columns.width) }
    if let sentence = failure.sentence { lines += Columns.wrapped(sentence, indent: 6, width: Columns.width) }
    let field = failure.differences.map(\.field.count).max() ?? 0
    let expected = failure.differences.map { $0.expected.count }.max() ?? 0
    for difference in failure.differences {
      lines.append(
        "      \(Columns.pad(difference.field, to: field))  expected \(style.green(Columns.pad(difference.expected, to: expected)))  was \(style.red(difference.actual))"
      )
    }
    lines.append("")
    return lines
  }
}
