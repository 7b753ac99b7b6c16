import MoongateCore
import MoongateSDK

// `group "ops"` in a case does the same as `moongate group add`.

extension CaseReader {
  /// Reads `group "ops"`, `group { "ops", "billing" }`, or `group { ops = true, billing = false }`.
  func memberships(_ node: LuaNode) -> [GroupName: Bool]? {
    var found: [GroupName: Bool] = [:]
    guard case .table = node.value else {
      return Field.text(node, "group", problems).flatMap { stored($0, at: node.location, "group") }.map { [$0: true] }
    }
    guard let reader = TableReader(node, nil, path: "group", problems: problems, allowsItems: true) else { return nil }
    if reader.items.isEmpty, reader.names.isEmpty {
      problems.add(node.location, "group", "names no group; as in group \"ops\"")
    }
    for item in reader.items {
      if let name = Field.text(item, "group", problems).flatMap({ stored($0, at: item.location, "group") }) {
        found[name] = true
      }
    }
    for text in reader.names {
      guard let isMember = reader.flag(text) else { continue }
      if let name = stored(text, at: reader.explicitValue(text)?.location ?? node.location, reader.path(text)) {
        found[name] = isMember
      }
    }
    return found
  }

  /// A group whose members are stored.
  func stored(_ text: String, at location: SourceLocation, _ path: String) -> GroupName? {
    let defined = groups.map { Set($0.keys) }
    guard let name = EntitlementReader(problems: problems).known(text, at: location, path, defined: defined) else {
      return nil
    }
    if case .computed? = groups?[name] {
      problems.add(
        location, path,
        "`\(text)` is computed by a function of accounts.lua: give the account what that function reads, in account { … }"
      )
      return nil
    }
    return name
  }
}

extension CaseRun {
  /// - Returns: the outcome in words.
  mutating func setGroups(_ groups: [GroupName: Bool], _ act: PolicyCase.Act) async throws -> String {
    try await makeAccount(act)
    try await readSession()
    guard let id = account ?? client.session?.account.id else {
      throw fail(
        act,
        "the case has no account yet: add phone \"…\" or email \"…\" and account { … } before it, or complete a flow")
    }
    let changes = groups.sorted { $0.key < $1.key }.map { Change.setGroupMembership(account: id, $0.key, $0.value) }
    _ = try await gateway.store.apply(changes, at: gateway.clock.now())
    return ""
  }
}

extension [GroupName: Bool] {
  /// The groups in Lua syntax.
  var asWritten: String {
    if count == 1, let only = first, only.value { return "group \"\(only.key)\"" }
    let entries = sorted { $0.key < $1.key }.map { name, isMember in
      let key = name.rawValue.wholeMatch(of: /[A-Za-z_][A-Za-z0-9_]*/) == nil ? "[\"\(name)\"]" : name.rawValue
      return "\(key) = \(isMember)"
    }
    return "group { \(entries.joined(separator: ", ")) }"
  }
}
