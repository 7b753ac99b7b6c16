import MoongateCore

/// Problems and warnings for a person: file by file, the problems of a file first, each line with its place.
struct ProblemList {
  let problems: [ConfigurationProblem]
  let warnings: [ConfigurationProblem]

  /// Empty where there are none. An empty line stands between two files.
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
