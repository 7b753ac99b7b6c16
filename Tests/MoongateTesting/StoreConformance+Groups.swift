import MoongateCore
import MoongateSDK
import Testing

// The members of groups.

extension StoreConformance {
  static let groups: [StoreConformance] = [
    StoreConformance("members are added, listed by their ids, counted and removed, and every process learns of it") {
      bench async throws in
      let ops = try GroupName(test: "ops")
      let odd = try GroupName(test: "a,b \"c\" 100%")
      for id in ["ac_2", "ac_1", "ac_3"] {
        try await bench.apply(.createAccount(bench.account(id, verified: [bench.phone("+91999999999\(id.suffix(1))")])))
      }
      let before = try await bench.store.sessionChanges(after: .max).latest
      for id in ["ac_2", "ac_1"] {
        #expect(try await bench.apply(.setGroupMembership(account: id, ops, true)) == .applied(locks: []))
      }
      try await bench.apply(.setGroupMembership(account: "ac_1", odd, true))
      #expect(Set(try await bench.store.sessionChanges(after: before).accounts) == ["ac_1", "ac_2"])
      #expect(try await bench.store.account("ac_1")?.groups == [ops, odd])
      #expect(try await bench.store.account("ac_3")?.groups == [])
      #expect(try await bench.store.groupCounts() == [ops: 2, odd: 1])
      #expect(try await bench.store.members(of: ops, after: nil, limit: 1).map(\.account) == ["ac_1"])
      #expect(try await bench.store.members(of: ops, after: "ac_1", limit: 9).map(\.account) == ["ac_2"])
      let added = GroupMember(group: odd, account: "ac_1", addedAt: bench.now)
      #expect(
        try await bench.store.memberships(of: "ac_1") == [
          added, GroupMember(group: ops, account: "ac_1", addedAt: bench.now),
        ])
      // Adding a member again changes nothing and announces nothing.
      bench.clock.advance(by: .seconds(1))
      let between = try await bench.store.sessionChanges(after: .max).latest
      try await bench.apply(
        .setGroupMembership(account: "ac_1", odd, true), .setGroupMembership(account: "ac_3", ops, false))
      #expect(try await bench.store.sessionChanges(after: between).accounts.isEmpty)
      #expect(try await bench.store.memberships(of: "ac_1").first == added)
      try await bench.apply(.setGroupMembership(account: "ac_1", odd, false))
      #expect(try await bench.store.sessionChanges(after: between).accounts == ["ac_1"])
      #expect(try await bench.store.account("ac_1")?.groups == [ops])
      #expect(
        try await bench.apply(.setGroupMembership(account: "nobody", ops, true)) == .conflict(.accountUnavailable))
    },
    StoreConformance("a session is found with the groups of its account") { bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_1", verified: [bench.phone(), bench.email()])))
      try await bench.apply(
        .putSession(bench.session("se_1", of: "ac_1")),
        .setGroupMembership(account: "ac_1", try GroupName(test: "ops"), true))
      let found = try await bench.store.session(TokenHash(of: "se_1".utf8))
      let ops = try GroupName(test: "ops")
      #expect(found?.account.groups == [ops] && found?.account.identifiers.count == 2)
    },
    // Attack: an account that is deleted, reclaimed by its owner or merged into another one passes its groups on to
    // someone who never had them.
    StoreConformance("memberships end with the account and with its reclaim, and are not merged into another") {
      bench async throws in
      let ops = try GroupName(test: "ops")
      let address = bench.email()
      try await bench.apply(
        .createAccount(bench.account("ac_1", verified: [bench.phone()])),
        .setGroupMembership(account: "ac_1", ops, true))
      try await bench.apply(.deleteAccount("ac_1", traces: []))
      try await bench.apply(.createAccount(bench.account("ac_1", verified: [bench.phone()])))
      #expect(try await bench.store.account("ac_1")?.groups == [])
      try await bench.apply(
        .createAccount(bench.account("ac_2", verified: [address])), .setGroupMembership(account: "ac_2", ops, true))
      try await bench.apply(.reclaimAccount("ac_2", by: address, keeping: []))
      #expect(try await bench.store.account("ac_2")?.groups == [])
      try await bench.apply(.setGroupMembership(account: "ac_1", ops, true), .absorbAccount("ac_1", into: "ac_2"))
      #expect(try await bench.store.account("ac_2")?.groups == [])
      #expect(try await bench.store.groupCounts() == [:])
    },
  ]
}

extension GroupName {
  /// A group name for tests.
  /// - Throws: an error if the name is invalid, so that only the calling test fails.
  package init(test name: String) throws { self = try #require(GroupName(rawValue: name)) }
}
