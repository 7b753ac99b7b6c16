import MoongateCore
import MoongateSDK

/// policies/token.lua: how many wrong tokens are too many. A policy like a provider's, of which only limits mean
/// anything.
struct TokenPolicyReader {
  /// What holds without a file, and under the operator's: the same as `ProviderPolicy.tokens`, which a test holds it
  /// against.
  static let defaults = PolicySource(
    file: "policies/token.lua (defaults)",
    text: """
      return policy "token" {
        limits = { wrong = { on = "verify", per = "ip", max = 60, window = "1h", counts = "failures", lock = "15m" } },
        unknown_account = "conceal",
      }
      """)

  /// As what the file is read: not a provider, but with a policy.
  static let descriptor = ProviderDescriptor(
    name: .token, beginFields: [], submitFields: [], settings: [], policy: defaults, identifierKinds: [])

  let problems: Problems

  /// - Parameters:
  ///   - defaults: the table of `defaults`.
  ///   - node: that of the operator's file, where there is one.
  func read(defaults: LuaNode, operator node: LuaNode?) -> ProviderPolicy? {
    if let node, case .table(let table) = node.value {
      for name in ["code", "timers", "message", "send", "verify", "unknown_account"] {
        if let field = table.fields[name] {
          problems.add(field.location, name, "tokens have limits and nothing else: remove it")
        }
      }
    }
    let before = problems.all.count
    var functions = FunctionTable()
    let reader = PolicyReader(descriptor: Self.descriptor, problems: problems)
    guard let policy = reader.read(defaults: defaults, operator: node, functions: &functions) else { return nil }
    for limit in policy.limits { check(limit) }
    return problems.all.count == before ? policy : nil
  }

  private func check(_ limit: Limit) {
    let path = "limits.\(limit.name)"
    if limit.action != .verify {
      problems.add(
        limit.location, "\(path).on",
        "a wrong token is counted on \"verify\"; nothing is sent, begun or registered by one")
    }
    // Attack: a stranger sends wrong tokens until a limit that is everybody's is full, and no program gets in any more.
    if limit.key != .ip, limit.key != .network {
      problems.add(
        limit.location, "\(path).per",
        "wrong tokens count per \"ip\" or \"network\": by anything wider, one stranger would lock every program out")
    }
    if limit.counts != .failures {
      problems.add(limit.location, "\(path).counts", "right tokens are not counted: write counts = \"failures\"")
    }
    if limit.disables {
      problems.add(limit.location, "\(path).disable", "an address cannot be turned off: let the limit lock")
    }
    let varies =
      [limit.max.function, limit.window?.function].contains { $0 != nil } || limit.lock.contains { $0.function != nil }
    if varies {
      problems.add(limit.location, path, "must have fixed numbers: vary(…) would be asked with each request")
    }
  }
}
