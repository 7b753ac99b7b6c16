import MoongateCore
import MoongateSDK

/// The providers of one step, in a flow or in accounts.lua.
struct StepChoicesReader {
  let providers: ProviderCatalog
  let problems: Problems
  /// Called with the providers of a step of which none is configured, in place of a problem; nil: such a step is a
  /// problem.
  var whenUnavailable: (([String]) -> Void)?
  /// Whether the step comes with a provider: one that this program does not have is taken as one that is not
  /// configured, and one that is configured under other names only stands for all of these.
  var comesWithProvider = false

  /// One provider, `any_of { … }`, or several.
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

  /// - Returns: false where the node names no provider at all.
  private func take(_ node: LuaNode, _ path: String, _ choices: inout [ProviderName], _ left: inout [String]) -> Bool {
    if case .tagged("fallback", _) = node.value {
      problems.add(
        node.location, path,
        "a fallback is a step of a flow, with nothing beside it and in nothing else, as in { fallback { \"a\", \"b\" } }"
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
        node.location, path, "no provider is called \"\(text)\"\(Suggestion.phrase(for: text, among: providers.names))")
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
