import MoongateCore
import MoongateSDK
import Testing

// Changes of accounts: claims, changed identifiers, merged accounts, replaced sessions.

extension StoreConformance {
  static let changing: [StoreConformance] = [
    StoreConformance("claimants with a record are found, oldest first; a proof ends the claim") {
      bench async throws in
      let password = ProviderName(test: "password")
      func claimants(_ provider: ProviderName?, _ limit: Int = 10, of address: Identifier? = nil) async throws
        -> [String]
      {
        try await bench.store.accounts(claiming: address ?? bench.email(), having: provider, limit: limit)
      }
      #expect(try await claimants(password) == [])
      for id in ["ac_9", "ac_2", "ac_3"] {
        bench.clock.advance(by: .seconds(1))
        try await bench.apply(.createAccount(bench.account(id, claimed: [bench.email()])))
        if id != "ac_3" { try await bench.apply(.putProviderRecord(account: id, password, sealed: [1])) }
      }
      #expect(try await claimants(password) == ["ac_9", "ac_2"], "the third has no password")
      #expect(try await claimants(nil) == ["ac_9", "ac_2", "ac_3"])
      #expect(try await claimants(nil, 1) == ["ac_9"])
      #expect(try await claimants(ProviderName(test: "pin")) == [])
      #expect(try await claimants(password, of: bench.email("other@example.com")) == [])
      try await bench.apply(.verifyIdentifier(account: "ac_2", bench.email()))
      #expect(try await claimants(password) == [])
      #expect(try await claimants(nil) == [], "and the others have lost it")
    },
    StoreConformance("a reclaimed account keeps its identifier and the named records, nothing else") {
      bench async throws in
      let (pin, password) = (ProviderName(test: "pin"), ProviderName(test: "password"))
      try await bench.apply(
        .createAccount(bench.account("ac_1", claimed: [bench.email(), bench.phone()])),
        .putProviderRecord(account: "ac_1", pin, sealed: [1]),
        .putProviderRecord(account: "ac_1", password, sealed: [2]), .putSession(bench.session("se_1", of: "ac_1")))
      let before = try await bench.store.sessionChanges(after: .max).latest
      let reclaim = Change.reclaimAccount("ac_1", by: bench.email(), keeping: [password])
      #expect(try await bench.apply(reclaim) == .conflict(.recordChanged), "it is not proved")
      #expect(try await bench.store.account("ac_1")?.identifiers.count == 2)
      #expect(try await bench.apply(.verifyIdentifier(account: "ac_1", bench.email()), reclaim) == .applied(locks: []))
      let left = try #require(try await bench.store.account("ac_1"))
      #expect(left.identifiers.map(\.identifier) == [bench.email()] && left.credentials == [password])
      #expect(try await bench.store.sessions(of: "ac_1").isEmpty)
      #expect(try await bench.store.sessionChanges(after: before).accounts.contains("ac_1"))
      // An account that has verified something else in the meantime also has an owner.
      try await bench.apply(.verifyIdentifier(account: "ac_1", bench.phone()))
      #expect(try await bench.apply(reclaim) == .conflict(.recordChanged))
      #expect(
        try await bench.apply(.reclaimAccount("ac_9", by: bench.email(), keeping: [])) == .conflict(.recordChanged))
    },
    StoreConformance("a renewed identifier has new details, and every process learns of it") { bench async throws in
      func identity(_ attributes: [String: String], _ groups: [String]) -> Identifier {
        Identifier(kind: .federated, value: "site 1", display: "Asha", attributes: attributes, groups: groups)
      }
      let groups = (0..<500).map { "group \($0) é" }
      try await bench.apply(
        .createAccount(bench.account("ac_1", verified: [identity(["floor": "3"], groups)], claimed: [bench.email()])))
      let made = try #require(try await bench.store.account("ac_1")?.identifiers.first)
      #expect(made.identifier.groups == groups && made.identifier.attributes == ["floor": "3"])
      let before = try await bench.store.sessionChanges(after: .max).latest
      bench.clock.advance(by: .seconds(60))
      try await bench.apply(.renewIdentifier(account: "ac_1", identity(["desk": "9"], ["ops"])))
      let renewed = try #require(try await bench.store.account("ac_1")?.identifiers.first)
      #expect(renewed.identifier.groups == ["ops"] && renewed.identifier.attributes == ["desk": "9"])
      #expect(renewed.verifiedAt == made.verifiedAt)
      #expect(try await bench.store.sessionChanges(after: before).accounts == ["ac_1"])
      try await bench.apply(.renewIdentifier(account: "ac_1", identity([:], [])))
      #expect(try await bench.store.account("ac_1")?.identifiers.first?.identifier.groups == [])
      // Neither an identifier that the account only claims, nor another account's.
      let claimed = Identifier(kind: .email, value: bench.email().value, display: "other")
      try await bench.apply(.renewIdentifier(account: "ac_1", claimed))
      #expect(try await bench.store.account("ac_1")?.identifiers.last?.identifier.display == bench.email().display)
      try await bench.apply(.createAccount(bench.account("ac_2")))
      try await bench.apply(.renewIdentifier(account: "ac_2", identity([:], ["ops"])))
      #expect(try await bench.store.account("ac_1")?.identifiers.first?.identifier.groups == [])
    },
    StoreConformance("records contain when they were created and changed") { bench async throws in
      let pin = ProviderName(test: "pin")
      try await bench.apply(
        .createAccount(bench.account("ac_1")), .putProviderRecord(account: "ac_1", pin, sealed: [1]))
      let made = bench.now
      bench.clock.advance(by: .seconds(60))
      try await bench.apply(.putProviderRecord(account: "ac_1", pin, sealed: [2]))
      #expect(
        try await bench.store.factors(of: "ac_1") == [StoredFactor(provider: pin, addedAt: made, changedAt: bench.now)])
      #expect(try await bench.store.factors(of: "ac_2").isEmpty)
    },
    StoreConformance("unverified accounts are deleted when unused; all others stay") {
      bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_old", claimed: [bench.email()])))
      try await bench.apply(.createAccount(bench.account("ac_evicted", claimed: [bench.email("evicted@example.com")])))
      try await bench.apply(.createAccount(bench.account("ac_own", verified: [bench.phone("+911111111111")])))
      try await bench.apply(.verifyIdentifier(account: "ac_own", bench.email("evicted@example.com")))
      try await bench.apply(.createAccount(bench.account("ac_proved", claimed: [bench.email("proved@example.com")])))
      try await bench.apply(.verifyIdentifier(account: "ac_proved", bench.email("proved@example.com")))
      try await bench.apply(
        .createAccount(bench.account("ac_signed_in", claimed: [bench.email()])),
        .putSession(bench.session("se_1", of: "ac_signed_in")))
      let cut = bench.now
      bench.clock.advance(by: .seconds(60))
      try await bench.store.touch([bench.session("se_1", of: "ac_signed_in").token: SessionUse(at: bench.now)])
      try await bench.apply(.createAccount(bench.account("ac_new", claimed: [bench.email()])))
      let before = try await bench.store.sessionChanges(after: .max).latest
      let first = try await bench.store.expireUnverified(unusedSince: cut, at: bench.now)
      #expect(first == ExpiredAccounts(removed: 2, hasMore: false))
      #expect(
        try await bench.store.accounts(after: nil, limit: 10).map(\.id) == [
          "ac_new", "ac_own", "ac_proved", "ac_signed_in",
        ])
      #expect(Set(try await bench.store.sessionChanges(after: before).accounts) == ["ac_old", "ac_evicted"])
      #expect(
        try await bench.store.expireUnverified(unusedSince: cut, at: bench.now).removed == 0,
        "another gateway finds nothing")
      #expect(try await bench.store.account("ac_signed_in")?.lastSeenAt == bench.now, "a session counts as use")
    },
    StoreConformance("a user's events are found by account and identifier, newest first, without those of others") {
      bench async throws in
      func event(_ id: String, account: String?, identifier: String?) -> AuditEvent {
        AuditEvent(
          id: DecisionID(text: id), at: bench.now, kind: .refused, account: account, identifier: identifier,
          detail: ["about": "ac_1"])
      }
      try await bench.store.append([
        event("dc_1", account: "ac_1", identifier: "trace"), event("dc_2", account: nil, identifier: "trace"),
        event("dc_3", account: "ac_2", identifier: nil),
        event("dc_4", account: "ac_1", identifier: nil), event("dc_5", account: nil, identifier: "other"),
      ])
      let found = { (limit: Int) in
        try await bench.store.events(about: "ac_1", traces: ["trace"], limit: limit).map(\.id.text)
      }
      #expect(try await found(10) == ["dc_4", "dc_2", "dc_1"])
      #expect(try await found(1) == ["dc_4"])
      #expect(try await bench.store.events(about: "ac_3", traces: [], limit: 10).isEmpty)
    },
    StoreConformance("a claim is stored unverified, once, and identifies no account") { bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_1", verified: [bench.phone()])))
      for _ in 0..<2 {
        #expect(try await bench.apply(.claimIdentifier(account: "ac_1", bench.email())) == .applied(locks: []))
      }
      #expect(try await bench.apply(.claimIdentifier(account: "ac_1", bench.phone())) == .applied(locks: []))
      let held = try #require(try await bench.store.account("ac_1")).identifiers
      #expect(held.map(\.identifier) == [bench.phone(), bench.email()])
      #expect(held.map { $0.verifiedAt != nil } == [true, false])
      #expect(try await bench.store.account(holding: bench.email()) == nil)
      #expect(try await bench.apply(.claimIdentifier(account: "ac_9", bench.email())) == .conflict(.accountUnavailable))
    },
    StoreConformance("replacing an identifier removes the others of its kind") { bench async throws in
      let old = bench.email("old@example.com")
      try await bench.apply(
        .createAccount(
          bench.account("ac_1", verified: [bench.phone(), old], claimed: [bench.email("typo@example.com")])))
      let before = try await bench.store.sessionChanges(after: .max).latest
      try await bench.apply(
        .verifyIdentifier(account: "ac_1", bench.email()),
        .dropIdentifiers(account: "ac_1", .email, except: bench.email()))
      #expect(try await bench.store.account("ac_1")?.identifiers.map(\.identifier) == [bench.phone(), bench.email()])
      #expect(try await bench.store.account(holding: old) == nil)
      #expect(try await bench.store.sessionChanges(after: before).accounts.contains("ac_1"), "caches are told")
      #expect(
        try await bench.apply(.createAccount(bench.account("ac_2", verified: [old]))) == .applied(locks: []),
        "it is available again")
    },
    StoreConformance("names are filled in, never replaced") { bench async throws in
      let account = Account(id: "ac_1", createdAt: bench.now, lastSeenAt: bench.now)
      try await bench.apply(.createAccount(account), .nameAccount(account: "ac_1", firstName: "Asha", lastName: nil))
      try await bench.apply(.nameAccount(account: "ac_1", firstName: "Mallory", lastName: "Rao"))
      let named = try #require(try await bench.store.account("ac_1"))
      #expect(named.firstName == "Asha" && named.lastName == "Rao")
    },
    StoreConformance("an account has one language at a time") { bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_1", verified: [bench.phone()])))
      #expect(try await bench.store.account("ac_1")?.language == nil)
      try await bench.apply(.setLanguage(account: "ac_1", "hi"))
      try await bench.apply(.setLanguage(account: "ac_1", "pt-BR"))
      #expect(try await bench.store.account("ac_1")?.language == "pt-BR")
      #expect(try await bench.store.account(holding: bench.phone())?.language == "pt-BR")
    },
    StoreConformance("an account is renamed, and a name can be removed") { bench async throws in
      let account = Account(id: "ac_1", firstName: "Asha", lastName: "Rao", createdAt: bench.now, lastSeenAt: bench.now)
      try await bench.apply(.createAccount(account))
      let before = try await bench.store.sessionChanges(after: .max).latest
      try await bench.apply(.renameAccount(account: "ac_1", firstName: "Usha", lastName: nil))
      let named = try #require(try await bench.store.account("ac_1"))
      #expect(named.firstName == "Usha" && named.lastName == nil)
      #expect(try await bench.store.sessionChanges(after: before).accounts.contains("ac_1"), "caches are told")
      let missing = Change.renameAccount(account: "ac_9", firstName: "Usha", lastName: nil)
      #expect(try await bench.apply(missing) == .conflict(.accountUnavailable))
    },
    StoreConformance("one identifier is removed, and the others stay") { bench async throws in
      let elsewhere = Identifier(kind: .federated, value: "site 1", display: "Asha")
      try await bench.apply(.createAccount(bench.account("ac_1", verified: [bench.phone(), elsewhere])))
      #expect(try await bench.apply(.removeIdentifier(account: "ac_1", elsewhere)) == .applied(locks: []))
      #expect(try await bench.store.account("ac_1")?.identifiers.map(\.identifier) == [bench.phone()])
      #expect(try await bench.store.account(holding: elsewhere) == nil)
      #expect(try await bench.apply(.removeIdentifier(account: "ac_1", elsewhere)) == .conflict(.recordChanged))
    },
    StoreConformance("merging two accounts moves verified identifiers and deletes the rest") { bench async throws in
      let google = Identifier(kind: .federated, value: "google 1", display: "Asha")
      let pin = ProviderName(test: "pin")
      try await bench.apply(
        .createAccount(
          bench.account("ac_1", verified: [google, bench.email()], claimed: [bench.phone("+911111111111")])),
        .putProviderRecord(account: "ac_1", pin, sealed: [1]), .putSession(bench.session("se_1", of: "ac_1")))
      try await bench.apply(
        .createAccount(bench.account("ac_2", verified: [bench.phone()])), .putSession(bench.session("se_2", of: "ac_2"))
      )
      let before = try await bench.store.sessionChanges(after: .max).latest
      #expect(try await bench.apply(.absorbAccount("ac_1", into: "ac_2")) == .applied(locks: []))
      #expect(try await bench.store.account("ac_1") == nil)
      #expect(try await bench.store.providerRecord(of: "ac_1", for: pin) == nil)
      #expect(try await bench.store.session(bench.session("se_1", of: "ac_1").token) == nil)
      let heir = try #require(try await bench.store.account("ac_2"))
      #expect(heir.identifiers.map(\.identifier) == [bench.phone(), google, bench.email()])
      #expect(heir.credentials.isEmpty)
      for identifier in [google, bench.email(), bench.phone()] {
        #expect(try await bench.store.account(holding: identifier)?.id == "ac_2")
      }
      #expect(try await bench.store.sessions(of: "ac_2").map(\.id) == ["se_2"])
      let changes = try await bench.store.sessionChanges(after: before)
      #expect(Set(changes.accounts).isSuperset(of: ["ac_1", "ac_2"]))
    },
    StoreConformance("a moved identifier counts as verified at the time of the move") { bench async throws in
      let later = bench.now + .seconds(1000)
      try await bench.apply(
        .createAccount(bench.account("ac_1", verified: [bench.email()])),
        .createAccount(bench.account("ac_2", verified: [bench.phone()])))
      let wait = later + .seconds(60)
      #expect(
        try await bench.store.apply([.absorbAccount("ac_1", into: "ac_2", waitingUntil: wait)], at: later)
          == .applied(locks: []))
      #expect(try await bench.store.account("ac_2")?.identifier(.email)?.verifiedAt == later)
      #expect(try await bench.store.account("ac_2")?.identifier(.email)?.waitsUntil == wait)
      #expect(try await bench.store.account("ac_2")?.identifier(.phone)?.waitsUntil == nil)
      #expect(try await bench.store.account("ac_2")?.identifier(.phone)?.verifiedAt == bench.now)
    },
    StoreConformance("an account's epoch increases, and changes under an older one are refused") { bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_1", verified: [bench.phone()])))
      #expect(try await bench.store.account("ac_1")?.epoch == 0)
      let first = AccountVersion(id: "ac_1", epoch: 0)
      #expect(try await bench.apply(.requireEpoch(first), .raiseEpoch(account: "ac_1")) == .applied(locks: []))
      #expect(try await bench.store.account("ac_1")?.epoch == 1)
      #expect(
        try await bench.apply(.claimIdentifier(account: "ac_1", bench.email()), .requireEpoch(first))
          == .conflict(.epochChanged))
      #expect(try await bench.store.account("ac_1")?.identifiers.count == 1)
      #expect(
        try await bench.apply(.requireEpoch(AccountVersion(id: "ac_9", epoch: 0))) == .conflict(.epochChanged),
        "a deleted account")
    },
    StoreConformance("of many changes that demand and raise the same epoch, one succeeds") { bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_1", verified: [bench.phone()])))
      let results = try await withThrowingTaskGroup(of: ApplyResult.self) { group in
        for _ in 0..<20 {
          group.addTask {
            try await bench.apply(.requireEpoch(AccountVersion(id: "ac_1", epoch: 0)), .raiseEpoch(account: "ac_1"))
          }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(results.filter { $0 == .applied(locks: []) }.count == 1)
      #expect(try await bench.store.account("ac_1")?.epoch == 1)
    },
    StoreConformance("losing an address to its owner raises the epoch") { bench async throws in
      try await bench.apply(
        .createAccount(bench.account("ac_1", claimed: [bench.email()])), .createAccount(bench.account("ac_2")))
      try await bench.apply(.verifyIdentifier(account: "ac_2", bench.email()))
      #expect(try await bench.store.account("ac_1")?.epoch == 1)
      #expect(try await bench.store.account("ac_2")?.epoch == 0)
    },
    StoreConformance("an account cannot be merged into a deleted or locked one, nor a deleted one into another") {
      bench async throws in
      var locked = bench.account("ac_2", verified: [bench.phone()])
      locked.isLocked = true
      try await bench.apply(.createAccount(bench.account("ac_1", verified: [bench.email()])))
      try await bench.apply(.createAccount(locked))
      for (from, into) in [("ac_1", "ac_2"), ("ac_1", "ac_9"), ("ac_9", "ac_1"), ("ac_2", "ac_1")] {
        #expect(try await bench.apply(.absorbAccount(from, into: into)) == .conflict(.accountUnavailable))
      }
      #expect(try await bench.store.account("ac_1")?.identifiers.count == 1)
    },
    StoreConformance("a session is replaced once, and an ended one is not revived") { bench async throws in
      try await bench.apply(
        .createAccount(bench.account("ac_1", verified: [bench.phone()])),
        .putSession(bench.session("se_1", of: "ac_1", token: "old")))
      let old = bench.session("se_1", of: "ac_1", token: "old").token
      let results = try await withThrowingTaskGroup(of: ApplyResult.self) { group in
        for number in 0..<20 {
          group.addTask {
            try await bench.apply(.replaceSession(old, by: bench.session("se_1", of: "ac_1", token: "new \(number)")))
          }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(results.count { $0 == .applied(locks: []) } == 1)
      #expect(results.count { $0 == .conflict(.sessionEnded) } == 19)
      #expect(try await bench.store.session(old) == nil)
      let left = try await bench.store.sessions(of: "ac_1")
      #expect(left.count == 1 && left[0].id == "se_1")
      try await bench.apply(.endSessions(account: "ac_1", except: nil))
      #expect(try await bench.apply(.replaceSession(left[0].token, by: left[0])) == .conflict(.sessionEnded))
      #expect(try await bench.store.sessions(of: "ac_1").isEmpty)
    },
    StoreConformance("cleared counters start at zero, whether locked, disabled or half full; escalation is kept") {
      bench async throws in
      let locked = bench.limit("locked", max: 1, lock: [.seconds(10), .seconds(20)])
      let off = bench.limit("off", max: 1, window: nil, counts: .consecutiveFailures, disables: true)
      let half = bench.limit("half", max: 3)
      for limit in [locked, off, half] { try await bench.attempt([limit], .failure) }
      let untouched = bench.limit("untouched", max: 3)
      try await bench.attempt([untouched], .failure)
      let pending = try await bench.reserve([half])
      try await bench.apply(.clearCounters([locked, off, half, bench.limit("never used")]))
      #expect(try await bench.store.locks(at: bench.now).isEmpty)
      for limit in [locked, off, half] { #expect(try await bench.state(limit).used == 0) }
      #expect(try await bench.state(untouched).used == 1)
      try await bench.settle(pending.id, [half], .failure)
      #expect(try await bench.state(half).used == 0, "an earlier attempt does not count afterwards")
      try await bench.attempt([locked], .failure)
      #expect(try await bench.state(locked).lockedUntil == bench.now + .seconds(20))
    },
  ]
}
