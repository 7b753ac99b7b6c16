import MoongateCore
import MoongateSDK
import Testing

// Access tokens.

extension StoreConformance {
  static let tokens: [StoreConformance] = [
    StoreConformance("a token is found by its hash and by its id, as it was stored") { bench async throws in
      let token = bench.token(
        "ci", groups: ["a", "b"], networks: ["10.0.0.0/8", "2001:db8::/32"], expires: .seconds(60))
      #expect(try await bench.apply(.putAccessToken(token)) == .applied(locks: []))
      #expect(
        try await bench.store.accessToken(hashed: [[9], token.hash.bytes])
          == FoundAccessToken(token: token, account: nil))
      #expect(try await bench.store.accessToken(token.id) == FoundAccessToken(token: token, account: nil))
      #expect(try await bench.store.accessToken(hashed: [[9]]) == nil)
      #expect(try await bench.store.accessToken("tk_other") == nil)
      #expect(try await bench.store.accessTokens(of: nil) == [token])
      #expect(try await bench.store.accessTokensByKey() == ["k1": 1])
    },
    StoreConformance("of fifty concurrent tokens of one name, one is created") { bench async throws in
      let results = try await withThrowingTaskGroup(of: ApplyResult.self) { group in
        for number in 0..<50 {
          group.addTask {
            try await bench.store.apply([.putAccessToken(bench.token("ci", id: "tk_\(number)"))], at: bench.now)
          }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(
        results.count { $0 == .applied(locks: []) } == 1 && results.count { $0 == .conflict(.tokenNameTaken) } == 49)
    },
    StoreConformance("a personal token is read with its owner, and deleted with the account") { bench async throws in
      _ = try await bench.apply(.createAccount(bench.account("ac_1")))
      _ = try await bench.apply(.createAccount(bench.account("ac_2")))
      let owner = AccountVersion(id: "ac_1", epoch: 0)
      let token = bench.token("backup", owner: owner)
      #expect(try await bench.apply(.putAccessToken(token)) == .applied(locks: []))
      #expect(try await bench.store.accessToken(token.id)?.account?.id == "ac_1")
      #expect(
        try await bench.apply(.putAccessToken(bench.token("backup", id: "tk_2"))) == .applied(locks: []),
        "a service token of that name")
      let others = bench.token("backup", id: "tk_3", owner: AccountVersion(id: "ac_2", epoch: 0))
      #expect(try await bench.apply(.putAccessToken(others)) == .applied(locks: []), "another person's")
      #expect(
        try await bench.apply(.putAccessToken(bench.token("backup", id: "tk_4", owner: owner)))
          == .conflict(.tokenNameTaken))
      #expect(try await bench.store.accessTokens(of: "ac_1") == [token])
      _ = try await bench.apply(.deleteAccount("ac_1", traces: []))
      #expect(try await bench.store.accessToken(token.id) == nil)
      #expect(try await bench.store.accessTokens(of: "ac_2") == [others])
    },
    // Attack: one account creates an unlimited number of tokens.
    StoreConformance("an account has a maximum number of tokens, and none while it is locked") { bench async throws in
      _ = try await bench.apply(.createAccount(bench.account("ac_1")))
      let owner = AccountVersion(id: "ac_1", epoch: 0)
      let results = try await withThrowingTaskGroup(of: ApplyResult.self) { group in
        for number in 0..<12 {
          group.addTask {
            try await bench.store.apply(
              [.putAccessToken(bench.token("t\(number)", id: "tk_\(number)", owner: owner), most: 3)], at: bench.now)
          }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(
        results.count { $0 == .applied(locks: []) } == 3 && results.count { $0 == .conflict(.tooManyTokens) } == 9)
      _ = try await bench.apply(.setLocked(account: "ac_1", true))
      #expect(
        try await bench.apply(.putAccessToken(bench.token("late", id: "tk_late", owner: owner)))
          == .conflict(.accountUnavailable))
      #expect(
        try await bench.apply(
          .putAccessToken(bench.token("none", id: "tk_none", owner: AccountVersion(id: "ac_9", epoch: 0))))
          == .conflict(.accountUnavailable))
    },
    StoreConformance("a superseded token is valid until its end, and frees its name") { bench async throws in
      let old = bench.token("ci", expires: .seconds(100))
      _ = try await bench.apply(.putAccessToken(old))
      let new = bench.token("ci", id: "tk_new")
      let until = bench.now + .seconds(10)
      let before = try await bench.store.sessionChanges(after: .max).latest
      #expect(
        try await bench.apply(.supersedeAccessToken(old.id, until: until), .putAccessToken(new)) == .applied(locks: []))
      let all = try await bench.store.accessTokens(of: nil)
      #expect(
        all.map(\.id) == [new.id, old.id] && all.map(\.isSuperseded) == [false, true] && all[1].expiresAt == until)
      #expect(try await bench.store.sessionChanges(after: before).tokens == [AccessToken.announcement(of: old.id)])
      #expect(
        try await bench.apply(.supersedeAccessToken(old.id, until: until)) == .conflict(.tokenGone),
        "it was superseded before")
      _ = try await bench.apply(.supersedeAccessToken(new.id, until: until))
      #expect(try await bench.store.accessToken(new.id)?.token.expiresAt == until, "a token without expiry expires now")
      bench.clock.advance(by: .seconds(10))
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.store.accessTokens(of: nil).isEmpty)
    },
    StoreConformance("a token is ended once, and its end is announced") { bench async throws in
      let token = bench.token("ci")
      _ = try await bench.apply(.putAccessToken(token))
      let before = try await bench.store.sessionChanges(after: .max).latest
      #expect(try await bench.apply(.endAccessToken(token.id)) == .applied(locks: []))
      #expect(try await bench.store.sessionChanges(after: before).tokens == [AccessToken.announcement(of: token.id)])
      #expect(try await bench.apply(.endAccessToken(token.id)) == .conflict(.tokenGone))
      #expect(try await bench.store.accessToken(hashed: [token.hash.bytes]) == nil)
    },
    StoreConformance("the time of use moves forward only, and a new network is reported once") { bench async throws in
      let token = bench.token("ci")
      _ = try await bench.apply(.putAccessToken(token))
      let use = { (network: String, at: Timestamp) in
        AccessTokenUse(
          id: token.id, at: at, network: network,
          event: .about(token, .tokenUsed, at: at, bench.random, ["network": network]))
      }
      let later = bench.now + .seconds(5)
      try await bench.store.recordAccessTokenUses([use("192.0.2.0/24", later)])
      try await bench.store.recordAccessTokenUses([use("192.0.2.0/24", bench.now), use("198.51.100.0/24", bench.now)])
      let found = try #require(try await bench.store.accessToken(token.id)?.token)
      #expect(found.lastUsedAt == later && found.lastUsedFrom == "192.0.2.0/24")
      try await bench.store.recordAccessTokenUses([use("192.0.2.0/24", later + .seconds(1))])
      let told = try await bench.store.events(limit: 100).filter { $0.kind == .tokenUsed }
      #expect(told.compactMap { $0.detail["network"] }.sorted() == ["192.0.2.0/24", "198.51.100.0/24"])
      try await bench.store.recordAccessTokenUses([])
      // Attack: a stolen token is used just before it is revoked, so that its network is not recorded.
      #expect(try await bench.apply(.endAccessToken(token.id)) == .applied(locks: []))
      try await bench.store.recordAccessTokenUses([use("203.0.113.0/24", later + .seconds(2))])
      #expect(
        try await bench.store.events(limit: 100).contains {
          $0.kind == .tokenUsed && $0.detail["network"] == "203.0.113.0/24"
        })
    },
    StoreConformance("a token moves to another key only if it still has the expected hash") { bench async throws in
      let token = bench.token("ci")
      _ = try await bench.apply(.putAccessToken(token))
      let new = AccessTokenHash(key: "k2", bytes: [UInt8](repeating: 7, count: 32))
      try await bench.store.rehashAccessToken(
        token.id, from: AccessTokenHash(key: "k1", bytes: [1]), to: new, at: bench.now)
      #expect(try await bench.store.accessTokensByKey() == ["k1": 1])
      try await bench.store.rehashAccessToken(token.id, from: token.hash, to: new, at: bench.now)
      #expect(try await bench.store.accessTokensByKey() == ["k2": 1])
      #expect(try await bench.store.accessToken(hashed: [new.bytes])?.token.id == token.id)
      #expect(try await bench.store.accessToken(hashed: [token.hash.bytes]) == nil)
    },
    StoreConformance("an expired token is found until that is recorded, and listed for a while") {
      bench async throws in
      _ = try await bench.apply(.createAccount(bench.account("ac_1")))
      let expiring = bench.token("ci", expires: .seconds(10))
      let personal = bench.token("backup", id: "tk_own", owner: AccountVersion(id: "ac_1", epoch: 0))
      _ = try await bench.apply(
        .putAccessToken(expiring), .putAccessToken(personal), .putAccessToken(bench.token("other", id: "tk_other")))
      #expect(try await bench.store.endedAccessTokens(at: bench.now + .milliseconds(9_999), limit: 10).isEmpty)
      bench.clock.advance(by: .seconds(10))
      #expect(try await bench.store.endedAccessTokens(at: bench.now, limit: 10) == [expiring])
      _ = try await bench.apply(.raiseEpoch(account: "ac_1", keepsTokens: true))
      #expect(try await bench.store.endedAccessTokens(at: bench.now, limit: 10) == [expiring])
      #expect(try await bench.store.accessToken(personal.id)?.token.owner == AccountVersion(id: "ac_1", epoch: 1))
      _ = try await bench.apply(.raiseEpoch(account: "ac_1"))
      #expect(
        Set(try await bench.store.endedAccessTokens(at: bench.now, limit: 10).map(\.id)) == [expiring.id, personal.id])
      #expect(try await bench.apply(.noteAccessTokenExpired(expiring.id)) == .applied(locks: []))
      #expect(try await bench.apply(.noteAccessTokenExpired(expiring.id)) == .conflict(.tokenGone))
      #expect(try await bench.store.endedAccessTokens(at: bench.now, limit: 10).map(\.id) == [personal.id])
      while try await bench.store.prune(at: bench.now) {}
      #expect(try await bench.store.accessToken(expiring.id) != nil)
      while try await bench.store.prune(at: bench.now + .seconds(30 * 86_400)) {}
      #expect(try await bench.store.accessToken(expiring.id) == nil)
    },
  ]
}

extension StoreBench {
  /// A token whose hash is derived from its ID. More than five parameters: the members that tests vary, with defaults.
  func token(
    _ name: String, id: String? = nil, owner: AccountVersion? = nil, groups: [String] = [], networks: [String] = [],
    expires: Duration? = nil
  ) -> AccessToken {
    let id = id ?? "tk_\(name)"
    return AccessToken(
      id: id, name: name, owner: owner, groups: groups.compactMap { GroupName(rawValue: $0) },
      networks: networks.compactMap { AddressBlock($0) },
      createdAt: now,
      expiresAt: expires.map { now + $0 },
      hash: AccessTokenHash(key: "k1", bytes: TokenHash(of: "hash of \(id)".utf8).bytes))
  }
}
