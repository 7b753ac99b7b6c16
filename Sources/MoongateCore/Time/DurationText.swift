extension Duration {
  /// As files write it: `90s` as `1m30s`, a whole day as `24h`; `0s` for nothing.
  package var asWritten: String {
    var left = wholeMilliseconds
    guard left > 0 else { return "0s" }
    var text = ""
    for (unit, length) in [("d", Int64(86_400_000)), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
      // Whole days only from two on: people say 24h.
      if unit == "d", left < 2 * length { continue }
      if left >= length { text += "\(left / length)\(unit)" }
      left %= length
    }
    return text
  }
}
