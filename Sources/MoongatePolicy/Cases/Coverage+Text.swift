import MoongateCore

extension Coverage {
  /// The coverage as text, 80 columns wide.
  /// - Parameter colour: whether to use terminal colours.
  package func text(colour: Bool) -> String {
    let style = TerminalStyle(isOn: colour)
    var lines: [String] = []
    let sides = branches.map(\.sides)
    let whole = limits.count * 2 + functions.count + sides.map(\.all).reduce(0, +)
    let touched =
      limits.count { $0.charged } + limits.count { $0.refused } + functions.count { $0.calls > 0 }
      + sides.map(\.taken).reduce(0, +)
    lines.append("coverage  \(Bar.text(touched, of: whole, isFullWhenEmpty: true))  \(touched) of \(whole)")
    if !limits.isEmpty {
      lines.append("")
      let name = max(5, limits.map { $0.provider.count + $0.limit.count + 1 }.max() ?? 0)
      lines.append(style.dim("  \(Columns.pad("limit", to: name))  charged  refused"))
      for limit in limits {
        let row =
          "  \(Columns.pad("\(limit.provider).\(limit.limit)", to: name))  \(Self.mark(limit.charged, 7, style))  "
        lines.append(
          row
            + (limit.charged && limit.refused
              ? style.green("yes") : Self.mark(limit.refused, 7, style) + "  \(limit.file):\(limit.line)"))
      }
    }
    if !functions.isEmpty {
      lines.append("")
      let name = min(44, max(8, functions.map(\.function.count).max() ?? 0))
      lines.append(style.dim("  \(Columns.pad("function", to: name))    calls  answered"))
      for function in functions {
        let calls = String(function.calls)
        let answers =
          function.calls == 0
          ? style.red("never: \(function.file):\(function.line)") : function.answers.joined(separator: ", ")
        lines.append(
          "  \(Columns.pad(Columns.cut(function.function, to: name), to: name))  \(String(repeating: " ", count: max(0, 7 - calls.count)))\(calls)  \(answers)"
        )
      }
    }
    lines += branchLines(style)
    return lines.joined(separator: "\n")
  }

  /// The branches with a side that was not taken.
  private func branchLines(_ style: TerminalStyle) -> [String] {
    guard !branches.isEmpty else { return [] }
    let missed = branches.filter { $0.sides.taken < $0.sides.all }
    guard !missed.isEmpty else { return ["", "  All \(branches.count) branches were taken both ways."] }
    let places = missed.map { "\($0.file):\($0.line)" }
    let place = places.map(\.count).max() ?? 0
    let code = max(12, min(missed.map(\.code.count).max() ?? 0, 54 - place))
    var lines = ["", style.dim("  \(Columns.pad("branch", to: place + 2 + code))  true     not true")]
    for (branch, text) in zip(missed, places) {
      let row = "  \(Columns.pad(text, to: place))  \(Columns.pad(Columns.cut(branch.code, to: code), to: code))  "
      let other = branch.notTaken.map { "  " + Self.mark($0, 5, style) } ?? ""
      lines.append((row + Self.mark(branch.taken, 7, style) + other).trimmedAtEnd)
    }
    return lines
  }

  private static func mark(_ isTouched: Bool, _ width: Int, _ style: TerminalStyle) -> String {
    isTouched ? style.green(Columns.pad("yes", to: width)) : style.red(Columns.pad("never", to: width))
  }
}
