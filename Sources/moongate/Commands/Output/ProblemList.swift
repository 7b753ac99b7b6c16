import MoongateCore

/// Problems and warnings as text, grouped by file, problems before warnings. Each line begins with its place.
struct ProblemList {
  let problems: [ConfigurationProblem]
  let warnings: [ConfigurationProblem]

  /// The text, with an empty line between files; empty if there are no problems and no warnings.
  var text: String {
    var order: [String] = []
    for one in problems + warnings where !order.contains(one.location.file) { order.append(one.location.file) }
    return order.map { file in
      let lines =
        problems.filter { $0.location.file == file }.map(\.description)
        + warnings.filter { $0.location.file == file }.map { "warning: \($0)" }
      return lines.joined(separator: "\n")
    }.joined(separator: "\n\n")
  }
}
