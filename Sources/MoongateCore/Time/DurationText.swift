extension Duration {
  /// The duration in configuration syntax: `1m30s`, `24h` (not `1d`); `0s` for zero.
  package var asWritten: String {
    var left = wholeMilliseconds
    guard left > 0 else { return "0s" }
    var text = ""
    for (unit, length) in [("d", Int64(86_400_000)), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
      // Days are only used from two on, because people write 24h.
      if unit == "d", left < 2 * length { continue }
      if left >= length { text += "\(left / length)\(unit)" }
      left %= length
    }
    return text
  }
}

extension Duration {
  /// Parses a duration in the syntax of configuration files and commands: `90s`, `1h30m`, `90d`, `0s`.
  /// - Returns: nil if the text is not a duration, or one of more than a hundred years.
  package init?(asWritten text: String) {
    let units: [(name: String, milliseconds: Int64)] = [
      ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1),
    ]
    guard text.utf8.count <= 32, let match = text.wholeMatch(of: /([0-9]{1,9}(?:ms|[dhms]))+/) else { return nil }
    var total: Int64 = 0
    var last = Int64.max
    for part in match.output.0.matches(of: /([0-9]{1,9})(ms|[dhms])/) {
      guard let count = Int64(part.output.1), let unit = units.first(where: { $0.name == part.output.2 }),
        unit.milliseconds < last
      else {
        return nil
      }
      last = unit.milliseconds
      total += count * unit.milliseconds
    }
    guard total <= 36_500 * 86_400_000 else { return nil }
    self = .milliseconds(total)
  }
}
