import MoongateCore
import MoongateSDK
import Testing

// Flows, accounts and the audit trail.

extension StoreConformance {
  static let flows: [StoreConformance] = [
    StoreConformance("a flow is read as it was stored, with the next version") { bench async throws in
      var record = bench.flow("one")
      #expect(try await bench.store.flow(record.id) == nil)
      #expect(try await bench.apply(.putFlow(record)) == .applied(locks: []))
      record.version = 1
      #expect(try await bench.store.flow(record.id) == record)
      record.step = StepRecord(
        provider: ProviderName(test: "phone_otp"), identifier: bench.phone(), isSkippable: false,
        account: AccountVersion(id: "ac_1", epoch: 0),
        challenge: Challenge(
          mac: [UInt8](0...31), issuedAt: bench.now, expiresAt: bench.now + .seconds(600),
          rule: CodeRule(length: 6, alphabet: .digits, lifetime: .seconds(600))))
      try await bench.apply(.putFlow(record))
      record.version = 2
      #expect(try await bench.store.flow(record.id) == record)
      try await bench.apply(.deleteFlow(record.id))
      #expect(try await bench.store.flow(record.id) == nil)
    },
    StoreConformance("a NUL in a text becomes the replacement character") { bench async throws in
      var account = bench.account("ac_1", verified: [bench.phone()])
      account.firstName = "a\0b"
      account.lastName = "\0"
      var session = bench.session("se_1", of: "ac_1")
      session.userAgent = "\0Firefox\0"
      try await bench.apply(.createAccount(account), .putSession(session))
      let kept = try await bench.store.account("ac_1")
      #expect(kept?.firstName == "a\u{fffd}b" && kept?.lastName == "\u{fffd}")
      #expect(try await bench.store.sessions(of: "ac_1").map(\.userAgent) == ["\u{fffd}Firefox\u{fffd}"])
      _ = try await bench.store.recordHeartbeat(ServingNode(id: "a\0b", generation: "g", seenAt: bench.now))
      try await bench.store.leave("a\0b", at: bench.now)
      #expect(try await bench.store.nodes(at: bench.now).isEmpty, "search values are changed like stored values")
    },
    StoreConformance("of fifty parallel changes of a flow one wins, and the others change nothing") {
      bench async throws in
      var record = bench.flow("one")
      try await bench.apply(.putFlow(record))
      record.version = 1
      let stale = record
      try await bench.apply(.createAccount(bench.account("ac_1", verified: [bench.phone()])))
      let results = try await withThrowingTaskGroup(of: ApplyResult.self) { group in
        for number in 0..<50 {
          group.addTask {
            try await bench.apply(.putSession(bench.session("se_\(number)", of: "ac_1")), .putFlow(stale))
          }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(results.count { $0 == .applied(locks: []) } == 1)
      #expect(results.count { $0 == .conflict(.flowChanged) } == 49)
      #expect(try await bench.store.sessions(of: "ac_1").count == 1)
    },
    StoreConformance("an acknowledged change is visible to every later read, however many run at once") {
      bench async throws in
      let unseen = try await withThrowingTaskGroup(of: Int.self) { group in
        for task in 0..<32 {
          group.addTask {
            var unseen = 0
            for number in 0..<10 {
              let record = bench.flow("\(task) \(number)")
              try await bench.apply(.putFlow(record))
              if try await bench.store.flow(record.id) == nil { unseen += 1 }
            }
            return unseen
          }
        }
        return try await group.reduce(0, +)
      }
      #expect(unseen == 0)
    },
    StoreConformance("a flow is created once, and a deleted one is not changed") { bench async throws in
      var record = bench.flow("one")
      try await bench.apply(.putFlow(record))
      #expect(try await bench.apply(.putFlow(record)) == .conflict(.flowChanged))
      record.version = 7
      #expect(try await bench.apply(.putFlow(record)) == .conflict(.flowChanged))
      try await bench.apply(.deleteFlow(record.id, version: 2))
      #expect(try await bench.store.flow(record.id) != nil, "a flow of another version stays")
      try await bench.apply(.deleteFlow(record.id, version: 1))
      record.version = 1
      #expect(try await bench.apply(.putFlow(record)) == .conflict(.flowChanged))
    },
    StoreConformance("a flow is kept until its lifetime has passed once more, dead or alive") { bench async throws in
      let record = bench.flow("one")
      try await bench.apply(.putFlow(record))
      bench.clock.set(record.expiresAt + .milliseconds(899_999))
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.store.flow(record.id) != nil)
      bench.clock.advance(by: .milliseconds(1))
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.store.flow(record.id) == nil)
    },
    StoreConformance("a conflict rolls back its whole transaction") { bench async throws in
      let limit = bench.limit(max: 1, lock: [.seconds(900)])
      let reserved = try await bench.reserve([limit])
      var record = bench.flow("one")
      record.version = 3
      let settlement = Settlement(
        reservation: reserved.id, outcome: .failure, limits: [limit], timer: nil, now: bench.now)
      let event = AuditEvent(id: DecisionID(text: "dc_1"), at: bench.now, kind: .refused)
      #expect(
        try await bench.apply(
          .settle(settlement), .createAccount(bench.account("ac_1", verified: [bench.phone()])), .audit(event),
          .putFlow(record))
          == .conflict(.flowChanged))
      #expect(try await bench.state(limit) == CounterState(pending: 1, oldest: bench.now))
      #expect(try await bench.store.account("ac_1") == nil)
      #expect(try await bench.store.events(limit: 10).isEmpty)
    },
  ]

  static let accounts: [StoreConformance] = [
    StoreConformance("an account is read as it was created, by id and by its verified identifiers") {
      bench async throws in
      let account = bench.account("ac_1", verified: [bench.phone()], claimed: [bench.email()])
      try await bench.apply(.createAccount(account))
      #expect(try await bench.store.account("ac_1") == account)
      #expect(try await bench.store.account(holding: bench.phone()) == account)
      #expect(
        try await bench.store.account(holding: bench.email()) == nil, "an unverified address identifies no account")
      let flow = bench.flow("with its account")
      try await bench.apply(.putFlow(flow))
      let found = try await bench.store.flow(flow.id, withHolderOf: bench.phone())
      #expect(found.flow?.version == 1 && found.holder == account)
      let none = try await bench.store.flow(TokenHash(of: [0]), withHolderOf: bench.email())
      #expect(none.flow == nil && none.holder == nil)
      #expect(try await bench.store.account("ac_2") == nil)
      let stored = try #require(try await bench.store.account("ac_1")?.identifier(.phone)?.identifier)
      #expect(stored.display == bench.phone().display && stored.attributes == bench.phone().attributes)
    },
    StoreConformance("of twenty concurrent registrations of one number, one succeeds") { bench async throws in
      let results = try await withThrowingTaskGroup(of: ApplyResult.self) { group in
        for number in 0..<20 {
          group.addTask {
            try await bench.apply(.createAccount(bench.account("ac_\(number)", verified: [bench.phone()])))
          }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(results.count { $0 == .applied(locks: []) } == 1)
      #expect(results.count { $0 == .conflict(.identifierTaken) } == 19)
    },
    StoreConformance("the account that proves an address owns it; other claimants lose address, password and sessions")
    {
      bench async throws in
      let password = ProviderName(test: "password")
      let pin = ProviderName(test: "pin")
      for id in ["ac_1", "ac_2"] {
        try await bench.apply(
          .createAccount(bench.account(id, claimed: [bench.email()])),
          .putProviderRecord(account: id, password, sealed: [1]),
          .putProviderRecord(account: id, pin, sealed: [2]), .putSession(bench.session("se_\(id)", of: id)))
      }
      let before = try await bench.store.sessionChanges(after: .max).latest
      bench.clock.advance(by: .seconds(1))
      #expect(
        try await bench.apply(.verifyIdentifier(account: "ac_2", bench.email(), forgetting: [password]))
          == .applied(locks: []))
      let owner = try #require(try await bench.store.account(holding: bench.email()))
      #expect(
        owner.id == "ac_2" && owner.identifiers == [HeldIdentifier(identifier: bench.email(), verifiedAt: bench.now)])
      #expect(owner.credentials == [password, pin])
      let loser = try #require(try await bench.store.account("ac_1"))
      #expect(loser.identifiers.isEmpty && loser.credentials == [pin])
      #expect(try await bench.store.sessions(of: "ac_1").isEmpty)
      #expect(try await bench.store.sessions(of: "ac_2").count == 1)
      #expect(Set(try await bench.store.sessionChanges(after: before).accounts) == ["ac_1", "ac_2"])
      #expect(try await bench.apply(.verifyIdentifier(account: "ac_1", bench.email())) == .conflict(.identifierTaken))
      #expect(
        try await bench.apply(.createAccount(bench.account("ac_3", verified: [bench.email()])))
          == .conflict(.identifierTaken))
    },
    StoreConformance("registering with a verified address takes it from those who claim it") { bench async throws in
      let (pin, password) = (ProviderName(test: "pin"), ProviderName(test: "password"))
      try await bench.apply(
        .createAccount(bench.account("ac_1", claimed: [bench.email()])),
        .putProviderRecord(account: "ac_1", password, sealed: [1]),
        .putProviderRecord(account: "ac_1", pin, sealed: [2]), .putSession(bench.session("se_1", of: "ac_1")))
      #expect(
        try await bench.apply(.createAccount(bench.account("ac_2", verified: [bench.email()]), forgetting: [password]))
          == .applied(locks: []))
      #expect(try await bench.store.account("ac_1")?.credentials == [pin])
      #expect(try await bench.store.account("ac_1")?.identifiers == [])
      #expect(try await bench.store.sessions(of: "ac_1").isEmpty)
    },
    StoreConformance("a second identifier is added, and proving one again changes nothing") { bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_1", verified: [bench.phone()])))
      let first = bench.now
      bench.clock.advance(by: .seconds(5))
      try await bench.apply(
        .verifyIdentifier(account: "ac_1", bench.email()), .verifyIdentifier(account: "ac_1", bench.phone()))
      #expect(
        try await bench.store.account("ac_1")?.identifiers
          == [
            HeldIdentifier(identifier: bench.phone(), verifiedAt: first),
            HeldIdentifier(identifier: bench.email(), verifiedAt: bench.now),
          ])
      #expect(
        try await bench.apply(.verifyIdentifier(account: "ac_9", bench.email("x@example.com")))
          == .conflict(.accountUnavailable))
    },
    StoreConformance("the time of last use moves forward only") { bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_1")))
      bench.clock.advance(by: .seconds(60))
      try await bench.apply(.recordUse(account: "ac_1"))
      let seen = bench.now
      bench.clock.advance(by: .seconds(-30))
      try await bench.apply(.recordUse(account: "ac_1"), .recordUse(account: "nobody"))
      #expect(try await bench.store.account("ac_1")?.lastSeenAt == seen)
    },
    StoreConformance("a provider's record of an account is replaced and removed") { bench async throws in
      let pin = ProviderName(test: "pin")
      try await bench.apply(.createAccount(bench.account("ac_1")))
      #expect(try await bench.store.providerRecord(of: "ac_1", for: pin) == nil)
      try await bench.apply(.putProviderRecord(account: "ac_1", pin, sealed: [1, 2]))
      try await bench.apply(.putProviderRecord(account: "ac_1", pin, sealed: [3]))
      #expect(try await bench.store.providerRecord(of: "ac_1", for: pin) == [3])
      #expect(try await bench.store.account("ac_1")?.credentials == [pin])
      try await bench.apply(.putProviderRecord(account: "ac_1", pin, sealed: nil))
      #expect(try await bench.store.providerRecord(of: "ac_1", for: pin) == nil)
      #expect(try await bench.store.account("ac_1")?.credentials == [])
      #expect(
        try await bench.apply(.putProviderRecord(account: "ac_9", pin, sealed: [1])) == .conflict(.accountUnavailable))
    },
    StoreConformance("the kinds of imported hash are those of the records") { bench async throws in
      let (pin, password) = (ProviderName(test: "pin"), ProviderName(test: "password"))
      let kinds: [HashWork] = [.bcrypt(rounds: 10), .bcrypt(rounds: 12), .argon2(.argon2id, version: 19, .shipped)]
      #expect(try await bench.store.importedHashes(of: password) == [])
      for number in 0..<6 {
        let id = "ac_\(number)"
        try await bench.apply(
          .createAccount(bench.account(id)), .putProviderRecord(account: id, password, sealed: [1]),
          .putProviderRecord(account: id, pin, sealed: [1]),
          .markImportedHash(account: id, password, kinds[number % 3]))
      }
      #expect(try await bench.store.importedHashes(of: password) == Set(kinds))
      #expect(try await bench.store.importedHashes(of: pin) == [])
      // A record that is sealed again keeps its kind; one that is said to hold none, removed or deleted does not.
      try await bench.apply(.putProviderRecord(account: "ac_0", password, sealed: [2]))
      try await bench.apply(.markImportedHash(account: "ac_1", password, nil))
      try await bench.apply(.putProviderRecord(account: "ac_4", password, sealed: nil))
      try await bench.apply(.deleteAccount("ac_2", traces: []), .deleteAccount("ac_5", traces: []))
      #expect(try await bench.store.importedHashes(of: password) == [.bcrypt(rounds: 10)])
      // Without the record, there is nothing to mark.
      try await bench.apply(.markImportedHash(account: "ac_4", password, .bcrypt(rounds: 12)))
      #expect(try await bench.store.importedHashes(of: password) == [.bcrypt(rounds: 10)])
    },
    StoreConformance("an account says which secrets it must replace, until that is said anew") { bench async throws in
      let (pin, password) = (ProviderName(test: "pin"), ProviderName(test: "password"))
      func due() async throws -> [ProviderName: DueChange]? { try await bench.store.account("ac_1")?.dueChanges }
      try await bench.apply(
        .createAccount(bench.account("ac_1")), .putProviderRecord(account: "ac_1", password, sealed: [1]),
        .putProviderRecord(account: "ac_1", pin, sealed: [1]))
      #expect(try await due() == [:])
      // Without the record, there is nothing to replace.
      try await bench.apply(
        .setDueChange(account: "ac_1", ProviderName(test: "totp"), .weak),
        .setDueChange(account: "ac_2", password, .weak))
      #expect(try await due() == [:])
      try await bench.apply(.setDueChange(account: "ac_1", password, .weak))
      #expect(try await due() == [password: .weak])
      #expect(try await bench.store.account("ac_1")?.credentials == [pin, password])
      // A newer form of the same secret changes nothing.
      try await bench.apply(.putProviderRecord(account: "ac_1", password, sealed: [2]))
      try await bench.apply(.setDueChange(account: "ac_1", pin, .breached))
      #expect(try await due() == [password: .weak, pin: .breached])
      try await bench.apply(.setDueChange(account: "ac_1", password, nil))
      #expect(try await due() == [pin: .breached])
      try await bench.apply(.putProviderRecord(account: "ac_1", pin, sealed: nil))
      try await bench.apply(.putProviderRecord(account: "ac_1", pin, sealed: [3]))
      #expect(try await due() == [:], "it belonged to the record")
    },
  ]

  static let trail: [StoreConformance] = [
    StoreConformance("events are read newest first, and by their decision") { bench async throws in
      let events = (0..<5).map { number in
        AuditEvent(
          id: DecisionID(text: "dc_\(number)"), at: bench.now + .seconds(number), kind: .refused, flow: "login",
          code: "invalid_code",
          detail: ["limit": "verify"])
      }
      try await bench.store.append(Array(events[..<4]))
      try await bench.apply(.audit(events[4]))
      try await bench.store.append([])
      #expect(try await bench.store.events(limit: 3) == Array(events.reversed()[..<3]))
      #expect(try await bench.store.event(DecisionID(text: "dc_2")) == events[2])
      #expect(try await bench.store.event(DecisionID(text: "dc_9")) == nil)
    },
    StoreConformance("events are kept for seven days") { bench async throws in
      try await bench.store.append([AuditEvent(id: DecisionID(text: "dc_1"), at: bench.now, kind: .refused)])
      bench.clock.advance(by: .seconds(7 * 86_400 - 1))
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.store.event(DecisionID(text: "dc_1")) != nil)
      bench.clock.advance(by: .seconds(1))
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.store.event(DecisionID(text: "dc_1")) == nil)
    },
    StoreConformance("the latest moment is the highest that was recorded") { bench async throws in
      #expect(try await bench.store.latestMoment() < bench.now)
      _ = try await bench.reserve([bench.limit()])
      #expect(try await bench.store.latestMoment() == bench.now)
      let highest = bench.now + .seconds(5)
      try await bench.store.append([AuditEvent(id: DecisionID(text: "dc_1"), at: highest, kind: .refused)])
      bench.clock.advance(by: .seconds(1))
      try await bench.apply(.clearTimer([1]))
      #expect(try await bench.store.latestMoment() == highest)
    },
    StoreConformance("pruning ends, keeps what counts and deletes the rest") { bench async throws in
      let kept = bench.limit("kept", window: .seconds(3600))
      let gone = bench.limit("gone", window: .seconds(60))
      for _ in 0..<2 {
        try await bench.attempt([kept], .failure)
        try await bench.attempt([gone], .failure)
      }
      let many = (0..<1200).map { bench.limit("many", of: "\($0)", window: .seconds(60)) }
      try await bench.attempt(many, .failure)
      bench.clock.advance(by: .seconds(120))
      var steps = 0
      while try await bench.store.prune(at: bench.now) {
        steps += 1
        try #require(steps < 1000)
      }
      #expect(try await bench.state(kept).settled == 2)
      #expect(try await bench.state(gone) == CounterState())
    },
  ]
}
