import MoongateCore
import MoongateSDK
import Testing

// Sessions, and how other nodes learn about their changes.

extension StoreConformance {
  static let sessions: [StoreConformance] = [
    StoreConformance("a replaced token authorises nothing and ends the session that has replaced it") {
      bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_1")), .createAccount(bench.account("ac_2")))
      let token = { (name: String) in TokenHash(of: name.utf8) }
      try await bench.apply(.putSession(bench.session("se_1", of: "ac_1", token: "first")))
      try await bench.apply(.replaceSession(token("first"), by: bench.session("se_1", of: "ac_1", token: "second")))
      try await bench.apply(.replaceSession(token("second"), by: bench.session("se_1", of: "ac_2", token: "third")))
      #expect(try await bench.store.session(token("first")) == nil)
      for name in ["first", "second"] {
        #expect(try await bench.store.session(replacing: token(name), at: bench.now)?.token == token("third"))
      }
      #expect(try await bench.store.session(replacing: token("third"), at: bench.now) == nil)
      let later = bench.now + .seconds(7 * 86_400)
      #expect(try await bench.store.session(replacing: token("first"), at: later) == nil)
      try await bench.apply(.endSession(token("first")))
      #expect(try await bench.store.session(token("third")) == nil)
      #expect(try await bench.store.session(replacing: token("second"), at: bench.now) == nil)
    },
    // Attack: a thief replaces the token until the owner's is forgotten, so that the owner's sign-out ends nothing.
    StoreConformance("a replaced token is not pushed out by others: the session must sign in again first") {
      bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_1")))
      let token = { (number: Int) in TokenHash(of: "\(number)".utf8) }
      try await bench.apply(.putSession(bench.session("se_1", of: "ac_1", token: "0")))
      for start in stride(from: 0, to: 1000, by: 250) {
        let changes = (start..<start + 250).map { number in
          Change.replaceSession(token(number), by: bench.session("se_1", of: "ac_1", token: "\(number + 1)"))
        }
        #expect(try await bench.store.apply(changes, at: bench.now) == .applied(locks: []))
      }
      let beyond = Change.replaceSession(token(1000), by: bench.session("se_1", of: "ac_1", token: "1001"))
      #expect(try await bench.store.apply([beyond], at: bench.now) == .conflict(.sessionEnded))
      #expect(try await bench.store.session(replacing: token(0), at: bench.now)?.token == token(1000))
      let later = bench.now + .seconds(7 * 86_400)
      #expect(try await bench.store.apply([beyond], at: later) == .applied(locks: []))
      #expect(try await bench.store.session(replacing: token(0), at: later) == nil)
      #expect(try await bench.store.session(replacing: token(1000), at: later)?.token == token(1001))
    },
    StoreConformance("an account trusts at most so many devices, and forgets the one unseen for longest") {
      bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_1")), .createAccount(bench.account("ac_2")))
      func device(_ number: Int, of account: String = "ac_1") -> TrustedDevice {
        let seen = bench.now + .seconds(number)
        return TrustedDevice(
          id: "de_\(number)", account: account, createdAt: seen, lastSeenAt: seen, userAgent: "Firefox \(number)")
      }
      let most = TrustedDevice.mostPerAccount
      for number in 0...most { try await bench.apply(.trustDevice(device(number))) }
      try await bench.apply(.trustDevice(device(0, of: "ac_2")))
      let listed = try await bench.store.devices(of: "ac_1", at: bench.now)
      #expect(listed == (1...most).reversed().map { device($0) })
      #expect(try await bench.store.account("ac_1")?.devices == Set(listed.map(\.id)))
      var seen = device(1)
      (seen.lastSeenAt, seen.userAgent) = (bench.now + .seconds(100), nil)
      try await bench.apply(.trustDevice(seen))
      #expect(try await bench.store.devices(of: "ac_1", at: bench.now).first == seen)
      let expired = seen.lastSeenAt + DeviceToken.lifetime
      #expect(try await bench.store.devices(of: "ac_1", at: expired).isEmpty)
      try await bench.apply(.forgetDevice(account: "ac_1", id: "de_2"), .forgetDevice(account: "ac_1", id: "de_none"))
      #expect(try await bench.store.account("ac_1")?.devices.contains("de_2") == false)
      try await bench.apply(.forgetDevices(account: "ac_1", except: "de_3"))
      #expect(try await bench.store.account("ac_1")?.devices == ["de_3"])
      try await bench.apply(.forgetDevices(account: "ac_1", except: nil))
      #expect(try await bench.store.account("ac_1")?.devices == [])
      #expect(try await bench.store.account("ac_2")?.devices == ["de_0"])
      #expect(
        try await bench.store.apply([.trustDevice(device(1, of: "ac_9"))], at: bench.now)
          == .conflict(.accountUnavailable))
    },
    StoreConformance("a reset of a factor is remembered, whatever becomes of the factor") { bench async throws in
      let pin = ProviderName(test: "pin")
      try await bench.apply(
        .createAccount(bench.account("ac_1")), .putProviderRecord(account: "ac_1", pin, sealed: [1]))
      try await bench.apply(
        .recordReset(account: "ac_1", pin), .recordReset(account: "ac_1", ProviderName(test: "totp")))
      try await bench.apply(.putProviderRecord(account: "ac_1", pin, sealed: nil))
      #expect(try await bench.store.account("ac_1")?.resets == [pin: bench.now, ProviderName(test: "totp"): bench.now])
      let later = bench.now + .seconds(1)
      _ = try await bench.store.apply([.recordReset(account: "ac_1", pin)], at: later)
      #expect(try await bench.store.account("ac_1")?.resets[pin] == later)
      #expect(
        try await bench.apply(.recordReset(account: "ac_9", pin)) == .conflict(.accountUnavailable))
    },
    StoreConformance("a session is read with its account") { bench async throws in
      let account = bench.account("ac_1", verified: [bench.phone()])
      let session = bench.session("se_1", of: "ac_1")
      try await bench.apply(.createAccount(account), .putSession(session))
      #expect(try await bench.store.session(session.token) == SessionSnapshot(session: session, account: account))
      #expect(try await bench.store.session(TokenHash(of: "nothing".utf8)) == nil)
    },
    StoreConformance("no session without an account") { bench async throws in
      #expect(try await bench.apply(.putSession(bench.session("se_1", of: "ac_1"))) == .conflict(.accountUnavailable))
      var locked = bench.account("ac_2")
      locked.isLocked = true
      try await bench.apply(.createAccount(locked))
      #expect(try await bench.apply(.putSession(bench.session("se_2", of: "ac_2"))) == .conflict(.accountUnavailable))
    },
    StoreConformance("an account's sessions are listed newest first, and ended one by one or all but one") {
      bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_1")), .createAccount(bench.account("ac_2")))
      for number in 1...4 {
        try await bench.apply(.putSession(bench.session("se_\(number)", of: "ac_1")))
        bench.clock.advance(by: .seconds(1))
      }
      try await bench.apply(.putSession(bench.session("se_9", of: "ac_2")))
      #expect(try await bench.store.sessions(of: "ac_1").map(\.id) == ["se_4", "se_3", "se_2", "se_1"])
      try await bench.apply(.endSession(TokenHash(of: "se_2".utf8)))
      #expect(try await bench.store.session(TokenHash(of: "se_2".utf8)) == nil)
      try await bench.apply(.endSessions(account: "ac_1", except: TokenHash(of: "se_3".utf8)))
      #expect(try await bench.store.sessions(of: "ac_1").map(\.id) == ["se_3"])
      try await bench.apply(.endSessions(account: "ac_1", except: nil))
      #expect(try await bench.store.sessions(of: "ac_1").isEmpty)
      #expect(try await bench.store.sessions(of: "ac_2").count == 1)
    },
    StoreConformance("a new token of a session ends the old one, and announces it") { bench async throws in
      try await bench.apply(
        .createAccount(bench.account("ac_1")), .putSession(bench.session("se_1", of: "ac_1", token: "old")))
      let before = try await bench.store.sessionChanges(after: .max).latest
      try await bench.apply(
        .replaceSession(TokenHash(of: "old".utf8), by: bench.session("se_1", of: "ac_1", token: "new")))
      #expect(try await bench.store.session(TokenHash(of: "old".utf8)) == nil)
      #expect(try await bench.store.session(TokenHash(of: "new".utf8)) != nil)
      #expect(try await bench.store.sessionChanges(after: before).tokens == [TokenHash(of: "old".utf8)])
    },
    // Attack: a thief has the token replaced at the moment at which the owner signs out, so that the sign-out finds
    // neither the old session nor the new one.
    StoreConformance("a session that gets a new token while it is ended ends") { bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_1")))
      for round in 0..<20 {
        let (id, old, new) = ("se_\(round)", TokenHash(of: "old \(round)".utf8), TokenHash(of: "new \(round)".utf8))
        try await bench.apply(.putSession(bench.session(id, of: "ac_1", token: "old \(round)")))
        let renewed = Change.replaceSession(old, by: bench.session(id, of: "ac_1", token: "new \(round)"))
        let results = try await withThrowingTaskGroup(of: ApplyResult.self) { group in
          for change in [renewed, .endSession(old)] {
            group.addTask { try await bench.store.apply([change], at: bench.now) }
          }
          return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(results.contains(.applied(locks: [])))
        #expect(try await bench.store.session(new) == nil)
        #expect(try await bench.store.sessions(of: "ac_1").isEmpty)
      }
    },
    // Attack: a thief who holds a copy of the token has accounts merged at the moment at which the owner signs out, so
    // that the session is the heir's when the sign-out looks for it.
    StoreConformance("a session that moves to another account while it is ended ends") { bench async throws in
      for round in 0..<40 {
        let (id, account, heir) = ("se_\(round)", "ac_\(round)", "heir_\(round)")
        let (old, new) = (TokenHash(of: "old \(round)".utf8), TokenHash(of: "new \(round)".utf8))
        try await bench.apply(
          .createAccount(bench.account(account)), .createAccount(bench.account(heir)),
          .putSession(bench.session(id, of: account, token: "old \(round)")))
        var moving = [Change.replaceSession(old, by: bench.session(id, of: heir, token: "new \(round)"))]
        if round % 2 == 0 { moving.append(.absorbAccount(account, into: heir)) }
        let results = try await withThrowingTaskGroup(of: ApplyResult.self) { group in
          for changes in [moving, [.endSession(old)]] {
            group.addTask { try await bench.store.apply(changes, at: bench.now) }
          }
          return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(results.contains(.applied(locks: [])))
        #expect(try await bench.store.session(new) == nil)
        for owner in [account, heir] { #expect(try await bench.store.sessions(of: owner).isEmpty) }
      }
    },
    StoreConformance("activity moves forward, never back, and revives no ended session") { bench async throws in
      let session = bench.session("se_1", of: "ac_1")
      let begun = bench.now
      let seen = { try await bench.store.session(session.token)?.session.lastSeenAt }
      try await bench.apply(.createAccount(bench.account("ac_1")), .putSession(session))
      try await bench.store.touch([
        session.token: SessionUse(at: begun + .seconds(600), address: "2001:db8::7"),
        TokenHash(of: "nothing".utf8): SessionUse(at: begun),
      ])
      #expect(try await seen() == begun + .seconds(600))
      try await bench.store.touch([session.token: SessionUse(at: begun + .seconds(300), address: "192.0.2.9")])
      #expect(try await seen() == begun + .seconds(600))
      let found = try #require(try await bench.store.sessions(of: "ac_1").first)
      #expect(found.address == "192.0.2.1" && found.lastAddress == "2001:db8::7", "the address of the last use")
      try await bench.store.touch([session.token: SessionUse(at: begun + .seconds(600 + 3600))])
      #expect(try await seen() == begun + .seconds(600), "idle for an hour: it had ended")
      try await bench.store.touch([:])
      for hour in 1...11 {
        try await bench.store.touch([session.token: SessionUse(at: begun + .seconds(hour * 3599))])
      }
      let last = begun + .seconds(11 * 3599)
      #expect(try await seen() == last)
      try await bench.store.touch([session.token: SessionUse(at: begun + .seconds(43_200))])
      #expect(try await seen() == last, "at its end: it had ended")
    },
    StoreConformance("changes are numbered and can be read from any number on") { bench async throws in
      let none = try await bench.store.sessionChanges(after: .max)
      #expect(none.tokens.isEmpty && none.accounts.isEmpty && !none.isIncomplete)
      #expect(try await bench.store.sessionChanges(after: none.latest) == none)
      try await bench.apply(.createAccount(bench.account("ac_1")))
      for number in 1...3 { try await bench.apply(.putSession(bench.session("se_\(number)", of: "ac_1"))) }
      let start = try await bench.store.sessionChanges(after: .max).latest
      try await bench.apply(.endSession(TokenHash(of: "se_1".utf8)))
      let first = try await bench.store.sessionChanges(after: start)
      #expect(first.tokens == [TokenHash(of: "se_1".utf8)] && first.accounts.isEmpty && !first.isIncomplete)
      try await bench.apply(.endSession(TokenHash(of: "se_1".utf8)))
      #expect(try await bench.store.sessionChanges(after: first.latest).tokens.isEmpty, "it had ended already")
      try await bench.apply(.endSessions(account: "ac_1", except: nil))
      let second = try await bench.store.sessionChanges(after: first.latest)
      #expect(second.accounts == ["ac_1"] && second.tokens.isEmpty && second.latest > first.latest)
      #expect(try await bench.store.sessionChanges(after: second.latest).accounts.isEmpty)
    },
    StoreConformance("a query from before the stored changes must not trust any cache") { bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_1")))
      let start = try await bench.store.sessionChanges(after: .max).latest
      for _ in 0..<3 { try await bench.apply(.endSessions(account: "ac_1", except: nil)) }
      bench.clock.advance(by: .seconds(7200))
      try await bench.apply(.endSessions(account: "ac_1", except: nil))
      while try await bench.store.prune(at: bench.now) {}
      let latest = try await bench.store.sessionChanges(after: .max).latest
      #expect(try await bench.store.sessionChanges(after: start).isIncomplete)
      #expect(try await !bench.store.sessionChanges(after: latest).isIncomplete)
      #expect(
        try await bench.store.sessionChanges(after: latest + 1).isIncomplete, "a number that this store has not given")
      bench.clock.advance(by: .seconds(7200))
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.store.sessionChanges(after: .max).latest == latest, "numbers are unique")
    },
    StoreConformance("ended sessions are pruned, live ones are kept") { bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_1")), .putSession(bench.session("se_1", of: "ac_1")))
      bench.clock.advance(by: .seconds(3599))
      try await bench.apply(.putSession(bench.session("se_2", of: "ac_1")))
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.store.sessions(of: "ac_1").count == 2)
      bench.clock.advance(by: .seconds(1))
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.store.sessions(of: "ac_1").map(\.id) == ["se_2"])
    },
    StoreConformance("an apply is atomic: twenty concurrent sign-ins of one account all succeed") {
      bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_1", verified: [bench.phone()])))
      let limit = bench.limit(max: 5)
      let results = try await withThrowingTaskGroup(of: ApplyResult?.self) { group in
        for number in 0..<5 {
          group.addTask {
            let reserved = try await bench.reserve([limit])
            guard reserved.result.places != nil else { return nil }
            return try await bench.apply(
              .settle(
                Settlement(reservation: reserved.id, outcome: .success, limits: [limit], timer: nil, now: bench.now)),
              .recordUse(account: "ac_1"), .verifyIdentifier(account: "ac_1", bench.phone()),
              .putSession(bench.session("se_\(number)", of: "ac_1")))
          }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(results == Array(repeating: .applied(locks: []), count: 5))
      #expect(try await bench.state(limit) == CounterState())
    },
  ]
}
