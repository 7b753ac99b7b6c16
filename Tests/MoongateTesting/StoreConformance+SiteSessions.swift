import MoongateCore
import MoongateSDK
import Testing

// Sessions that users have at other sites.

extension StoreConformance {
  static let siteSessions: [StoreConformance] = [
    StoreConformance("sessions are found by the session at another site that opened them, and by no other") {
      bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_1")), .createAccount(bench.account("ac_2")))
      for (id, account, site) in [
        ("se_1", "ac_1", "s-1"), ("se_2", "ac_1", "s-1"), ("se_3", "ac_2", "s-1"), ("se_4", "ac_1", "s-2"),
      ] { try await bench.apply(.putSession(bench.session(id, of: account, openedBy: [site]))) }
      try await bench.apply(.putSession(bench.session("se_5", of: "ac_1")))
      try await bench.apply(.putSession(bench.session("se_6", of: "ac_2", openedBy: ["s-2", "s-6"])))
      #expect(try await bench.found("s-1") == ["se_1", "se_2", "se_3"])
      #expect(try await bench.found("s-2") == ["se_4", "se_6"])
      #expect(try await bench.found("s-6") == ["se_6"])
      for none in ["s-", "", "se_1"] { #expect(try await bench.found(none) == []) }
      #expect(try await bench.store.sessions(openedBy: "s-1", limit: 2).count == 2)
    },
    StoreConformance("a session is found by the session at another site as long as it lasts, under its token of now") {
      bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_1")), .createAccount(bench.account("ac_2")))
      let token = { (name: String) in TokenHash(of: name.utf8) }
      try await bench.apply(.putSession(bench.session("se_1", of: "ac_1", token: "old", openedBy: ["s-1"])))
      try await bench.apply(
        .replaceSession(token("old"), by: bench.session("se_1", of: "ac_2", token: "new", openedBy: ["s-1"])))
      #expect(try await bench.store.sessions(openedBy: "s-1", limit: 9).map(\.token) == [token("new")])
      // A session that forgets the step, such as of an identity that was disconnected.
      try await bench.apply(.replaceSession(token("new"), by: bench.session("se_1", of: "ac_2", token: "bare")))
      #expect(try await bench.found("s-1") == [])
      for end in [
        Change.endSession(token("se_2")), .endSessions(account: "ac_1", except: nil),
        .setLocked(account: "ac_1", true), .deleteAccount("ac_1", traces: []),
      ] {
        _ = try await bench.apply(.setLocked(account: "ac_1", false))
        try await bench.apply(.putSession(bench.session("se_2", of: "ac_1", openedBy: ["s-1"])))
        #expect(try await bench.found("s-1") == ["se_2"])
        try await bench.apply(end)
        #expect(try await bench.found("s-1") == [], "\(end)")
      }
      try await bench.apply(.putSession(bench.session("se_3", of: "ac_2", openedBy: ["s-1"])))
      bench.clock.advance(by: .seconds(3600))
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.found("s-1") == [])
    },
    // Attack: a sign-in that was proved before opens a session after the site has ended it.
    StoreConformance("a session at another site that has ended opens no session by a step that passed before") {
      bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_1")))
      let before = bench.session("se_1", of: "ac_1", openedBy: ["s-1"])
      let growing = bench.session("se_2", of: "ac_1", token: "grown", openedBy: ["s-2", "s-1"])
      try await bench.apply(.putSession(bench.session("se_2", of: "ac_1")))
      bench.clock.advance(by: .seconds(60))
      try await bench.apply(.endSiteSession("s-1"))
      try await bench.apply(.endSiteSession("s-1"))
      bench.clock.advance(by: .seconds(7 * 86_400))
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.apply(.putSession(before)) == .conflict(.epochChanged))
      _ = try await bench.apply(.putSession(bench.session("se_2", of: "ac_1")))
      #expect(
        try await bench.apply(.replaceSession(TokenHash(of: "se_2".utf8), by: growing)) == .conflict(.epochChanged))
      for site in ["s-1", "s-2"] { #expect(try await bench.found(site) == []) }
      // Another one opens sessions, and so does a later sign-in at a site that uses the id again.
      try await bench.apply(.putSession(bench.session("se_3", of: "ac_1", openedBy: ["s-2"])))
      try await bench.apply(.putSession(bench.session("se_4", of: "ac_1", openedBy: ["s-1"])))
      #expect(try await bench.found("s-2") == ["se_3"])
      #expect(try await bench.found("s-1") == ["se_4"])
    },
    // Attack: a session is stored between the end and the search for what it ends.
    StoreConformance("a session is stored before another site's session has ended, and found, or not at all") {
      bench async throws in
      try await bench.apply(.createAccount(bench.account("ac_1")))
      for round in 0..<10 {
        let (site, session) = ("s-\(round)", bench.session("se_\(round)", of: "ac_1", openedBy: ["s-\(round)"]))
        async let stored = bench.apply(.putSession(session))
        _ = try await bench.apply(.endSiteSession(site))
        let found = try await bench.found(site)
        let isStored = try await stored == .applied(locks: [])
        #expect(found == (isStored ? ["se_\(round)"] : []))
      }
    },
  ]
}

extension StoreBench {
  /// A session whose steps were proved by these sessions at other sites.
  func session(_ id: String, of account: String, token: String? = nil, openedBy sites: [String]) -> Session {
    var session = session(id, of: account, token: token)
    let providers = [ProviderName(test: "work"), ProviderName(test: "other")]
    session.passed = zip(providers, sites).map { provider, site in
      var step = PassedStep(provider: provider, at: now)
      step.siteSession = site
      return step
    }
    return session
  }

  /// The ids of the sessions that a session at another site has opened.
  func found(_ siteSession: String) async throws -> [String] {
    try await store.sessions(openedBy: siteSession, limit: 9).map(\.id).sorted()
  }
}
