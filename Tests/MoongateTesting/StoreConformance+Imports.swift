import MoongateCore
import MoongateSDK
import Testing

// Imports of accounts.

extension StoreConformance {
  static let imports: [StoreConformance] = [
    StoreConformance("an account of an import is locked until the import is complete") { bench async throws in
      let lease = try #require(try await bench.beginImport())
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
      let pending = try #require(try await bench.store.account("ac_1"))
      #expect(pending.isLocked && pending.isPending)
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
      #expect(try await bench.beginImport() != nil, "the next import can begin")
    },
    // Attack on ourselves: an import that paused goes on, once its accounts are deleted and another import has begun.
    StoreConformance("an import that is settled has lost its lease, also while the next one is under way") {
      bench async throws in
      let first = try #require(try await bench.beginImport())
      #expect(try await bench.beginImport() == nil, "one at a time")
      let half = StoredImport(account: bench.account("ac_1", verified: [bench.email()]), records: [])
      #expect(try await bench.apply(.requireLease(first), .importAccount(half)) == .applied(locks: []))
      bench.clock.advance(by: .seconds(90))
      #expect(try await bench.beginImport() == nil, "its accounts are there")
      while try await bench.store.settleImport(at: bench.now) {}
      var second: Lease?
      for isNextUnderWay in [false, true] {
        if isNextUnderWay { second = try await bench.beginImport() }
        #expect(try await bench.store.renewLease(first, for: AccountImport.length, at: bench.now) == nil)
        #expect(try await bench.apply(.requireLease(first), .importAccount(half)) == .conflict(.leaseLost))
        #expect(
          try await bench.apply(.requireLease(first), .completeImport(first, forgetting: [])) == .conflict(.leaseLost))
        try await bench.store.releaseLease(first, dueAt: bench.now, at: bench.now)
      }
      let next = try #require(second)
      #expect(next.fence > first.fence)
      let other = StoredImport(account: bench.account("ac_2", verified: [bench.phone()]), records: [])
      #expect(try await bench.apply(.requireLease(next), .importAccount(other)) == .applied(locks: []))
      #expect(try await bench.store.settleImport(at: bench.now) == false, "the release ended nothing")
      #expect(
        try await bench.apply(.requireLease(next), .completeImport(next, forgetting: [])) == .applied(locks: []))
      while try await bench.store.settleImport(at: bench.now) {}
      let stored = try await bench.store.accounts(after: nil, limit: 10)
      #expect(stored.map(\.id) == ["ac_2"] && stored.allSatisfy { !$0.isLocked })
    },
    // Attack on ourselves: an import begins when another one is complete and its accounts are not open, and they count
    // as those of an import that stopped.
    StoreConformance("no import begins before a complete one is settled") { bench async throws in
      let lease = try #require(try await bench.beginImport())
      let new = StoredImport(account: bench.account("ac_1", verified: [bench.email()]), records: [])
      #expect(try await bench.apply(.requireLease(lease), .importAccount(new)) == .applied(locks: []))
      #expect(
        try await bench.apply(.requireLease(lease), .completeImport(lease, forgetting: [])) == .applied(locks: []))
      #expect(try await bench.beginImport() == nil)
      try await bench.store.releaseLease(lease, dueAt: bench.now, at: bench.now)
      #expect(try await bench.beginImport() == nil)
      bench.clock.advance(by: .seconds(90))
      #expect(try await bench.beginImport() == nil)
      while try await bench.store.settleImport(at: bench.now) {}
      #expect(try await bench.store.account("ac_1")?.isLocked == false)
      #expect(try await bench.beginImport() != nil)
    },
    StoreConformance("of twenty imports that begin at once, one does") { bench async throws in
      let begun = try await withThrowingTaskGroup(of: Lease?.self) { group in
        for _ in 0..<20 { group.addTask { try await bench.beginImport() } }
        return try await group.reduce(into: [Lease?]()) { $0.append($1) }
      }
      #expect(begun.count { $0 != nil } == 1)
    },
    // Attack: an import stops in the middle, and somebody signs in to a part of the accounts.
    StoreConformance("the accounts of an import that stopped are deleted") { bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_0", claimed: [bench.email()])))
      let lease = try #require(try await bench.beginImport())
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
        let lease = try #require(try await bench.beginImport())
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
    // Attack: somebody claimed the address at the old system, with a password of their own, and their account comes in
    // the same file as the owner's, before or after it.
    StoreConformance("a complete import takes the claims of its own accounts too") { bench async throws in
      let password = ProviderName(test: "password")
      let lease = try #require(try await bench.beginImport())
      for id in ["ac_1", "ac_2", "ac_3"] {
        let isOwner = id == "ac_2"
        let account = bench.account(
          id, verified: isOwner ? [bench.email()] : [], claimed: isOwner ? [] : [bench.email()])
        let record = StoredImport.Record(provider: password, sealed: [1], importedHash: nil, dueChange: nil)
        try await bench.apply(.requireLease(lease), .importAccount(StoredImport(account: account, records: [record])))
      }
      try await bench.apply(.requireLease(lease), .completeImport(lease, forgetting: [password]))
      while try await bench.store.settleImport(at: bench.now) {}
      for account in try await bench.store.accounts(after: nil, limit: 10) {
        let isOwner = account.id == "ac_2"
        #expect(account.credentials == (isOwner ? [password] : []), "\(account.id)")
        #expect(account.identifiers.count == (isOwner ? 1 : 0) && account.epoch == (isOwner ? 0 : 1), "\(account.id)")
      }
    },
    StoreConformance("an account of an import conflicts by its id, a verified identifier and a name") {
      bench async throws in
      try await bench.apply(
        .createAccount(bench.account("ac_1", verified: [bench.phone()], claimed: [bench.name("scope1")])))
      let lease = try #require(try await bench.beginImport())
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

extension StoreBench {
  fileprivate func beginImport() async throws -> Lease? { try await store.beginImport(at: now) }
}
