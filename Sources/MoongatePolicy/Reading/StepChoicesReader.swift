import MoongateCore
import MoongateSDK

/// The providers of one step, in a flow or in accounts.lua.
struct StepChoicesReader {
  let providers: ProviderCatalog
  let problems: Problems

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
    if choices.isEmpty {
      problems.add(
        location, path, "no provider of this step is configured: name \(Suggestion.list(left)) under `providers` in gateway.lua, or remove the step")
      return nil
    }
    return choices
  }

  /// - Returns: false where the node names no provider at all.
  private func take(_ node: LuaNode, _ path: String, _ choices: inout [ProviderName], _ left: inout [String]) -> Bool {
    guard case .text(let text) = node.value else {
      problems.add(node.location, path, "must name a provider in quotes, not \(node.value.described)")
      return false
    }
    guard let name = providers.known(text) else {
      problems.add(node.location, path, "no provider is called \"\(text)\"\(Suggestion.phrase(for: text, among: providers.names))")
      return false
    }
    guard providers.isConfigured(name) else {
      left.append(text)
      return true
    }
    if !choices.contains(name) { choices.append(name) }
    return true
  }
}
