import MoongateCore
import MoongateSDK
import Testing

// What apps were given: grants and their ends, connected apps, requests of devices.

extension StoreConformance {
  static let apps: [StoreConformance] = grants + grantEnds + notices + connectedApps + deviceRequests

  private static let grants: [StoreConformance] = [
    StoreConformance("a grant is read with its account and its live session, by its id and its refresh tokens") {
      bench async throws in
      let session = try await bench.signIn("ac_1", "se_1")
      let grant = bench.grant("ag_1", of: "ac_1", session: "se_1")
      #expect(try await bench.apply(.putAppGrant(grant)) == .applied(locks: []))
      let account = try #require(try await bench.store.account("ac_1"))
      let live = LiveAppGrant(grant: grant, account: account, session: session)
      #expect(try await bench.appGrant("ag_1") == live)
      #expect(try await bench.store.appGrant(refresh: bench.refresh("ag_1"), at: bench.now) == live)
      #expect(try await bench.appGrant("ag_2") == nil)
      #expect(try await bench.store.appGrant(refresh: bench.refresh("ag_2"), at: bench.now) == nil)
      #expect(try await bench.store.appGrant("ag_1", at: session.deadline)?.session == nil, "it has expired")
      let rotated = Change.rotateAppGrant(
        "ag_1", from: bench.refresh("ag_1"), to: bench.refresh("second"), usedAt: bench.now + .seconds(5),
        expiresAt: bench.now + .seconds(100))
      #expect(try await bench.apply(rotated) == .applied(locks: []))
      for hash in [bench.refresh("ag_1"), bench.refresh("second")] {
        let found = try #require(try await bench.store.appGrant(refresh: hash, at: bench.now)?.grant)
        #expect(found.refresh == bench.refresh("second") && found.previous == bench.refresh("ag_1"))
        #expect(found.refreshedAt == bench.now + .seconds(5) && found.usedAt == bench.now + .seconds(5))
        #expect(found.expiresAt == bench.now + .seconds(100))
      }
      #expect(try await bench.apply(rotated) == .conflict(.appGrantChanged))
    },
    StoreConformance("an app's own grant has neither account nor session") { bench async throws in
      let grant = bench.grant("ag_1", of: nil, session: nil, app: "backup")
      #expect(try await bench.apply(.putAppGrant(grant)) == .applied(locks: []))
      #expect(try await bench.appGrant("ag_1") == LiveAppGrant(grant: grant, account: nil, session: nil))
      while try await bench.store.prune(at: grant.expiresAt) {}
      #expect(try await bench.appGrant("ag_1") == nil)
    },
    StoreConformance("a grant needs its account in its epoch, and a live session of that account") {
      bench async throws in
      let session = try await bench.signIn("ac_1", "se_1")
      try await bench.signIn("ac_2", "se_2")
      func put(_ account: String, _ session: String, epoch: Int = 0) async throws -> ApplyResult {
        try await bench.apply(.putAppGrant(bench.grant("ag_1", of: account, session: session, epoch: epoch)))
      }
      #expect(try await put("ac_9", "se_1") == .conflict(.accountUnavailable))
      #expect(try await put("ac_1", "se_1", epoch: 1) == .conflict(.epochChanged))
      #expect(try await put("ac_1", "se_2") == .conflict(.sessionEnded), "the session of another account")
      try await bench.apply(.setLocked(account: "ac_2", true))
      #expect(try await put("ac_2", "se_2") == .conflict(.accountUnavailable))
      bench.clock.set(session.deadline)
      #expect(try await put("ac_1", "se_1") == .conflict(.sessionEnded))
      #expect(try await bench.appGrant("ag_1") == nil)
    },
    // Attack: one code at several gateways at once, so that two clients have tokens.
    StoreConformance("of fifty concurrent redemptions of a code, one stores a grant") { bench async throws in
      try await bench.signIn("ac_1", "se_1")
      let code = TokenHash(of: "code".utf8)
      let results = try await bench.concurrently(50) { number in
        [
          .spendCode(code, until: bench.now + .seconds(60)),
          .putAppGrant(bench.grant("ag_\(number)", of: "ac_1", session: "se_1")),
        ]
      }
      #expect(results.count { $0 == .applied(locks: []) } == 1 && results.count { $0 == .conflict(.codeSpent) } == 49)
      var found = 0
      for number in 0..<50 where try await bench.appGrant("ag_\(number)") != nil { found += 1 }
      #expect(found == 1)
    },
    // Attack: one refresh token at several gateways at once, so that a thief and the app both go on.
    StoreConformance("of fifty concurrent rotations of a refresh token, one succeeds") { bench async throws in
      try await bench.signIn("ac_1", "se_1")
      try await bench.apply(.putAppGrant(bench.grant("ag_1", of: "ac_1", session: "se_1")))
      let results = try await bench.concurrently(50) { number in
        [
          .rotateAppGrant(
            "ag_1", from: bench.refresh("ag_1"), to: bench.refresh("\(number)"), usedAt: bench.now,
            expiresAt: bench.now + .seconds(600))
        ]
      }
      let winner = try #require(results.firstIndex(of: .applied(locks: [])))
      #expect(results.count { $0 == .conflict(.appGrantChanged) } == 49)
      #expect(try await bench.appGrant("ag_1")?.grant.refresh == bench.refresh("\(winner)"))
    },
    // Attack: tokens without end, by somebody who authorizes an app again and again.
    StoreConformance("an account has at most a hundred live grants for an app, and ended ones are deleted") {
      bench async throws in
      try await bench.signIn("ac_1", "se_1")
      try await bench.signIn("ac_2", "se_2")
      try await bench.apply(
        .putAppGrant(bench.grant("ag_of_2", of: "ac_2", session: "se_2")),
        .putAppConnection(bench.connection("wiki")),
        .putAppGrant(bench.grant("ag_elsewhere", of: "ac_1", session: "se_1", app: "wiki")))
      for number in 0..<103 {
        bench.clock.advance(by: .milliseconds(1))
        try await bench.apply(.putAppGrant(bench.grant("ag_\(number)", of: "ac_1", session: "se_1")))
      }
      for id in ["ag_0", "ag_1"] { #expect(try await bench.appGrant(id) == nil) }
      #expect(try await bench.appGrant("ag_2")?.grant.endedAt == bench.now)
      for id in ["ag_3", "ag_102", "ag_of_2", "ag_elsewhere"] {
        #expect(try await bench.appGrant(id)?.grant.endedAt == nil)
      }
      try await bench.apply(.endAppGrant("ag_50"), .endAppGrant("ag_none"))
      #expect(try await bench.appGrant("ag_50")?.grant.endedAt == bench.now)
      try await bench.apply(.putAppGrant(bench.grant("ag_last", of: "ac_1", session: "se_1")))
      #expect(try await bench.appGrant("ag_50") == nil)
      let oldest = try #require(try await bench.appGrant("ag_3"))
      #expect(oldest.grant.endedAt == nil)
    },
  ]

  /// Ways to end a session or an account, or to invalidate what was proved. The session is `se_1` of `ac_1`.
  private static func endings(_ bench: StoreBench) -> [(name: String, changes: [Change])] {
    let token = TokenHash(of: "se_1".utf8)
    return [
      ("signing out", [.endSession(token)]),
      ("signing out elsewhere", [.endSessions(account: "ac_1", except: nil)]),
      ("an operator's lock", [.setLocked(account: "ac_1", true)]),
      ("a raised epoch", [.raiseEpoch(account: "ac_1")]),
      ("deletion", [.deleteAccount("ac_1", traces: [])]),
      ("joining another account", [.absorbAccount("ac_1", into: "ac_2")]),
      ("moving to another account", [.replaceSession(token, by: bench.session("se_1", of: "ac_2", token: "new"))]),
      ("another session in its place", [.replaceSession(token, by: bench.session("se_3", of: "ac_1", token: "new"))]),
      ("somebody else's proof of the address", [.verifyIdentifier(account: "ac_2", bench.email())]),
      ("the owner's proof of the address", [.reclaimAccount("ac_1", by: bench.phone(), keeping: [])]),
    ]
  }

  private static let grantEnds: [StoreConformance] = [
    StoreConformance("a renewed session keeps its grants") { bench async throws in
      try await bench.signIn("ac_1", "se_1")
      try await bench.apply(.putAppGrant(bench.grant("ag_1", of: "ac_1", session: "se_1")))
      let renewed = bench.session("se_1", of: "ac_1", token: "second")
      try await bench.apply(.replaceSession(TokenHash(of: "se_1".utf8), by: renewed))
      try await bench.apply(.renewIdentifier(account: "ac_1", bench.email()), .endSession(TokenHash(of: "x".utf8)))
      let found = try #require(try await bench.appGrant("ag_1"))
      #expect(found.session == renewed && found.grant.endedAt == nil)
      #expect(try await bench.claimNotices().isEmpty)
      try await bench.apply(.endSession(TokenHash(of: "se_1".utf8)))
      #expect(try await bench.appGrant("ag_1")?.grant.endedAt == bench.now, "by the token that it had before")
    },
    // Attack: a user is signed out by one of the many ways, and an app keeps them signed in.
    StoreConformance("whatever ends a session ends its grants in the same transaction, and the app is told") {
      bench async throws in
      for index in endings(bench).indices {
        let (name, changes) = endings(bench)[index]
        for id in ["ac_1", "ac_2"] {
          try await bench.apply(
            .createAccount(
              bench.account(id, verified: id == "ac_1" ? [bench.phone()] : [], claimed: [bench.email()])),
            .putSession(bench.session("se_\(id.suffix(1))", of: id)),
            .putAppConnection(bench.connection("grafana", of: id)),
            .putAppGrant(bench.grant("ag_\(id.suffix(1))", of: id, session: "se_\(id.suffix(1))")))
        }
        #expect(try await bench.store.apply(changes, at: bench.now) == .applied(locks: []), "\(name)")
        let ended = try #require(try await bench.appGrant("ag_1"))
        #expect(ended.grant.endedAt == bench.now && ended.grant.session == nil && ended.session == nil, "\(name)")
        #expect(ended.grant.sid == "sid of se_1", "\(name)")
        let notice = AppNotice(
          grant: "ag_1", app: "grafana", account: "ac_1", sid: "sid of se_1", since: bench.now, tries: 0)
        #expect(try await bench.claimNotices() == [notice], "\(name)")
        #expect(try await bench.appGrant("ag_2")?.grant.endedAt == nil, "\(name)")
        try await bench.apply(.settleAppNotice("ag_1", nextDue: nil), .deleteAccount("ac_2", traces: []))
        try await bench.apply(.settleAppNotice("ag_2", nextDue: nil))
        _ = try await bench.apply(.deleteAccount("ac_1", traces: []))
        while try await bench.store.prune(at: bench.now) {}
        #expect(try await bench.appGrant("ag_1") == nil, "\(name): nothing is left of the user")
      }
    },
    StoreConformance("an expired or idle session ends its grants, one that is used does not") { bench async throws in
      let session = try await bench.signIn("ac_1", "se_1")
      try await bench.apply(.putAppGrant(bench.grant("ag_1", of: "ac_1", session: "se_1")))
      let first = session.deadline
      try await bench.store.touch([session.token: SessionUse(at: first - .seconds(1))])
      bench.clock.set(first)
      #expect(try await bench.claimNotices().isEmpty)
      let second = first - .seconds(1) + session.idle
      bench.clock.set(second - .milliseconds(1))
      #expect(try await bench.claimNotices().isEmpty)
      #expect(try await bench.appGrant("ag_1")?.session != nil)
      bench.clock.set(second)
      #expect(try await bench.claimNotices().map(\.grant) == ["ag_1"])
      #expect(try await bench.appGrant("ag_1")?.grant.endedAt == second)
      try await bench.apply(.settleAppNotice("ag_1", nextDue: nil))
      // By pruning, which also deletes the sessions.
      for number in 2...250 {
        try await bench.signIn("ac_\(number)", "se_\(number)")
        let grant = bench.grant("ag_\(number)", of: "ac_\(number)", session: "se_\(number)")
        try await bench.apply(.putAppGrant(grant))
      }
      bench.clock.advance(by: session.idle)
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.appGrant("ag_2")?.grant.session == nil)
      var told: Set<String> = []
      for _ in 0..<10 { for notice in try await bench.claimNotices() { told.insert(notice.grant) } }
      #expect(told == Set((2...250).map { "ag_\($0)" }))
    },
    StoreConformance("a sign-in that continues a session and ends sooner moves the end of its grants") {
      bench async throws in
      let session = try await bench.signIn("ac_1", "se_1")
      try await bench.apply(.putAppGrant(bench.grant("ag_1", of: "ac_1", session: "se_1")))
      bench.clock.advance(by: .seconds(60))
      let again = Session(
        id: "se_1", token: TokenHash(of: "again".utf8), account: "ac_1", createdAt: bench.now,
        expiresAt: bench.now + .seconds(600), idle: session.idle, lastSeenAt: bench.now, passed: session.passed,
        userAgent: nil)
      try await bench.apply(.replaceSession(session.token, by: again))
      #expect(try await bench.appGrant("ag_1")?.session != nil, "the grant goes on")
      bench.clock.set(again.expiresAt)
      #expect(try await bench.claimNotices().map(\.grant) == ["ag_1"])
    },
    // Attack: a refresh token with `offline_access` is used after the account was locked and unlocked, or its
    // credentials were changed because they were stolen.
    StoreConformance("with offline access a grant outlives its session, but no lock, no new epoch and no deletion") {
      bench async throws in
      let ends: [(name: String, change: Change)] = [
        ("lock", .setLocked(account: "ac_1", true)), ("epoch", .raiseEpoch(account: "ac_1")),
        ("deletion", .deleteAccount("ac_1", traces: [])),
      ]
      for (name, change) in ends {
        try await bench.signIn("ac_1", "se_1")
        try await bench.apply(.putAppGrant(bench.grant("ag_1", of: "ac_1", session: "se_1", isOffline: true)))
        try await bench.apply(.endSession(TokenHash(of: "se_1".utf8)))
        let live = try #require(try await bench.appGrant("ag_1"))
        #expect(live.grant.endedAt == nil && live.grant.session == nil && live.session == nil && live.account != nil)
        #expect(live.grant.expiresAt > bench.now)
        #expect(try await bench.claimNotices().map(\.grant) == ["ag_1"], "the app is told nevertheless")
        try await bench.apply(.settleAppNotice("ag_1", nextDue: nil))
        let rotated = Change.rotateAppGrant(
          "ag_1", from: bench.refresh("ag_1"), to: bench.refresh("second"), usedAt: bench.now,
          expiresAt: bench.now + .seconds(600))
        #expect(try await bench.apply(rotated) == .applied(locks: []), "\(name)")
        try await bench.apply(change)
        if name == "lock" { try await bench.apply(.setLocked(account: "ac_1", false)) }
        if name == "deletion" {
          #expect(try await bench.appGrant("ag_1") == nil)
        } else {
          #expect(try await bench.appGrant("ag_1")?.grant.endedAt == bench.now, "\(name)")
        }
        let again = Change.rotateAppGrant(
          "ag_1", from: bench.refresh("second"), to: bench.refresh("third"), usedAt: bench.now,
          expiresAt: bench.now + .seconds(600))
        #expect(try await bench.apply(again) == .conflict(.appGrantChanged), "\(name)")
        _ = try await bench.apply(.deleteAccount("ac_1", traces: []))
        while try await bench.store.prune(at: bench.now) {}
      }
    },
    // Attack: the session ends at one gateway while the code is redeemed at another, so that neither ends the grant.
    StoreConformance("a session that ends while a grant is stored ends that grant too") { bench async throws in
      for round in 0..<20 {
        let (account, session, grant) = ("ac_\(round)", "se_\(round)", "ag_\(round)")
        try await bench.signIn(account, session)
        let ending: Change =
          round % 2 == 0
          ? .endSession(TokenHash(of: session.utf8)) : .endSessions(account: account, except: nil)
        let put = Change.putAppGrant(bench.grant(grant, of: account, session: session))
        let results = try await bench.concurrently(2) { [$0 == 0 ? put : ending] }
        #expect(results[1] == .applied(locks: []))
        if results[0] == .applied(locks: []) {
          #expect(try await bench.appGrant(grant)?.grant.endedAt == bench.now)
          #expect(try await bench.claimNotices().map(\.grant) == [grant])
        } else {
          #expect(results[0] == .conflict(.sessionEnded))
        }
      }
    },
  ]

  private static let notices: [StoreConformance] = [
    StoreConformance("a notice is claimed by one gateway, postponed and settled") { bench async throws in
      try await bench.signIn("ac_1", "se_1")
      try await bench.apply(.putAppGrant(bench.grant("ag_1", of: "ac_1", session: "se_1")))
      #expect(try await bench.claimNotices().isEmpty)
      try await bench.apply(.endSession(TokenHash(of: "se_1".utf8)))
      let since = bench.now
      let claims = try await withThrowingTaskGroup(of: [AppNotice].self) { group in
        for _ in 0..<10 { group.addTask { try await bench.claimNotices() } }
        return try await group.reduce(into: []) { $0 += $1 }
      }
      #expect(claims.map(\.grant) == ["ag_1"])
      bench.clock.advance(by: .seconds(30))
      #expect(try await bench.claimNotices().map(\.tries) == [0], "the gateway that had claimed it is gone")
      try await bench.apply(.settleAppNotice("ag_1", nextDue: bench.now + .seconds(5)))
      #expect(try await bench.claimNotices().isEmpty)
      bench.clock.advance(by: .seconds(5))
      let second = try #require(try await bench.claimNotices().first)
      #expect(second.tries == 1 && second.since == since)
      try await bench.apply(.settleAppNotice("ag_1", nextDue: nil))
      // A slow gateway does not bring it back.
      try await bench.apply(.settleAppNotice("ag_1", nextDue: bench.now))
      #expect(try await bench.claimNotices().isEmpty)
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.appGrant("ag_1") == nil)
    },
    // Attack: an app that does not answer, with many ended sessions, keeps the other apps from being told.
    StoreConformance("each app has its turn before another one has its second") { bench async throws in
      for number in 1...20 {
        try await bench.signIn("ac_\(number)", "se_\(number)")
        try await bench.apply(
          .putAppGrant(bench.grant("ag_\(number)", of: "ac_\(number)", session: "se_\(number)")))
      }
      for app in ["wiki", "mail"] {
        try await bench.apply(
          .putAppConnection(bench.connection(app, of: "ac_20")),
          .putAppGrant(bench.grant("ag_\(app)", of: "ac_20", session: "se_20", app: app)))
      }
      for number in 1...20 {
        bench.clock.advance(by: .milliseconds(1))
        try await bench.apply(.endSession(TokenHash(of: "se_\(number)".utf8)))
      }
      let claimed = try await bench.store.claimAppNotices(limit: 8, until: bench.now + .seconds(30), at: bench.now)
      #expect(Set(claimed.map(\.grant)) == ["ag_1", "ag_2", "ag_wiki", "ag_mail"])
      let next = try await bench.store.claimAppNotices(limit: 8, until: bench.now + .seconds(30), at: bench.now)
      #expect(Set(next.map(\.grant)) == ["ag_3", "ag_4"])
    },
    StoreConformance("of several grants of one app and session, one tells the app, even if its tokens have expired") {
      bench async throws in
      try await bench.signIn("ac_1", "se_1")
      try await bench.apply(.putAppConnection(bench.connection("wiki")))
      for number in 1...3 {
        bench.clock.advance(by: .seconds(1))
        try await bench.apply(
          .putAppGrant(bench.grant("ag_\(number)", of: "ac_1", session: "se_1", expires: .seconds(60))),
          .putAppGrant(bench.grant("ag_wiki_\(number)", of: "ac_1", session: "se_1", app: "wiki")))
      }
      try await bench.apply(.endAppGrant("ag_wiki_3"))
      bench.clock.advance(by: .seconds(120))
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.appGrant("ag_3") != nil, "its session lives")
      try await bench.apply(.endSession(TokenHash(of: "se_1".utf8)))
      #expect(Set(try await bench.claimNotices().map(\.grant)) == ["ag_3", "ag_wiki_3"])
    },
    StoreConformance("a notice that no gateway sends is dropped after a day") { bench async throws in
      try await bench.signIn("ac_1", "se_1")
      try await bench.apply(.putAppGrant(bench.grant("ag_1", of: "ac_1", session: "se_1")))
      try await bench.apply(.deleteAccount("ac_1", traces: []))
      bench.clock.advance(by: .seconds(86_399))
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.appGrant("ag_1") != nil)
      bench.clock.advance(by: .seconds(1))
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.appGrant("ag_1") == nil)
    },
  ]

  private static let connectedApps: [StoreConformance] = [
    StoreConformance("the apps of an account are listed by their last use, and keep when they were connected") {
      bench async throws in
      try await bench.signIn("ac_1", "se_1")
      let begun = bench.now
      let wiki = bench.connection("wiki", scopes: ["openid"])
      let grafana = bench.connection("grafana", scopes: ["openid", "email"], agreed: true)
      try await bench.apply(.putAppConnection(wiki), .putAppGrant(bench.grant("ag_1", of: "ac_1", session: "se_1")))
      bench.clock.advance(by: .seconds(1))
      try await bench.apply(.putAppConnection(grafana))
      try await bench.apply(.putAppConnection(bench.connection("wiki", scopes: ["openid", "groups"], agreed: true)))
      bench.clock.advance(by: .seconds(5))
      let use = { (old: String, new: String, moment: Timestamp) in
        Change.rotateAppGrant(
          "ag_1", from: bench.refresh(old), to: bench.refresh(new), usedAt: moment, expiresAt: begun + .seconds(600))
      }
      try await bench.apply(use("ag_1", "second", bench.now))
      #expect(try await bench.appGrant("ag_1")?.grant.usedAt == bench.now)
      try await bench.apply(use("second", "third", begun))
      let listed = try await bench.store.appConnections(of: "ac_1")
      #expect(listed.map(\.app) == ["grafana", "wiki"] && listed.map(\.usedAt) == [bench.now, begun + .seconds(1)])
      #expect(
        listed[1]
          == AppConnection(
            account: "ac_1", app: "wiki", scopes: ["openid", "groups"], createdAt: begun,
            usedAt: begun + .seconds(1), agreed: true))
      let nobodys = bench.connection("wiki", of: "ac_9")
      #expect(try await bench.apply(.putAppConnection(nobodys)) == .conflict(.accountUnavailable))
      try await bench.apply(.deleteAccount("ac_1", traces: []))
      #expect(try await bench.store.appConnections(of: "ac_1").isEmpty)
    },
    StoreConformance("disconnecting an app ends its grants, also those for offline access, and tells it") {
      bench async throws in
      try await bench.signIn("ac_1", "se_1")
      try await bench.signIn("ac_2", "se_2")
      try await bench.apply(
        .putAppConnection(bench.connection("wiki")),
        .putAppGrant(bench.grant("ag_1", of: "ac_1", session: "se_1", isOffline: true)),
        .putAppGrant(bench.grant("ag_wiki", of: "ac_1", session: "se_1", app: "wiki")),
        .putAppGrant(bench.grant("ag_2", of: "ac_2", session: "se_2")))
      try await bench.apply(.endAppConnection(account: "ac_1", app: "grafana"))
      #expect(try await bench.store.appConnections(of: "ac_1").map(\.app) == ["wiki"])
      #expect(try await bench.store.appConnections(of: "ac_2").map(\.app) == ["grafana"])
      #expect(try await bench.appGrant("ag_1")?.grant.endedAt == bench.now)
      #expect(try await bench.claimNotices().map(\.grant) == ["ag_1"])
      for id in ["ag_wiki", "ag_2"] { #expect(try await bench.appGrant(id)?.grant.endedAt == nil) }
      #expect(try await bench.store.session(TokenHash(of: "se_1".utf8)) != nil)
    },
    // Attack: an app redeems the code of an authorization after the user has disconnected it, so that it has tokens
    // and the user sees no app to disconnect.
    StoreConformance("a grant of an authorization before the app was disconnected is not stored") {
      bench async throws in
      try await bench.signIn("ac_1", "se_1")
      try await bench.signIn("ac_2", "se_2")
      let grant = bench.grant("ag_1", of: "ac_1", session: "se_1", isOffline: true)
      let elsewhere = bench.grant("ag_wiki", of: "ac_1", session: "se_1", app: "wiki")
      #expect(try await bench.apply(.putAppGrant(elsewhere)) == .conflict(.sessionEnded), "never connected")
      try await bench.apply(.endAppConnection(account: "ac_1", app: "grafana"))
      #expect(try await bench.apply(.putAppGrant(grant)) == .conflict(.sessionEnded))
      bench.clock.advance(by: .milliseconds(1))
      try await bench.apply(.putAppConnection(bench.connection("grafana")))
      #expect(try await bench.apply(.putAppGrant(grant)) == .conflict(.sessionEnded), "connected again since")
      #expect(try await bench.appGrant("ag_1") == nil)
      let again = bench.grant("ag_2", of: "ac_1", session: "se_1")
      bench.clock.advance(by: .seconds(60))
      try await bench.apply(.putAppConnection(bench.connection("grafana", scopes: ["openid"])))
      #expect(try await bench.apply(.putAppGrant(again)) == .applied(locks: []), "connected all the time")
    },
    // Attack: the code is redeemed at one gateway while the user disconnects the app at another.
    StoreConformance("an app that is disconnected while a grant is stored keeps no live grant") { bench async throws in
      for round in 0..<20 {
        let (account, session, grant) = ("ac_\(round)", "se_\(round)", "ag_\(round)")
        try await bench.signIn(account, session)
        let put = Change.putAppGrant(bench.grant(grant, of: account, session: session))
        let results = try await bench.concurrently(2) {
          [$0 == 0 ? put : .endAppConnection(account: account, app: "grafana")]
        }
        #expect(results[1] == .applied(locks: []))
        if results[0] == .applied(locks: []) {
          #expect(try await bench.appGrant(grant)?.grant.endedAt == bench.now)
        } else {
          #expect(results[0] == .conflict(.sessionEnded))
        }
      }
    },
    // Attack: a user disconnects an app and signs in to it again, and a notice of before ends the new sign-in.
    StoreConformance("a new grant of the same session and app replaces a notice that is still due") {
      bench async throws in
      try await bench.signIn("ac_1", "se_1")
      try await bench.apply(
        .putAppConnection(bench.connection("wiki")),
        .putAppGrant(bench.grant("ag_1", of: "ac_1", session: "se_1")),
        .putAppGrant(bench.grant("ag_wiki", of: "ac_1", session: "se_1", app: "wiki")))
      for app in ["grafana", "wiki"] { try await bench.apply(.endAppConnection(account: "ac_1", app: app)) }
      bench.clock.advance(by: .seconds(1))
      try await bench.apply(
        .putAppConnection(bench.connection("grafana")),
        .putAppGrant(bench.grant("ag_2", of: "ac_1", session: "se_1")))
      #expect(try await bench.claimNotices().map(\.grant) == ["ag_wiki"])
      try await bench.apply(.endSession(TokenHash(of: "se_1".utf8)))
      #expect(try await bench.claimNotices().map(\.grant) == ["ag_2"])
    },
  ]

  private static let deviceRequests: [StoreConformance] = [
    StoreConformance("a device's request is found by both codes, decided once and taken once") { bench async throws in
      let request = bench.device("one")
      #expect(try await bench.apply(.putDeviceRequest(request, most: 10)) == .applied(locks: []))
      #expect(try await bench.store.deviceRequest(device: request.device) == request)
      #expect(try await bench.store.deviceRequest(user: request.user, at: bench.now) == request)
      #expect(try await bench.store.deviceRequest(user: request.device, at: bench.now) == nil)
      #expect(try await bench.apply(.takeDevice(request.device)) == .conflict(.codeSpent), "nobody has decided")
      try await bench.apply(.pollDevice(request.device, at: bench.now + .seconds(1), interval: 10))
      let polled = try #require(try await bench.store.deviceRequest(device: request.device))
      #expect(polled.polledAt == bench.now + .seconds(1) && polled.interval == 10)
      // Attack: two users decide at the same moment.
      let results = try await bench.concurrently(20) { number in
        [.decideDevice(user: request.user, number % 2 == 0 ? .denied : .allowed([UInt8(number)]))]
      }
      let winner = try #require(results.firstIndex(of: .applied(locks: [])))
      #expect(results.count { $0 == .conflict(.codeSpent) } == 19)
      let decided = try #require(try await bench.store.deviceRequest(device: request.device))
      #expect(decided.outcome == (winner % 2 == 0 ? .denied : .allowed([UInt8(winner)])))
      #expect(try await bench.store.deviceRequest(user: request.user, at: bench.now) == nil)
      // Attack: two polls get tokens for one decision.
      let taken = try await bench.concurrently(20) { _ in [.takeDevice(request.device)] }
      #expect(taken.count { $0 == .applied(locks: []) } == 1 && taken.count { $0 == .conflict(.codeSpent) } == 19)
    },
    StoreConformance("an expired request of a device cannot be decided, and is pruned") { bench async throws in
      let request = bench.device("one")
      try await bench.apply(.putDeviceRequest(request, most: 10))
      bench.clock.set(request.expiresAt)
      #expect(try await bench.apply(.decideDevice(user: request.user, .denied)) == .conflict(.codeSpent))
      #expect(try await bench.store.deviceRequest(user: request.user, at: bench.now) == nil)
      #expect(try await bench.store.deviceRequest(device: request.device) != nil)
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.store.deviceRequest(device: request.device) == nil)
    },
    // Attack: requests without end, so that letters that somebody guesses are those of a request.
    StoreConformance("an app has a maximum number of requests from an address, and letters are used once") {
      bench async throws in
      let results = try await bench.concurrently(30) { [.putDeviceRequest(bench.device("\($0)"), most: 10)] }
      #expect(results.count { $0 == .applied(locks: []) } == 10)
      #expect(results.count { $0 == .conflict(.tooManyDeviceRequests) } == 20)
      let elsewhere = bench.device("elsewhere", from: "192.0.2.2")
      let other = bench.device("other app", app: "wiki")
      #expect(
        try await bench.apply(.putDeviceRequest(elsewhere, most: 10), .putDeviceRequest(other, most: 10))
          == .applied(locks: []))
      let same = bench.device("same letters", letters: "other app", app: "wiki")
      #expect(try await bench.apply(.putDeviceRequest(same, most: 10)) == .conflict(.tooManyDeviceRequests))
      bench.clock.set(elsewhere.expiresAt)
      #expect(try await bench.apply(.putDeviceRequest(bench.device("later"), most: 10)) == .applied(locks: []))
    },
  ]
}

extension StoreBench {
  /// Creates the account, with a claim on an address, a session and a connection to the app that grants are for.
  @discardableResult
  fileprivate func signIn(_ account: String, _ session: String) async throws -> Session {
    let session = self.session(session, of: account)
    let result = try await apply(
      .createAccount(self.account(account, claimed: [email()])), .putSession(session),
      .putAppConnection(connection("grafana", of: account)))
    #expect(result == .applied(locks: []))
    return session
  }

  fileprivate func refresh(_ name: String) -> TokenHash { TokenHash(of: "refresh \(name)".utf8) }

  /// More than five parameters: the members that tests vary, with defaults.
  fileprivate func grant(
    _ id: String, of account: String?, session: String?, app: String = "grafana", epoch: Int = 0,
    isOffline: Bool = false, expires: Duration = .seconds(30 * 86_400)
  ) -> AppGrant {
    AppGrant(
      id: id, app: app, account: account, session: session, sid: session.map { "sid of \($0)" }, epoch: epoch,
      isOffline: isOffline, scopes: ["openid", "email"],
      signIn: AppSignIn(
        nonce: "n-1", authTime: now, aal: 1, amr: ["otp"],
        passed: [PassedStep(provider: ProviderName(test: "phone_otp"), at: now)]),
      createdAt: now, usedAt: now, refresh: refresh(id), expiresAt: now + expires)
  }

  fileprivate func appGrant(_ id: String) async throws -> LiveAppGrant? { try await store.appGrant(id, at: now) }

  fileprivate func claimNotices() async throws -> [AppNotice] {
    try await store.claimAppNotices(limit: 100, until: now + .seconds(30), at: now)
  }

  fileprivate func connection(
    _ app: String, of account: String = "ac_1", scopes: [String] = [], agreed: Bool = false
  ) -> AppConnection {
    AppConnection(account: account, app: app, scopes: scopes, createdAt: now, usedAt: now, agreed: agreed)
  }

  fileprivate func device(
    _ name: String, letters: String? = nil, app: String = "tv", from address: String = "192.0.2.1"
  ) -> DeviceRequest {
    DeviceRequest(
      device: TokenHash(of: "device \(name)".utf8), user: TokenHash(of: "letters \(letters ?? name)".utf8), app: app,
      scopes: ["openid"], createdAt: now, expiresAt: now + .seconds(600), address: address)
  }

  /// Applies changes in so many transactions at once.
  /// - Returns: the results, in the order of their numbers.
  fileprivate func concurrently(_ count: Int, _ changes: @escaping @Sendable (Int) -> [Change]) async throws
    -> [ApplyResult]
  {
    let results = try await withThrowingTaskGroup(of: (Int, ApplyResult).self) { group in
      for number in 0..<count {
        group.addTask { (number, try await store.apply(changes(number), at: now)) }
      }
      return try await group.reduce(into: [Int: ApplyResult]()) { $0[$1.0] = $1.1 }
    }
    return (0..<count).compactMap { results[$0] }
  }
}
