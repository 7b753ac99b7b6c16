import MoongateCore
import MoongateSDK

/// Reads what the function `identity` of a policy returned. Anything that the gateway does not know is a fault: a
/// misspelled `groups` would otherwise remove every group.
enum IdentityResult {
  private static let fields = TableShape.mappedIdentity.entries.map(\.name)

  static func read(_ node: LuaNode) throws(LuaState.Failure) -> IdentityVerdict {
    switch node.value {
    case .denied(let reason):
      if let wrong = DenyReason.problem(of: reason) { throw wrongResult(wrong) }
      return .deny(reason)
    case .table(let table) where table.items.isEmpty && table.otherKeys.isEmpty: return .mapped(try identity(table))
    case .table: throw wrongResult("returned a list: write fields, as in { email = f.claims.email }")
    default:
      throw wrongResult(
        "must return a table, as in { email = f.claims.email }, or deny \"reason\", but returned \(node.value.kind)")
    }
  }

  private static func identity(_ table: LuaTable) throws(LuaState.Failure) -> MappedIdentity {
    if let unknown = table.fields.keys.sorted().first(where: { !fields.contains($0) }) {
      throw wrongResult("returned the unknown field `\(unknown)`\(Suggestion.phrase(for: unknown, among: fields))")
    }
    var identity = MappedIdentity()
    identity.email = try text("email", table)
    identity.firstName = try text("first_name", table)
    identity.lastName = try text("last_name", table)
    switch table.fields["email_verified"]?.value {
    case nil, .null?: break
    case .flag(let flag)?: identity.isEmailVerified = flag
    // Attack: "false" as a text is true in Lua.
    case let value?: throw wrongResult("email_verified must be true or false, but is \(value.kind)")
    }
    identity.groups = try groups(table.fields["groups"]?.value ?? .null)
    identity.data = try data(table.fields["data"]?.value ?? .null)
    if let problem = Identifier(
      kind: .federated, value: "", display: "", attributes: identity.data, groups: identity.groups
    ).detailProblem {
      throw wrongResult(problem)
    }
    return identity
  }

  private static func text(_ name: String, _ table: LuaTable) throws(LuaState.Failure) -> String? {
    switch table.fields[name]?.value {
    case nil, .null?: return nil
    case .text(let text)?: return text
    case let value?: throw wrongResult("\(name) must be a text, but is \(value.kind)")
    }
  }

  /// A list of names, or a table whose members are true, as policies read groups.
  private static func groups(_ value: LuaValue) throws(LuaState.Failure) -> [String] {
    guard case .table(let table) = value, table.otherKeys.isEmpty else {
      if case .null = value { return [] }
      throw wrongResult("groups must be a list of texts, but is \(value.kind)")
    }
    var groups: [String] = []
    for item in table.items {
      guard case .text(let text) = item.value else {
        throw wrongResult("groups must be a list of texts, but has \(item.value.kind) in it")
      }
      groups.append(text)
    }
    for (name, node) in table.fields.sorted(by: { $0.key < $1.key }) {
      guard case .flag(let isMember) = node.value else {
        throw wrongResult("groups.\(name) must be true or false, but is \(node.value.kind)")
      }
      if isMember { groups.append(name) }
    }
    return groups
  }

  private static func data(_ value: LuaValue) throws(LuaState.Failure) -> [String: String] {
    guard case .table(let table) = value, table.items.isEmpty, table.otherKeys.isEmpty else {
      if case .null = value { return [:] }
      throw wrongResult("data must be a table of texts by name, but is \(value.kind)")
    }
    var data: [String: String] = [:]
    for (name, node) in table.fields {
      switch node.value {
      case .null: continue
      case .text(let text): data[name] = text
      case .flag(let flag): data[name] = "\(flag)"
      case .integer(let integer): data[name] = "\(integer)"
      case .number(let number): data[name] = "\(number)"
      default: throw wrongResult("data.\(name) must be a text, but is \(node.value.kind)")
      }
    }
    return data
  }

  private static func wrongResult(_ message: String) -> LuaState.Failure {
    LuaState.Failure(kind: .result, line: 0, message: message)
  }
}

extension LuaValue {
  /// The type of the value, for messages. A text may be personal.
  fileprivate var kind: String { if case .text = self { "a text" } else { described } }
}
