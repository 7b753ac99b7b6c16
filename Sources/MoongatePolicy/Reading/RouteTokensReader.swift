import MoongateCore

/// Reads `tokens` of a route: `true`, a list of names, `personal = true`, or a list together with it.
struct RouteTokensReader {
  private static let example = "true, { \"ci\", \"monitor\" } or { personal = true }"

  let problems: Problems

  /// - Returns: nil if the route accepts no tokens or the value is invalid.
  func read(_ reader: TableReader) -> RouteTokens? {
    guard let node = reader.explicitValue("tokens") else { return nil }
    let path = reader.path("tokens")
    switch node.value {
    case .flag(true): return .services
    case .flag(false): return nil
    case .text(let text):
      problems.add(
        node.location, path, "must be \(Self.example), not \(node.value.described); did you mean `{ \"\(text)\" }`?")
      return nil
    case .table: break
    default:
      problems.add(node.location, path, "must be \(Self.example), not \(node.value.described)")
      return nil
    }
    let before = problems.all.count
    guard let table = TableReader(node, .routeTokens, path: path, problems: problems, allowsItems: true) else {
      return nil
    }
    let names = table.items.enumerated().compactMap { index, item in name(item, "\(path)[\(index + 1)]") }
    let takesPersonal = table.flag("personal") ?? false
    if names.isEmpty, !takesPersonal, problems.all.count == before {
      problems.add(node.location, path, "takes no token: write \(Self.example), or leave `tokens` out")
    }
    return RouteTokens(names: Set(names), takesPersonal: takesPersonal)
  }

  private func name(_ node: LuaNode, _ path: String) -> String? {
    guard let text = Field.text(node, path, problems) else { return nil }
    if ServiceTokenName(text) != nil { return text }
    let meant =
      ServiceTokenName(text.lowercased()).map { "; did you mean `\($0.text)`?" }
      ?? ": a name is \(ServiceTokenName.rule)"
    problems.add(node.location, path, "\"\(text)\" is not a valid token name\(meant)")
    return nil
  }
}
