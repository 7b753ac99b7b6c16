import MoongateCore
import MoongateSDK

/// Reads policies/token.lua, which limits attempts with invalid tokens. It is a policy that only has limits.
struct TokenPolicyReader {
  /// The default policy, below the operator's file. It equals `ProviderPolicy.tokens`; a test compares them.
  static let defaults = PolicySource(
    file: "policies/token.lua (defaults)",
    text: """
      return policy "token" {
        limits = { wrong = { on = "verify", per = "ip", max = 60, window = "1h", counts = "failures", lock = "15m" } },
        unknown_account = "conceal",
      }
      """)

  /// The descriptor under which the file is read. Tokens are not a provider, but have a policy.
  static let descriptor = ProviderDescriptor(
    name: .token, beginFields: [], submitFields: [], settings: [], policy: defaults, identifierKinds: [])

  let problems: Problems

  /// - Parameters:
  /// - defaults: the table of `defaults`.
  /// - node: the table of the operator's file; nil without one.
  func read(defaults: LuaNode, operator node: LuaNode?) -> ProviderPolicy? {
    if let node, case .table(let table) = node.value {
      for name in ["code", "timers", "message", "send", "verify", "identity", "unknown_account"] {
        if let field = table.fields[name] {
          problems.add(field.location, name, "policies/token.lua has only limits: remove this field")
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
        "wrong tokens are counted on \"verify\": a token sends, begins and registers nothing")
    }
    // Attack: an attacker sends invalid tokens until a shared limit is reached, which locks out every program.
    if limit.key != .ip, limit.key != .network {
      problems.add(
        limit.location, "\(path).per",
        "wrong tokens are counted per \"ip\" or \"network\": with a wider key, one attacker could lock out every program"
      )
    }
    if limit.counts != .failures {
      problems.add(limit.location, "\(path).counts", "valid tokens are not counted: write counts = \"failures\"")
    }
    if limit.disables {
      problems.add(limit.location, "\(path).disable", "an address cannot be disabled: use `lock`")
    }
    let varies =
      [limit.max.function, limit.window?.function].contains { $0 != nil } || limit.lock.contains { $0.function != nil }
    if varies {
      problems.add(limit.location, path, "must have fixed numbers: vary(…) would run for every request")
    }
  }
}
