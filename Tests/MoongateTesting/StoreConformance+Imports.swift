import MoongateCore
import MoongateSDK
import Testing

// Imports of accounts.

extension StoreConformance {
  static let imports: [StoreConformance] = [
    StoreConformance("an account of an import is locked until the import is complete") { bench async throws in
      let lease = try #require(try await bench.lease("one", name: AccountImport.lease))
      let (record, group) = (ProviderName(test: "password"), try GroupName(test: "staff"))
      var account = bench.account("ac_1", verified: [bench.phone()], claimed: [bench.name("asha"), bench.email()])
      account.groups = [group]
      let new = StoredImport(
        account: account,
        records: [.init(provider: record, sealed: [1, 2], importedHash: .bcrypt(rounds: 12), dueChange: .weak)])
      var locked = bench.account("ac_2", claimed: [bench.email("ravi@example.com")])
      locked.isLocked = true
      #expect(
        try await bench.apply(
          .requireLease(lease), .importAccount(new), .importAccount(StoredImport(account: locked, records: [])))
          == .applied(locks: []))
      #expect(try await bench.store.account("ac_1")?.isLocked == true)
      #expect(try await bench.apply(.putSession(bench.session("se_1", of: "ac_1"))) == .conflict(.accountUnavailable))
      // Attack: an operator's unlocking lets somebody use an account that may be deleted again.
      #expect(try await bench.apply(.setLocked(account: "ac_1", false)) == .applied(locks: []))
      #expect(try await bench.store.account("ac_1")?.isLocked == true)
      #expect(try await bench.store.settleImport(at: bench.now) == false, "it is under way")
      #expect(
        try await bench.apply(.requireLease(lease), .completeImport(lease, forgetting: [])) == .applied(locks: []))
      while try await bench.store.settleImport(at: bench.now) {}
      (account.credentials, account.dueChanges) = ([record], [record: .weak])
      #expect(try await bench.store.account("ac_1") == account)
      #expect(try await bench.store.account("ac_2") == locked)
      #expect(try await bench.store.providerRecord(of: "ac_1", for: record) == [1, 2])
      #expect(try await bench.store.importedHashes(of: record) == [.bcrypt(rounds: 12)])
      #expect(try await bench.lease("two", name: AccountImport.lease)?.fence == 1, "the next import can begin")
    },
    // Attack: an import stops in the middle, and somebody signs in to a part of the accounts.
    StoreConformance("the accounts of an import that stopped are deleted") { bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_0", claimed: [bench.email()])))
      let lease = try #require(try await bench.lease("one", name: AccountImport.lease))
      for number in 1...250 {
        let account = bench.account("ac_\(number)", verified: [bench.email("user\(number)@example.com")])
        try await bench.apply(.requireLease(lease), .importAccount(StoredImport(account: account, records: [])))
      }
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.store.account("ac_250") != nil, "it is under way")
      bench.clock.advance(by: .seconds(90))
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.store.accounts(after: nil, limit: 500).map(\.id) == ["ac_0"])
      // Attack: an importer that was suspended goes on after its accounts were deleted.
      let late = StoredImport(account: bench.account("ac_1", verified: [bench.phone()]), records: [])
      #expect(try await bench.apply(.requireLease(lease), .importAccount(late)) == .conflict(.leaseLost))
      #expect(
        try await bench.apply(.requireLease(lease), .completeImport(lease, forgetting: [])) == .conflict(.leaseLost))
      #expect(try await bench.store.account("ac_1") == nil)
    },
    // Attack: somebody claims an address with a password of their own, before its owner is imported.
    StoreConformance("a complete import takes the claims of others, and one that stopped does not") {
      bench async throws in
      let password = ProviderName(test: "password")
      try await bench.apply(
        .createAccount(bench.account("ac_thief", claimed: [bench.email()])),
        .putProviderRecord(account: "ac_thief", password, sealed: [1]))
      for isComplete in [false, true] {
        let lease = try #require(try await bench.lease("one", name: AccountImport.lease))
        let owner = StoredImport(account: bench.account("ac_1", verified: [bench.email()]), records: [])
        #expect(try await bench.apply(.requireLease(lease), .importAccount(owner)) == .applied(locks: []))
        if isComplete { try await bench.apply(.requireLease(lease), .completeImport(lease, forgetting: [password])) }
        bench.clock.advance(by: .seconds(90))
        while try await bench.store.settleImport(at: bench.now) {}
        let thief = try #require(try await bench.store.account("ac_thief"))
        #expect(thief.identifiers.isEmpty == isComplete && thief.credentials.isEmpty == isComplete)
        #expect(thief.epoch == (isComplete ? 1 : 0))
        #expect(try await bench.store.account(holding: bench.email())?.id == (isComplete ? "ac_1" : nil))
      }
    },
    StoreConformance("an account of an import conflicts by its id, a verified identifier and a name") {
      bench async throws in
      try await bench.apply(
        .createAccount(bench.account("ac_1", verified: [bench.phone()], claimed: [bench.name("scope1")])))
      let lease = try #require(try await bench.lease("one", name: AccountImport.lease))
      for account in [
        bench.account("ac_1"), bench.account("ac_2", verified: [bench.phone()]),
        bench.account("ac_2", claimed: [bench.name("scope1")]), bench.account("ac_2", claimed: [bench.name("scopel")]),
      ] {
        #expect(
          try await bench.apply(.requireLease(lease), .importAccount(StoredImport(account: account, records: [])))
            == .conflict(.identifierTaken))
      }
      #expect(try await bench.store.account("ac_2") == nil)
      var names = ImportedNames()
      names.ids = ["ac_1", "ac_2"]
      names.verified = [bench.phone(), bench.phone("+918888888888"), bench.email()]
      names.exclusive = [bench.name("scopel"), bench.name("scope1"), bench.name("scope2")]
      let found = try await bench.store.existing(names)
      #expect(found.ids == ["ac_1"] && found.verified == [bench.phone()])
      #expect(found.exclusive == [bench.name("scopel"), bench.name("scope1")])
      #expect(try await bench.store.existing(ImportedNames()) == ImportedNames())
      // More than one statement looks up.
      names.ids = Set((0..<450).map { "ac_\($0)" })
      #expect(try await bench.store.existing(names).ids == ["ac_1"])
    },
  ]
}
