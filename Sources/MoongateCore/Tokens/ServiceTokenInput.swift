extension ServiceTokens.NewToken {
  /// The maximum number of groups, and of networks.
  private static let most = 50

  /// Validates the input of `moongate token create` and `POST /tokens`.
  /// - Parameters:
  ///   - expires: a duration such as `90d`; nil: never.
  ///   - networks: CIDR blocks such as `10.0.0.0/8`.
  ///   - rules: accounts.lua, which must define the groups, because undefined ones have no effect.
  /// - Throws: the first problem.
  package init(
    name: String, groups: [String], expires: String?, networks: [String], rules: AccountRules
  ) throws(OperatorInputProblem) {
    guard let tokenName = ServiceTokenName(name) else {
      throw OperatorInputProblem(
        field: "name", sentence: "\"\(name.prefix(60))\" is not a token name: a name is \(ServiceTokenName.rule).")
    }
    guard groups.count <= Self.most, networks.count <= Self.most else {
      throw OperatorInputProblem(
        field: groups.count > Self.most ? "groups" : "networks",
        sentence: "A token has at most \(Self.most) groups and \(Self.most) networks.")
    }
    var names: [GroupName] = []
    for text in groups {
      guard let group = GroupName(rawValue: text) else {
        throw OperatorInputProblem(
          field: "groups", sentence: "\"\(text.prefix(60))\" is not a group name: \(GroupName.rule).")
      }
      guard rules.groups[group] != nil else {
        let known = rules.groups.keys.sorted().map(\.rawValue).joined(separator: ", ")
        throw OperatorInputProblem(
          field: "groups",
          sentence:
            "accounts.lua defines no group \"\(group)\"; \(known.isEmpty ? "it defines none" : "there are \(known)").")
      }
      names.append(group)
    }
    var blocks: [AddressBlock] = []
    for text in networks {
      guard let block = AddressBlock(text) else {
        throw OperatorInputProblem(
          field: "networks",
          sentence: "\"\(text.prefix(60))\" is not a network, such as 10.0.0.0/8, 192.0.2.7 or 2001:db8::/32.")
      }
      blocks.append(block)
    }
    self.init(name: tokenName, groups: names, lifetime: try Self.lifetime(expires), networks: blocks)
  }

  private static func lifetime(_ text: String?) throws(OperatorInputProblem) -> Duration? {
    guard let text else { return nil }
    guard let lifetime = Duration(asWritten: text), lifetime > .zero else {
      throw OperatorInputProblem(
        field: "expires", sentence: "\"\(text.prefix(60))\" is not a length of time, such as 90d or 12h.")
    }
    return lifetime
  }
}

extension ServiceTokens {
  /// Parses how long an old secret stays valid.
  /// - Parameter text: a duration such as `24h`; nil: `standardOverlap`.
  package static func overlap(_ text: String?) throws(OperatorInputProblem) -> Duration {
    guard let text else { return standardOverlap }
    guard let overlap = Duration(asWritten: text) else {
      throw OperatorInputProblem(
        field: "overlap",
        sentence: "\"\(text.prefix(60))\" is not a length of time, such as 24h; 0s ends the old secret at once.")
    }
    return overlap
  }
}
