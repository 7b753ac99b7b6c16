import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

/// `/groups`: lists groups and their members, and adds and removes members. `moongate group` does the same, with the
/// same fields.
struct GroupCalls: Sendable {
  /// The number of members per page.
  private static let most = 1_000

  let administration: AccountAdministration
  let adminGuard: AdminGuard
  let suggestion: AdminQuery.Suggestion

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .groups) { exchange throws(Refusal) in
        let rules = exchange.generation.accounts
        let groups = try await exchange.mappingFaults { () async throws(StoreFault) in
          try await administration.groups(of: rules)
        }
        return .json(.list(groups.map { .summary($0) }))
      },
      Endpoint(.call, .groupMembers) { exchange throws(Refusal) in
        let name = try group(exchange)
        let after = try AdminQuery(exchange, known: ["after"], suggestion: suggestion)["after"]
        let rules = exchange.generation.accounts
        let groups = try await exchange.mappingFaults { () async throws(StoreFault) in
          try await administration.groups(of: rules)
        }
        guard let summary = groups.first(where: { $0.name == name }) else {
          throw exchange.refusal(.notFound, detail: "There is no such group.")
        }
        let members = try await exchange.mappingFaults { () async throws(StoreFault) in
          try await administration.members(of: name, after: after, limit: Self.most)
        }
        return .json(.members(summary, members))
      },
      change(isMember: true), change(isMember: false),
    ]
  }

  private func change(isMember: Bool) -> Endpoint {
    Endpoint(.call, isMember ? .addGroupMember : .removeGroupMember) {
      exchange throws(Refusal) in
      let name = try group(exchange)
      if isMember, let problem = exchange.generation.accounts.problem(ofAddingTo: name) {
        throw exchange.refusal(.invalidInput, detail: problem, field: "group")
      }
      let account = try await account(exchange)
      let administration = administration.acting(as: adminGuard.identity(exchange))
      let outcome = try await exchange.mappingFaults { () async throws(StoreFault) in
        try await administration.setMembership(of: account.id, in: name, isMember)
      }
      guard outcome != .unknown else { throw exchange.refusal(.notFound, detail: "There is no such account.") }
      return .json(
        .members([
          "group": .text(name.rawValue), "account": .text(account.id), "member": .flag(isMember),
          "changed": .flag(outcome == .changed),
        ]))
    }
  }

  private func group(_ exchange: Exchange) throws(Refusal) -> GroupName {
    guard let name = exchange.decodedParameter(0).flatMap(GroupName.init(rawValue:)) else {
      throw exchange.refusal(.invalidInput, detail: "This is not a group name: \(GroupName.rule).", field: "group")
    }
    return name
  }

  private func account(_ exchange: Exchange) async throws(Refusal) -> Account {
    guard let text = exchange.decodedParameter(1) else {
      throw exchange.refusal(.notFound, detail: "There is no such account.")
    }
    switch try await exchange.mappingFaults({ () async throws(StoreFault) in
      try await administration.holder(named: text, region: exchange.gateway.region)
    }) {
    case .account(let account): return account
    case .claimedOnly:
      throw exchange.refusal(
        .invalidInput, detail: "No account has verified this number or address. Name the account by its id.",
        field: "account")
    case .unknown: throw exchange.refusal(.notFound, detail: "There is no such account.")
    }
  }
}

extension JSONValue {
  fileprivate static func summary(_ group: AccountAdministration.GroupSummary) -> JSONValue {
    .members([
      "group": .text(group.name.rawValue), "kind": .text(group.kind.rawValue), "members": .optional(group.members),
    ])
  }

  fileprivate static func members(
    _ group: AccountAdministration.GroupSummary, _ members: [(member: GroupMember, account: Account)]
  ) -> JSONValue {
    .members([
      "group": .text(group.name.rawValue), "kind": .text(group.kind.rawValue),
      "members": .list(
        members.map { member, account in
          .members([
            "account": .text(account.id),
            "identifiers": .list(
              account.identifiers.filter(\.isOwn).map { .text($0.identifier.value) }),
            "added_at": .text(member.addedAt.text),
          ])
        }),
    ])
  }
}
