import MoongateCore

extension Coverage {
  /// For a person, 80 columns.
  /// - Parameter colour: whether the reader is a terminal that shows it.
  package func text(colour: Bool) -> String {
    let paint = Paint(isOn: colour)
    var lines: [String] = []
    let whole = limits.count * 2 + functions.count
    let touched = limits.count { $0.charged } + limits.count { $0.refused } + functions.count { $0.calls > 0 }
    lines.append("coverage  \(Self.bar(touched, of: whole))  \(touched) of \(whole)")
    if !limits.isEmpty {
      lines.append("")
      let name = max(5, limits.map { $0.provider.count + $0.limit.count + 1 }.max() ?? 0)
      lines.append(paint.dim("  \(CaseReport.pad("limit", to: name))  charged  refused"))
      for limit in limits {
        let row = "  \(CaseReport.pad("\(limit.provider).\(limit.limit)", to: name))  \(Self.mark(limit.charged, 7, paint))  "
        lines.append(
          row + (limit.charged && limit.refused ? paint.green("yes") : Self.mark(limit.refused, 7, paint) + "  \(limit.file):\(limit.line)"))
      }
    }
    if !functions.isEmpty {
      lines.append("")
      let name = min(44, max(8, functions.map(\.function.count).max() ?? 0))
      lines.append(paint.dim("  \(CaseReport.pad("function", to: name))    calls  answered"))
      for function in functions {
        let calls = String(function.calls)
        let answers = function.calls == 0 ? paint.red("never: \(function.file):\(function.line)") : function.answers.joined(separator: ", ")
        lines.append(
          "  \(CaseReport.pad(CaseReport.cut(function.function, to: name), to: name))  \(String(repeating: " ", count: max(0, 7 - calls.count)))\(calls)  \(answers)"
        )
      }
    }
    return lines.joined(separator: "\n")
  }

  private static func mark(_ isTouched: Bool, _ width: Int, _ paint: Paint) -> String {
    isTouched ? paint.green(CaseReport.pad("yes", to: width)) : paint.red(CaseReport.pad("never", to: width))
  }

  private static func bar(_ part: Int, of whole: Int) -> String {
    let filled = whole > 0 ? part * 20 / whole : 20
    return String(repeating: "█", count: filled) + String(repeating: "░", count: 20 - filled)
  }
}
