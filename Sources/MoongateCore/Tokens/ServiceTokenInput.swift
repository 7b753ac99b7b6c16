/// What is wrong with what an operator asked for.
package struct TokenInputProblem: Error, Sendable, Equatable {
  /// Of the admin API; of the command it is the option's.
  package let field: String
  package let sentence: String
}

extension ServiceTokens.Wanted {
  /// The most groups, and the most networks.
  private static let most = 50

  /// Reads what `moongate token create` and `POST /tokens` are given.
  /// - Parameters:
  ///   - expires: such as `90d`; nil: never.
  ///   - networks: such as `10.0.0.0/8`.
  ///   - rules: accounts.lua, which has to define the groups: those that it does not define count for nothing.
  /// - Throws: the first problem.
  package init(
    name: String, groups: [String], expires: String?, networks: [String], rules: AccountRules
  ) throws(TokenInputProblem) {
    guard let tokenName = ServiceTokenName(name) else {
      throw TokenInputProblem(
        field: "name", sentence: "\"\(name.prefix(60))\" is no name of a token: a name is \(ServiceTokenName.rule).")
    }
    guard groups.count <= Self.most, networks.count <= Self.most else {
      throw TokenInputProblem(
        field: groups.count > Self.most ? "groups" : "networks",
        sentence: "A token has at most \(Self.most) groups and \(Self.most) networks.")
    }
    var names: [GroupName] = []
    for text in groups {
      guard let group = GroupName(rawValue: text) else {
        throw TokenInputProblem(
          field: "groups", sentence: "\"\(text.prefix(60))\" is no name of a group: \(GroupName.rule).")
      }
      guard rules.groups[group] != nil else {
        let known = rules.groups.keys.sorted().map(\.rawValue).joined(separator: ", ")
        throw TokenInputProblem(
          field: "groups",
          sentence:
            "accounts.lua defines no group \"\(group)\"; \(known.isEmpty ? "it defines none" : "there are \(known)").")
      }
      names.append(group)
    }
    var blocks: [AddressBlock] = []
    for text in networks {
      guard let block = AddressBlock(text) else {
        throw TokenInputProblem(
          field: "networks",
          sentence: "\"\(text.prefix(60))\" is no network, such as 10.0.0.0/8, 192.0.2.7 or 2001:db8::/32.")
      }
      blocks.append(block)
    }
    self.init(name: tokenName, groups: names, lifetime: try Self.lifetime(expires), networks: blocks)
  }

  private static func lifetime(_ text: String?) throws(TokenInputProblem) -> Duration? {
    guard let text else { return nil }
    guard let lifetime = Duration(asWritten: text), lifetime > .zero else {
      throw TokenInputProblem(
        field: "expires", sentence: "\"\(text.prefix(60))\" is no length of time, such as 90d or 12h.")
    }
    return lifetime
  }
}

extension ServiceTokens {
  /// Reads how long an old secret goes on.
  /// - Parameter text: such as `24h`; nil: `standardOverlap`.
  package static func overlap(_ text: String?) throws(TokenInputProblem) -> Duration {
    guard let text else { return standardOverlap }
    guard let overlap = Duration(asWritten: text) else {
      throw TokenInputProblem(
        field: "overlap",
        sentence: "\"\(text.prefix(60))\" is no length of time, such as 24h; 0s ends the old secret at once.")
    }
    return overlap
  }
}
