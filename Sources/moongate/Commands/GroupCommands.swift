import ArgumentParser
import MoongateCore
import MoongatePolicy
import MoongateSDK

/// `moongate group`: who is in which group. Works on the store itself, whether a gateway runs on it or not.
struct GroupCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "group", abstract: "List groups, and add and remove their members.",
    discussion: """
      accounts.lua defines the groups: `ops = members()` has the members that you add here; a function computes the members of its group. \
      Sessions of the account follow within a second, open WebSockets included. \
      Exits with 0, with 1 if there is no such group or account, with 2 if there is no store.
      """,
    subcommands: [AddGroupMember.self, RemoveGroupMember.self, ListGroups.self])
}

/// `moongate group add GROUP NAME…`.
struct AddGroupMember: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Add accounts to a group.",
    discussion:
      "A number or an address names the account that has verified it. Name an account that only claims it by its id.")

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

/// A change of a group's members.
struct MembershipChange: ParsableArguments {
  @Argument(help: "The group, as accounts.lua calls it.") var group: String
  @Argument(help: "An id, a number or an address.") var names: [String]
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
      let desk = opened.desk.acting(as: try identity.identity("moongate group \(isMember ? "add" : "remove")"))
      var accounts: [Account] = []
      // All of them, or none.
      for text in names { accounts.append(try await opened.holder(named: text)) }
      var done: [Done] = []
      for account in accounts {
        let outcome = try await desk.setMembership(of: account.id, in: name, isMember)
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
    discussion: "`undefined` groups have members and are not in accounts.lua: they count for nothing.")

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "Only this group, with its members.") var name: String?
  @Option(help: "Begin behind this account's id.") var after: String?
  @Option(help: "At most so many members.") var limit = 1_000
  @Flag(help: "Print JSON.") var json = false

  /// As `GET /groups` tells it.
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

  /// As `GET /groups/{name}` tells it.
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
    guard limit > 0 else { throw StartProblem("--limit is 1 or more.", status: .couldNotRun) }
    try await OperatorStore.with(configuration) { opened in
      let groups = try await opened.desk.groups(of: opened.generation.accounts)
      guard let name else { return try show(groups) }
      guard let group = groups.first(where: { $0.name.rawValue == name }) else {
        throw StartProblem(
          "There is no group \"\(name)\"\(Suggestion.phrase(for: name, among: groups.map(\.name.rawValue))).")
      }
      let members = try await opened.desk.members(of: group.name, after: after, limit: limit).map { member, account in
        Member(
          account: account.id, identifiers: account.identifiers.filter { $0.verifiedAt != nil }.map(\.identifier.value),
          addedAt: member.addedAt.text)
      }
      if json { return print(try ToolJSON.text(Group(group: name, kind: group.kind.rawValue, members: members))) }
      if group.kind == .computed {
        print("\(name) is computed by a function of accounts.lua; it has no list of members")
      }
      for member in members {
        print("\(member.account)  \(member.identifiers.joined(separator: ", "))  since \(member.addedAt)")
      }
      if members.count == limit, let last = members.last { print("… more behind --after \(last.account)") }
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
  /// A group that members can be added to, or removed from.
  /// - Throws: a sentence, with exit status 1.
  fileprivate func group(named text: String, toAdd isToAdd: Bool) throws -> GroupName {
    guard let name = GroupName(rawValue: text) else {
      throw StartProblem("\"\(text)\" is no group: \(GroupName.rule).")
    }
    guard isToAdd, let problem = generation.accounts.problem(ofAddingTo: name) else { return name }
    let meant =
      generation.accounts.groups[name] == nil
      ? Suggestion.nearest(to: text, among: generation.accounts.groups.keys.map(\.rawValue)) : nil
    throw StartProblem(problem + (meant.map { " Did you mean \"\($0)\"?" } ?? ""))
  }

  /// The account of the name, where rights are given.
  /// - Throws: a sentence, with exit status 1.
  fileprivate func holder(named text: String) async throws -> Account {
    switch try await desk.holder(named: text, region: gateway.region) {
    case .account(let account): return account
    case .claimedOnly(let accounts):
      throw StartProblem(
        "No account has verified \(text). \(accounts.joined(separator: ", ")) only claim\(accounts.count == 1 ? "s" : "") it, and may be somebody "
          + "else's: name the account by its id if you are sure.")
    case .unknown: throw StartProblem("There is no account \(text).")
    }
  }
}
