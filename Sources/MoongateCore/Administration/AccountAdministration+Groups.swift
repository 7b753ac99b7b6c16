import MoongateSDK

// Manages the members of groups, for `moongate group` and the admin listener.

extension AccountAdministration {
  /// A group as operators see it.
  package struct GroupSummary: Sendable, Equatable {
    /// How accounts.lua defines the group.
    package enum Kind: String, Sendable {
      /// `members()`.
      case members
      /// By a function.
      case computed
      /// Not defined, or not any more. Its members are kept but have no effect.
      case undefined
    }

    package let name: GroupName
    package let kind: Kind
    /// How many accounts operators have added; nil for a computed group.
    package let members: Int?
  }

  /// The account that a text refers to when an operator is about to grant rights.
  package enum Holder: Sendable {
    case account(Account)
    /// Accounts claim the number or address, but none has verified it.
    case claimedOnly(accounts: [String])
    case unknown
  }

  /// The result of changing a membership.
  package enum MembershipChange: Sendable, Equatable {
    case changed
    /// The membership was already as requested.
    case unchanged
    /// The account does not exist.
    case unknown
  }

  /// All groups that accounts.lua defines or that have members, sorted by name.
  package func groups(of rules: AccountRules) async throws(StoreFault) -> [GroupSummary] {
    let counts = try await store.groupCounts()
    return Set(counts.keys).union(rules.groups.keys).sorted().map { name in
      switch rules.groups[name] {
      case .members: GroupSummary(name: name, kind: .members, members: counts[name] ?? 0)
      case .computed: GroupSummary(name: name, kind: .computed, members: nil)
      case nil: GroupSummary(name: name, kind: .undefined, members: counts[name] ?? 0)
      }
    }
  }

  /// The members of a group with their accounts, sorted by account ID.
  package func members(
    of group: GroupName, after id: String? = nil, limit: Int
  ) async throws(StoreFault) -> [(member: GroupMember, account: Account)] {
    var found: [(GroupMember, Account)] = []
    for member in try await store.members(of: group, after: id, limit: limit) {
      if let account = try await store.account(member.account) { found.append((member, account)) }
    }
    return found
  }

  /// The account that a text refers to: by its ID, or by a number or an address that it has verified.
  ///
  /// Attack: someone registers with `asha@example.com` before Asha does, verifies nothing, and waits for the operator
  /// to add that address to a group. An address that is only claimed therefore refers to no account here.
  package func holder(named text: String, region: String) async throws(StoreFault) -> Holder {
    let found = try await accounts(named: text, region: region)
    guard !found.isEmpty else { return .unknown }
    let named = identifiers(named: text, region: region)
    let holder = found.first { account in
      account.id == text
        || account.identifiers.contains { held in
          held.verifiedAt != nil
            && named.contains { $0.kind == held.identifier.kind && $0.value == held.identifier.value }
        }
    }
    return holder.map { .account($0) } ?? .claimedOnly(accounts: found.map(\.id))
  }

  /// Adds an account to a group, or removes it. Open sessions follow within a second.
  package func setMembership(of account: String, in group: GroupName, _ isMember: Bool) async throws(StoreFault)
    -> MembershipChange
  {
    guard let found = try await store.account(account) else { return .unknown }
    guard found.groups.contains(group) != isMember else { return .unchanged }
    let now = clock.now()
    var line = event(isMember ? .groupAdded : .groupRemoved, account, at: now)
    line.detail["group"] = group.rawValue
    switch try await store.apply([.setGroupMembership(account: account, group, isMember), .audit(line)], at: now) {
    case .applied: return .changed
    case .conflict: return .unknown
    }
  }
}
