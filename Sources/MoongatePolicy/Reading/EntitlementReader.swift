import MoongateCore
import MoongateSDK

/// Reads `groups` and `claims` of accounts.lua, and references to groups in other files.
struct EntitlementReader {
  let problems: Problems

  func readGroups(
    _ node: LuaNode, _ locations: inout [String: SourceLocation], _ functions: inout FunctionTable
  ) -> [GroupName: GroupDefinition] {
    guard let reader = TableReader(node, nil, path: "groups", problems: problems) else { return [:] }
    var groups: [GroupName: GroupDefinition] = [:]
    for text in reader.names {
      guard let said = reader.explicitValue(text) else { continue }
      let path = Self.path("groups", text)
      locations[path] = said.location
      guard let name = GroupName(rawValue: text) else {
        problems.add(said.location, path, GroupName.rule)
        continue
      }
      switch said.value {
      case .tagged("members", _): groups[name] = .members
      case .function(let function):
        let called = FunctionName("accounts.\(path)")
        functions.add(called, function, for: .entitlement)
        groups[name] = .computed(called)
      default:
        problems.add(
          said.location, path,
          "must be members() or a function, as in function(f) return f.account.email_verified end, "
            + "not \(said.value.described)")
      }
    }
    if groups.count > EntitlementBounds.groups {
      problems.add(
        node.location, "groups", "defines \(groups.count) groups; at most \(EntitlementBounds.groups) are possible")
    } else if groups.keys.sorted().headerValue.utf8.count > EntitlementBounds.headerBytes {
      problems.add(
        node.location, "groups",
        "an account in all of these groups would need a Remote-Groups header of more than \(EntitlementBounds.headerBytes) bytes: use fewer groups "
          + "or shorter names")
    }
    return groups
  }

  /// The members of the assertion itself, and those that RFC 7519 registers.
  ///
  /// Attack: a claim `sub`, and a service that takes the first `"sub":` it finds in the assertion.
  private static let reserved: Set<String> = [
    "iss", "sub", "aud", "exp", "nbf", "iat", "jti", "amr", "acr", "auth_time", "email_verified", "groups", "claims",
    "alg", "kid", "typ",
  ]

  func readClaims(
    _ node: LuaNode, _ locations: inout [String: SourceLocation], _ functions: inout FunctionTable
  ) -> [String: FunctionName] {
    guard let reader = TableReader(node, nil, path: "claims", problems: problems) else { return [:] }
    var claims: [String: FunctionName] = [:]
    for name in reader.names {
      guard let said = reader.explicitValue(name) else { continue }
      let path = Self.path("claims", name)
      locations[path] = said.location
      guard name.wholeMatch(of: /[a-z][a-z0-9_]{0,31}/) != nil else {
        problems.add(
          said.location, path, "a claim's name has 1 to 32 lower-case letters, digits and _, and begins with a letter")
        continue
      }
      guard !Self.reserved.contains(name) else {
        problems.add(said.location, path, "is a reserved member of the assertion; choose another name")
        continue
      }
      guard case .function(let function) = said.value else {
        problems.add(
          said.location, path,
          "must be a function, as in function(f) return f.account.has_pin end, not \(said.value.described)")
        continue
      }
      let called = FunctionName("accounts.\(path)")
      functions.add(called, function, for: .entitlement)
      claims[name] = called
    }
    if claims.count > EntitlementBounds.claims {
      problems.add(
        node.location, "claims", "defines \(claims.count) claims; at most \(EntitlementBounds.claims) are possible")
    }
    return claims
  }

  /// Reads one group, or `any_of { … }` of several.
  /// - Parameter defined: the groups of accounts.lua; nil if it could not be read. Unknown groups are then not
  ///   reported.
  func readRequirement(_ node: LuaNode, _ path: String, defined: Set<GroupName>?) -> GroupRequirement? {
    var nodes = [node]
    if case .tagged("any_of", let arguments) = node.value {
      guard case .table(let table)? = arguments.first?.value, table.isList, !table.isEmpty else {
        problems.add(node.location, path, "any_of takes a list of groups, as in any_of { \"ops\", \"staff\" }")
        return nil
      }
      nodes = table.items
    }
    var names: [GroupName] = []
    for node in nodes {
      guard case .text(let text) = node.value else {
        problems.add(
          node.location, path,
          "must name a group in quotes, or several as in any_of { \"ops\", \"staff\" }, not \(node.value.described)")
        return nil
      }
      guard let name = known(text, at: node.location, path, defined: defined) else { return nil }
      if !names.contains(name) { names.append(name) }
    }
    return GroupRequirement(anyOf: names)
  }

  /// A group that accounts.lua defines.
  func known(_ text: String, at location: SourceLocation, _ path: String, defined: Set<GroupName>?) -> GroupName? {
    let name = GroupName(rawValue: text)
    guard let defined else {
      if name == nil { problems.add(location, path, "\"\(text)\" is not a valid group name: \(GroupName.rule)") }
      return name
    }
    if let name, defined.contains(name) { return name }
    problems.add(location, path, Self.undefined(text, among: defined))
    return nil
  }

  /// The message for a group that accounts.lua does not define.
  static func undefined(_ text: String, among defined: Set<GroupName>) -> String {
    let names = defined.map(\.rawValue).sorted()
    if let meant = Suggestion.nearest(to: text, among: names) {
      return "accounts.lua does not define the group \"\(text)\"; did you mean `\(meant)`?"
    }
    let entry = text.wholeMatch(of: /[a-z_][a-z0-9_]*/) == nil ? "[\"\(text)\"]" : text
    return "accounts.lua does not define the group \"\(text)\"; add groups = { \(entry) = members() } there"
      + (names.isEmpty ? "" : ", or use one of \(Suggestion.list(names))")
  }

  /// The message for a group whose function needs the group itself.
  /// - Parameter path: groups, each of which needs the next one. The last one is one of those before it.
  static func cycle(_ path: [String]) -> String {
    let last = path.last ?? ""
    let cycle = path.drop { $0 != last }.map { "`\($0)`" }
    return "the group `\(last)` needs itself: \(cycle.joined(separator: " → "))"
  }

  /// The path of a name, such as `groups.ops` or `groups["a,b"]`.
  static func path(_ table: String, _ name: String) -> String {
    name.wholeMatch(of: /[A-Za-z_][A-Za-z0-9_]*/) != nil ? "\(table).\(name)" : "\(table)[\"\(name)\"]"
  }
}
