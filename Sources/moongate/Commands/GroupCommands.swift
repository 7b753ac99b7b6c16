import ArgumentParser
import MoongateCore
import MoongatePolicy
import MoongateProgram
import MoongateSDK

/// `moongate group`: manages group members. Works directly on the store, whether or not a gateway is running.
struct GroupCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "group", abstract: "List groups, and add and remove their members.",
    discussion: """
      accounts.lua defines the groups: `ops = members()` has the members that you add here; a function computes the members of its group. \
      Sessions of the account change within a second, including open WebSockets. \
      Exit status: 0 on success, 1 if the group or account does not exist, 2 if the store is missing.
      """,
    subcommands: [AddGroupMember.self, RemoveGroupMember.self, ListGroups.self])
}

/// `moongate group add GROUP NAME…`.
struct AddGroupMember: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Add accounts to a group.",
    discussion:
      "A phone number or an email address selects the account that has verified it. Select an account with an unverified identifier by its id."
  )

  @OptionGroup var configuration: ConfigurationOption
  @OptionGroup var change: MembershipChange

  func run() async throws { try await change.carryOut(configuration, isMember: true) }
}

/// `moongate group remove GROUP NAME…`.
struct RemoveGroupMember: AsyncParsableCommand {
  static let configuration = CommandConfiguration(commandName: "remove", abstract: "Remove accounts from a group.")

  @OptionGroup var configuration: ConfigurationOption
  @OptionGroup var change: MembershipChange

  func run() async throws { try await change.carryOut(configuration, isMember: false) }
}

/// Arguments of a command that changes the members of a group.
struct MembershipChange: ParsableArguments {
  @Argument(help: "The name of the group in accounts.lua.") var group: String
  @Argument(help: "Account ids, phone numbers or email addresses.") var names: [String]
  @OptionGroup var identity: OperatorOption
  @Flag(help: "Print JSON.") var json = false

  private struct Done: Encodable {
    let group: String
    let account: String
    let member: Bool
    let changed: Bool
  }

  func carryOut(_ configuration: ConfigurationOption, isMember: Bool) async throws {
    try await OperatorStore.with(configuration) { opened in
      let name = try opened.group(named: group, toAdd: isMember)
      let administration = opened.administration.acting(
        as: try identity.identity("moongate group \(isMember ? "add" : "remove")"))
      var accounts: [Account] = []
      // Look up all accounts first, so that either all of them change or none.
      for text in names { accounts.append(try await opened.holder(named: text)) }
      var done: [Done] = []
      for account in accounts {
        let outcome = try await administration.setMembership(of: account.id, in: name, isMember)
        guard outcome != .unknown else { throw StartProblem("There is no account \(account.id).") }
        done.append(Done(group: name.rawValue, account: account.id, member: isMember, changed: outcome == .changed))
      }
      if json { return print(try ToolJSON.text(done)) }
      for item in done {
        let state = isMember ? (item.changed ? "added to" : "already in") : (item.changed ? "removed from" : "not in")
        print("\(item.account) \(state) \(item.group)")
      }
    }
  }
}

/// `moongate group list [NAME]`.
struct ListGroups: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the groups, or the members of one.",
    discussion: "`undefined` groups have members but are not defined in accounts.lua, so they have no effect.")

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "Show only this group, with its members.") var name: String?
  @Option(help: "Start after this account id.") var after: String?
  @Option(help: "Maximum number of members to list.") var limit = 1_000
  @Flag(help: "Print JSON.") var json = false

  /// A group in the format of `GET /groups`.
  private struct Summary: Encodable {
    let group: String
    let kind: String
    let members: Int?

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(group, forKey: .group)
      try container.encode(kind, forKey: .kind)
      try container.encode(members, forKey: .members)
    }

    enum CodingKeys: String, CodingKey { case group, kind, members }
  }

  /// A group in the format of `GET /groups/{name}`.
  private struct Group: Encodable {
    let group: String
    let kind: String
    let members: [Member]
  }

  private struct Member: Encodable {
    let account: String
    let identifiers: [String]
    let addedAt: String

    enum CodingKeys: String, CodingKey {
      case account, identifiers
      case addedAt = "added_at"
    }
  }

  func run() async throws {
    guard limit > 0 else { throw StartProblem("--limit must be 1 or more.", status: .couldNotRun) }
    try await OperatorStore.with(configuration) { opened in
      let groups = try await opened.administration.groups(of: opened.generation.accounts)
      guard let name else { return try show(groups) }
      guard let group = groups.first(where: { $0.name.rawValue == name }) else {
        throw StartProblem(
          "There is no group \"\(name)\"\(Suggestion.phrase(for: name, among: groups.map(\.name.rawValue))).")
      }
      let members = try await opened.administration.members(of: group.name, after: after, limit: limit).map {
        member, account in
        Member(
          account: account.id, identifiers: account.identifiers.filter(\.isOwn).map(\.identifier.value),
          addedAt: member.addedAt.text)
      }
      if json { return print(try ToolJSON.text(Group(group: name, kind: group.kind.rawValue, members: members))) }
      if group.kind == .computed {
        print("\(name) is computed by a function of accounts.lua; it has no list of members")
      }
      for member in members {
        print("\(member.account)  \(member.identifiers.joined(separator: ", "))  since \(member.addedAt)")
      }
      if members.count == limit, let last = members.last { print("… continue with --after \(last.account)") }
    }
  }

  private func show(_ groups: [AccountAdministration.GroupSummary]) throws {
    if json {
      return print(
        try ToolJSON.text(groups.map { Summary(group: $0.name.rawValue, kind: $0.kind.rawValue, members: $0.members) }))
    }
    for group in groups {
      print("\(group.name)  \(group.kind.rawValue)\(group.members.map { "  \($0) member\($0 == 1 ? "" : "s")" } ?? "")")
    }
    if groups.isEmpty { print("accounts.lua defines no groups") }
  }
}

extension OperatorStore {
  /// Returns the group with the name, if members can be added to it or removed from it.
  /// - Throws: an error with exit status 1.
  fileprivate func group(named text: String, toAdd isToAdd: Bool) throws -> GroupName {
    guard let name = GroupName(rawValue: text) else {
      throw StartProblem("\"\(text)\" is not a group name: \(GroupName.rule).")
    }
    guard isToAdd, let problem = generation.accounts.problem(ofAddingTo: name) else { return name }
    let meant =
      generation.accounts.groups[name] == nil
      ? Suggestion.nearest(to: text, among: generation.accounts.groups.keys.map(\.rawValue)) : nil
    throw StartProblem(problem + (meant.map { " Did you mean \"\($0)\"?" } ?? ""))
  }

  /// Returns the account that has verified the identifier, because group membership grants rights.
  /// - Throws: an error with exit status 1.
  fileprivate func holder(named text: String) async throws -> Account {
    switch try await administration.holder(named: text, region: gateway.region) {
    case .account(let account): return account
    case .claimedOnly(let accounts) where UserName(text) != nil:
      throw StartProblem(
        "\(text) is the user name of \(accounts.joined(separator: ", ")), and a name is never verified. "
          + "To choose the account, use its ID.")
    case .claimedOnly(let accounts):
      throw StartProblem(
        "No account has verified \(text). \(accounts.joined(separator: ", ")) only "
          + "claim\(accounts.count == 1 ? "s" : "") it, and the identifier may belong to another user. "
          + "To choose the account anyway, use its ID.")
    case .unknown: throw StartProblem("There is no account \(text).")
    }
  }
}
