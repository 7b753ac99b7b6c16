import MoongateCore
import MoongateSDK
import Testing

/// User names: nobody verifies them, and only one account has one of those that look alike.
extension StoreConformance {
  static let names: [StoreConformance] = [
    StoreConformance("a name is read as it was created, and leads to its account as a claim") { bench async throws in
      let account = bench.account("ac_1", claimed: [bench.name("asha.rao"), bench.email()])
      try await bench.apply(.createAccount(account))
      #expect(try await bench.store.account("ac_1") == account)
      #expect(try await bench.store.account(holding: bench.name("asha.rao")) == nil)
      #expect(try await bench.store.accounts(naming: bench.name("asha.rao")) == [account])
      #expect(
        try await bench.store.accounts(claiming: bench.name("asha.rao"), having: nil, limit: 10) == ["ac_1"])
      #expect(try await bench.store.isTaken(bench.name("asha.rao")))
      #expect(try await bench.store.isTaken(bench.name("asha.roy")) == false)
      #expect(try await bench.store.isTaken(bench.email()) == false, "an address is claimed by as many as want to")
    },
    // Attack: someone registers a name that looks like another user's: in another script, or with a digit for a letter.
    StoreConformance("a name that looks like one that exists is taken") { bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_1", claimed: [bench.name("scope1")])))
      for name in ["scope1", "scopel", "ѕсоре1"] {
        #expect(try await bench.store.isTaken(bench.name(name)), "\(name)")
        #expect(
          try await bench.apply(.createAccount(bench.account("ac_2", claimed: [bench.name(name)])))
            == .conflict(.identifierTaken), "\(name)")
      }
      #expect(try await bench.store.account("ac_2") == nil)
      try await bench.apply(.createAccount(bench.account("ac_2", claimed: [bench.name("scope2")])))
      #expect(try await bench.store.account("ac_2")?.identifiers.map(\.identifier.value) == ["scope2"])
    },
    // Attack: two people register names that look alike at the same moment.
    StoreConformance("of twenty concurrent registrations of names that look alike, one succeeds") {
      bench async throws in
      let results = try await withThrowingTaskGroup(of: ApplyResult.self) { group in
        for number in 0..<20 {
          let name = number % 2 == 0 ? "paypal" : "paypa1"
          group.addTask {
            try await bench.apply(.createAccount(bench.account("ac_\(number)", claimed: [bench.name(name)])))
          }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(results.count { $0 == .applied(locks: []) } == 1)
      #expect(results.count { $0 == .conflict(.identifierTaken) } == 19)
    },
    StoreConformance("a claimed name conflicts if it is taken, and claiming it again changes nothing") {
      bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_1", claimed: [bench.name("asha")])))
      try await bench.apply(.createAccount(bench.account("ac_2", verified: [bench.phone()])))
      #expect(
        try await bench.apply(.claimIdentifier(account: "ac_2", bench.name("asha"))) == .conflict(.identifierTaken))
      #expect(try await bench.apply(.claimIdentifier(account: "ac_1", bench.name("asha"))) == .applied(locks: []))
      #expect(try await bench.store.account("ac_1")?.identifiers.count == 1)
      #expect(try await bench.store.account("ac_2")?.identifiers.count == 1)
    },
    StoreConformance("a name is free again once its account is deleted") { bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_1", claimed: [bench.name("asha")])))
      try await bench.apply(.deleteAccount("ac_1", traces: []))
      #expect(try await bench.store.isTaken(bench.name("asha")) == false)
      #expect(
        try await bench.apply(.createAccount(bench.account("ac_2", claimed: [bench.name("asha")])))
          == .applied(locks: []))
    },
    StoreConformance("an account with a name is not removed as unverified") { bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_1", claimed: [bench.name("asha")])))
      try await bench.apply(.createAccount(bench.account("ac_2", claimed: [bench.email()])))
      bench.clock.advance(by: .seconds(100 * 86_400))
      let expired = try await bench.store.expireUnverified(unusedSince: bench.now, at: bench.now)
      #expect(expired.removed == 1)
      #expect(try await bench.store.account("ac_1") != nil)
      #expect(try await bench.store.account("ac_2") == nil)
    },
    // Attack: somebody verifies an address that the owner of a name has mistyped, and the owner's password is deleted.
    StoreConformance("the password of an account with a name outlives a lost claim on an address") {
      bench async throws in
      let password = ProviderName(test: "password")
      try await bench.apply(
        .createAccount(bench.account("ac_1", claimed: [bench.name("asha"), bench.email()])),
        .putProviderRecord(account: "ac_1", password, sealed: [1]), .putSession(bench.session("se_1", of: "ac_1")))
      try await bench.apply(.createAccount(bench.account("ac_2", verified: [bench.email()]), forgetting: [password]))
      let named = try #require(try await bench.store.account("ac_1"))
      #expect(named.identifiers.map(\.identifier) == [bench.name("asha")])
      #expect(named.credentials == [password])
      #expect(try await bench.store.sessions(of: "ac_1").isEmpty)
    },
  ]
}
