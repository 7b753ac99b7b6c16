import MoongateCore
import MoongateSDK
import Testing

// Session tokens for other root domains, and one-time codes.

extension StoreBench {
  fileprivate func token(_ text: String) -> TokenHash { TokenHash(of: text.utf8) }

  /// A signed-in account with a token for another domain.
  fileprivate func signInOnTwoDomains() async throws -> Session {
    let session = session("se_1", of: "ac_1", token: "own")
    try await apply(.createAccount(account("ac_1", verified: [phone()])), .putSession(session))
    #expect(try await apply(putting("other", session)) == .applied(locks: []))
    return session
  }

  fileprivate func putting(_ text: String, _ session: Session, _ domain: String = "example.org") -> Change {
    .putDomainToken(NewDomainToken(domain: domain, token: token(text), session: session))
  }
}

extension StoreConformance {
  static let domains: [StoreConformance] = [
    StoreConformance("a session is found by its token for a further domain") { bench async throws in
      let session = try await bench.signInOnTwoDomains()
      let found = try #require(try await bench.store.session(bench.token("other")))
      var expected = Session(
        id: session.id, token: bench.token("other"), account: session.account, createdAt: session.createdAt,
        expiresAt: session.expiresAt,
        idle: session.idle, lastSeenAt: session.lastSeenAt, passed: session.passed, userAgent: session.userAgent)
      (expected.address, expected.lastAddress) = (session.address, session.lastAddress)
      expected.isRemembered = true
      expected.domain = SessionDomain(name: "example.org", home: session.token, isSuperseded: false)
      #expect(found.session == expected && found.account.id == "ac_1")
      #expect(try await bench.store.session(session.token)?.session == session)
      #expect(try await bench.store.sessions(of: "ac_1").map(\.id) == ["se_1"], "one sign-in, listed once")
    },
    // Attack: a copied token of another root domain lives on in the owner's new sign-in, with its times.
    StoreConformance("a new sign-in that continues a session ends its tokens for further domains") {
      bench async throws in
      let session = try await bench.signInOnTwoDomains()
      func next(_ token: String, createdAt: Timestamp) -> Session {
        Session(
          id: session.id, token: bench.token(token), account: session.account, createdAt: createdAt,
          expiresAt: session.expiresAt, idle: session.idle, lastSeenAt: bench.now, passed: session.passed,
          userAgent: nil)
      }
      try await bench.apply(.replaceSession(session.token, by: next("grown", createdAt: session.createdAt)))
      #expect(try await bench.store.session(bench.token("other"))?.session.domain?.isSuperseded == true, "a step-up")
      bench.clock.advance(by: .seconds(60))
      try await bench.apply(.replaceSession(bench.token("grown"), by: next("again", createdAt: bench.now)))
      #expect(try await bench.store.session(bench.token("other")) == nil)
      #expect(try await bench.store.session(bench.token("again"))?.session.id == session.id)
      #expect(try await bench.store.session(replacing: session.token, at: bench.now) == nil)
      #expect(try await bench.store.session(replacing: bench.token("grown"), at: bench.now)?.id == session.id)
    },
    StoreConformance("activity of the sign-in is that of its further domains") { bench async throws in
      let session = try await bench.signInOnTwoDomains()
      try await bench.store.touch([session.token: SessionUse(at: bench.now + .seconds(600))])
      #expect(try await bench.store.session(bench.token("other"))?.session.lastSeenAt == bench.now + .seconds(600))
    },
    StoreConformance("a new token for a domain ends the previous one, and announces it") { bench async throws in
      let session = try await bench.signInOnTwoDomains()
      let before = try await bench.store.sessionChanges(after: .max).latest
      try await bench.apply(bench.putting("newer", session), bench.putting("net", session, "example.net"))
      #expect(try await bench.store.session(bench.token("other")) == nil)
      #expect(try await bench.store.session(bench.token("newer")) != nil)
      #expect(try await bench.store.session(bench.token("net"))?.session.domain?.name == "example.net")
      #expect(try await bench.store.sessionChanges(after: before).tokens == [bench.token("other")])
    },
    StoreConformance("a step-up supersedes tokens of further domains, which keep their passed steps") {
      bench async throws in
      let session = try await bench.signInOnTwoDomains()
      let before = try await bench.store.sessionChanges(after: .max).latest
      var grown = bench.session("se_1", of: "ac_1", token: "stepped up")
      grown.passed.append(PassedStep(provider: ProviderName(test: "pin"), at: bench.now))
      #expect(try await bench.apply(.replaceSession(session.token, by: grown)) == .applied(locks: []))
      let found = try #require(try await bench.store.session(bench.token("other"))?.session)
      #expect(
        found.domain == SessionDomain(name: "example.org", home: grown.token, isSuperseded: true)
          && found.passed == session.passed)
      let changed = try await bench.store.sessionChanges(after: before).tokens
      #expect(Set(changed) == [session.token, bench.token("other")], "caches look again")
      #expect(
        try await bench.apply(bench.putting("late", session)) == .conflict(.sessionEnded), "by the previous token")
      #expect(try await bench.apply(bench.putting("fresh", grown)) == .applied(locks: []))
      let fresh = try #require(try await bench.store.session(bench.token("fresh"))?.session)
      #expect(fresh.domain?.isSuperseded == false && fresh.passed == grown.passed)
    },
    StoreConformance("a session ends by any of its tokens, with all of them") { bench async throws in
      for ending in ["own", "other"] {
        let session = bench.session("se_1", of: "ac_1", token: "own")
        if ending == "own" { try await bench.apply(.createAccount(bench.account("ac_1"))) }
        try await bench.apply(.putSession(session), bench.putting("other", session))
        let before = try await bench.store.sessionChanges(after: .max).latest
        try await bench.apply(.endSession(bench.token(ending)))
        #expect(try await bench.store.session(bench.token("own")) == nil)
        #expect(try await bench.store.session(bench.token("other")) == nil)
        #expect(
          Set(try await bench.store.sessionChanges(after: before).tokens) == [bench.token("own"), bench.token("other")])
        #expect(try await bench.apply(bench.putting("late", session)) == .conflict(.sessionEnded))
      }
    },
    StoreConformance("ending an account's other sessions ends all tokens of further domains") { bench async throws in
      let session = try await bench.signInOnTwoDomains()
      let second = bench.session("se_2", of: "ac_1")
      try await bench.apply(.putSession(second), bench.putting("second", second))
      try await bench.apply(.endSessions(account: "ac_1", except: session.token))
      #expect(try await bench.store.session(session.token) != nil)
      for text in ["other", "second"] { #expect(try await bench.store.session(bench.token(text)) == nil) }
      try await bench.apply(bench.putting("again", session))
      try await bench.apply(.setLocked(account: "ac_1", true))
      #expect(try await bench.store.session(bench.token("again")) == nil)
      #expect(try await bench.apply(bench.putting("late", session)) == .conflict(.accountUnavailable))
    },
    StoreConformance("tokens of further domains are pruned with their session, and deleted with their account") {
      bench async throws in
      let session = try await bench.signInOnTwoDomains()
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.store.session(bench.token("other")) != nil)
      bench.clock.advance(by: .seconds(3600))
      while try await bench.store.prune(at: bench.now) {}
      while try await bench.store.prune(at: bench.now) {}
      try await bench.apply(.putSession(session))
      #expect(try await bench.store.session(bench.token("other")) == nil, "it no longer exists")
      try await bench.apply(bench.putting("again", session))
      try await bench.apply(.deleteAccount("ac_1", traces: []))
      #expect(try await bench.store.session(bench.token("again")) == nil)
    },
    StoreConformance("a code is used once, by one of many concurrent requests") { bench async throws in
      let code = bench.token("code")
      let until = bench.now + .seconds(60)
      let results = try await withThrowingTaskGroup(of: ApplyResult.self) { group in
        for _ in 0..<20 { group.addTask { try await bench.apply(.spendCode(code, until: until)) } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(results.filter { $0 == .applied(locks: []) }.count == 1)
      #expect(results.filter { $0 == .conflict(.codeSpent) }.count == 19)
      while try await bench.store.prune(at: bench.now) {}
      #expect(
        try await bench.apply(.spendCode(code, until: until)) == .conflict(.codeSpent), "for as long as it may be used")
      bench.clock.advance(by: .seconds(60))
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.apply(.spendCode(code, until: until)) == .applied(locks: []), "then it is deleted")
    },
  ]
}
