import MoongateCore
import MoongateSDK

/// Reads `fallback { "whatsapp_code", "phone_otp" }`, a step of a flow.
struct FallbackReader {
  /// The maximum number of providers in a fallback. Each has its own code, which multiplies an attacker's chance of a
  /// correct guess.
  private static let most = 4
  private static let example = "fallback { \"whatsapp_code\", \"phone_otp\" }"

  let providers: ProviderCatalog
  let problems: Problems

  func isFallback(_ node: LuaNode) -> Bool { if case .tagged("fallback", _) = node.value { true } else { false } }

  /// Reads the step; nil with a problem if it is invalid.
  /// - Parameter choices: reads the provider names. If gateway.lua configures only one of them, the step has only that
  ///   provider.
  func read(_ node: LuaNode, _ path: String, or choices: StepChoicesReader, isSkippable: Bool, when: FunctionName?)
    -> StepRule?
  {
    guard let items = items(node, path), let names = choices.read(items, path, at: node.location) else { return nil }
    return StepRule(choices: names, isSkippable: isSkippable, when: when, isFallback: names.count > 1)
  }

  private func items(_ node: LuaNode, _ path: String) -> [LuaNode]? {
    guard case .tagged(_, let arguments) = node.value, case .table(let table)? = arguments.first?.value, table.isList,
      !table.isEmpty
    else {
      problems.add(node.location, path, "fallback takes a list of providers, as in \(Self.example)")
      return nil
    }
    var seen: Set<String> = []
    for item in table.items {
      guard case .text(let name) = item.value else {
        problems.add(
          item.location, path, "fallback takes provider names in quotes, without nesting, as in \(Self.example)")
        return nil
      }
      guard seen.insert(name).inserted else {
        problems.add(item.location, path, "fallback names `\(name)` twice: remove one of them")
        return nil
      }
    }
    guard table.items.count > 1, case .text(let name)? = table.items.first?.value else {
      let only = seen.first ?? ""
      problems.add(node.location, path, "fallback lists only one provider: add another, or write { \"\(only)\" }")
      return nil
    }
    guard table.items.count <= Self.most else {
      problems.add(
        node.location, path,
        "fallback names \(table.items.count) providers, but takes \(Self.most) at most: remove some after `\(name)`")
      return nil
    }
    return table.items
  }
}
