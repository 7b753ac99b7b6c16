import MoongateCore
import MoongateSDK

/// Reads the providers of one step, in a flow or in accounts.lua.
struct StepChoicesReader {
  let providers: ProviderCatalog
  let problems: Problems
  /// Called with the providers of a step if none of them is configured. Nil: such a step is a problem.
  var whenUnavailable: (([String]) -> Void)?
  /// Whether a provider ships the step. Providers that the program does not have then count as not configured, and a
  /// provider that is configured only under other names stands for all of its instances.
  var comesWithProvider = false

  /// Reads one provider, `any_of { … }`, or several.
  func read(_ nodes: [LuaNode], _ path: String, at location: SourceLocation) -> [ProviderName]? {
    var choices: [ProviderName] = []
    var left: [String] = []
    for node in nodes {
      switch node.value {
      case .tagged("any_of", let arguments):
        guard case .table(let table)? = arguments.first?.value, table.isList, !table.isEmpty else {
          problems.add(node.location, path, "any_of takes a list of providers, as in any_of { \"phone_otp\", \"pin\" }")
          return nil
        }
        for item in table.items { if !take(item, path, &choices, &left) { return nil } }
      default: if !take(node, path, &choices, &left) { return nil }
      }
    }
    if choices.isEmpty, let whenUnavailable {
      whenUnavailable(left)
      return nil
    }
    if choices.isEmpty {
      problems.add(
        location, path,
        "no provider of this step is configured: name \(Suggestion.list(left)) under `providers` in gateway.lua, or remove the step"
      )
      return nil
    }
    return choices
  }

  /// - Returns: false if the node names no provider.
  private func take(_ node: LuaNode, _ path: String, _ choices: inout [ProviderName], _ left: inout [String]) -> Bool {
    if case .tagged("fallback", _) = node.value {
      problems.add(
        node.location, path,
        "a fallback must be the only entry of a flow's step, as in { fallback { \"a\", \"b\" } }"
      )
      return false
    }
    guard case .text(let text) = node.value else {
      problems.add(node.location, path, "must name a provider in quotes, not \(node.value.described)")
      return false
    }
    guard let name = providers.known(text) else {
      if comesWithProvider {
        left.append(text)
        return true
      }
      problems.add(
        node.location, path, "unknown provider \"\(text)\"\(Suggestion.phrase(for: text, among: providers.names))")
      return false
    }
    guard providers.isConfigured(name) else {
      let instances = comesWithProvider ? providers.instances(of: name) : []
      if !instances.isEmpty {
        choices += instances.filter { !choices.contains($0) }
        return true
      }
      left.append(text)
      return true
    }
    if !choices.contains(name) { choices.append(name) }
    return true
  }
}
