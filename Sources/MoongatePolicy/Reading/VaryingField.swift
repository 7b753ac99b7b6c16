import MoongateCore

/// Reads numbers and durations that may be `vary(lowest, highest, function)`.
struct VaryingFields {
  /// Called with each function and its name.
  let keep: (FunctionName, LuaFunction) -> Void
  /// The prefix of function names, such as `policies/phone_otp`.
  let prefix: String
  let problems: Problems

  func whole(_ node: LuaNode, _ path: String, in range: ClosedRange<Int>) -> Varying<Int>? {
    read(node, path) { Field.whole($0, $1, problems, in: range) }
  }

  func duration(_ node: LuaNode, _ path: String, atLeast least: Duration = .milliseconds(1)) -> Varying<Duration>? {
    read(node, path) { Field.duration($0, $1, problems, atLeast: least) }
  }

  /// Reads one duration, or a list of durations.
  func durations(_ node: LuaNode, _ path: String) -> [Varying<Duration>]? {
    guard case .table(let table) = node.value else { return duration(node, path).map { [$0] } }
    guard table.isList, !table.isEmpty else {
      problems.add(node.location, path, "must be a duration, or a list of them, as in { \"15m\", \"1h\" }")
      return nil
    }
    let all = table.items.enumerated().map { index, item in duration(item, "\(path)[\(index + 1)]") }
    return all.contains { $0 == nil } ? nil : all.compactMap(\.self)
  }

  private func read<Value: Sendable & Comparable & Hashable>(
    _ node: LuaNode, _ path: String, _ plain: (LuaNode, String) -> Value?
  ) -> Varying<Value>? {
    guard case .tagged("vary", let arguments) = node.value else { return plain(node, path).map { .fixed($0) } }
    guard arguments.count == 3, case .function(let function) = arguments[2].value else {
      problems.add(node.location, path, "must be vary(lowest, highest, function(f) … end)")
      return nil
    }
    // The bounds are part of the field, so their problems name its line.
    let bounds = arguments.prefix(2).map { LuaNode(value: $0.value, location: node.location) }
    guard let lowest = plain(bounds[0], path), let highest = plain(bounds[1], path) else { return nil }
    guard lowest <= highest else {
      problems.add(node.location, path, "put the lowest value first: vary(lowest, highest, function)")
      return nil
    }
    let name = FunctionName("\(prefix).\(path)")
    keep(name, function)
    return .varying(lowest: lowest, highest: highest, name)
  }
}
