import MoongateCore
import MoongateSDK
import Testing

// When the sites of identities are asked about them again.

extension StoreConformance {
  private static let site = ProviderName(test: "work")
  private static let identity = Identifier(
    kind: .federated, value: "work 1", display: "Asha", attributes: ["floor": "3"], groups: ["ops"])

  static let rechecks: [StoreConformance] = [
    StoreConformance("a due recheck is claimed once, and can then be taken over") { bench async throws in
      try await bench.schedule(sealed: [1], dueAt: bench.now + .seconds(60))
      #expect(try await bench.claim().isEmpty)
      bench.clock.advance(by: .seconds(60))
      let first = try #require(try await bench.claim().first)
      #expect(first.account == "ac_1" && first.identity.hasSameDetails(as: identity) && first.identity == identity)
      #expect(first.recheck.sealed == [1] && first.recheck.provider == site)
      #expect(first.recheck.confirmedAt == bench.now - .seconds(60))
      #expect(try await bench.claim().isEmpty)
      bench.clock.advance(by: .seconds(90))
      let second = try #require(try await bench.claim().first)
      #expect(second.fence > first.fence)
      // The first gateway continues after its claim has ended.
      #expect(try await bench.put(sealed: [2], under: first) == .conflict(.recordChanged))
      #expect(try await bench.put(sealed: [3], under: second) == .applied(locks: []))
      bench.clock.advance(by: .seconds(60))
      #expect(try await bench.claim().first?.recheck.sealed == [3])
    },
    StoreConformance("of ten gateways that claim at once, one gets a recheck") { bench async throws in
      try await bench.schedule(sealed: [1], dueAt: bench.now)
      let claims = try await withThrowingTaskGroup(of: [ClaimedRecheck].self) { group in
        for _ in 0..<10 { group.addTask { try await bench.claim() } }
        return try await group.reduce(into: []) { $0 += $1 }
      }
      #expect(claims.count == 1)
    },
    StoreConformance("a proof of an identity ends the claim, and keeps the state unless it has a new one") {
      bench async throws in
      try await bench.schedule(sealed: [1], dueAt: bench.now)
      let claim = try #require(try await bench.claim().first)
      try await bench.schedule(sealed: nil, dueAt: bench.now, isNew: false)
      #expect(try await bench.put(sealed: [2], under: claim) == .conflict(.recordChanged))
      #expect(try await bench.claim().first?.recheck.sealed == [1])
      try await bench.schedule(sealed: [4], dueAt: bench.now, isNew: false)
      #expect(try await bench.claim().first?.recheck.sealed == [4])
    },
    StoreConformance("without a state the recheck has the empty one, and a removed identity has none") {
      bench async throws in
      try await bench.schedule(sealed: nil, dueAt: bench.now)
      #expect(try await bench.claim().first?.recheck.sealed == [])
      try await bench.schedule(sealed: [1], dueAt: bench.now, isNew: false)
      let claim = try #require(try await bench.claim().first)
      try await bench.apply(.removeIdentifier(account: "ac_1", identity))
      #expect(try await bench.put(sealed: [2], under: claim) == .conflict(.recordChanged))
      try await bench.apply(.verifyIdentifier(account: "ac_1", identity))
      bench.clock.advance(by: .seconds(90))
      #expect(try await bench.claim().isEmpty, "its state is gone with it")
    },
    StoreConformance("a recheck that is dropped keeps no state") { bench async throws in
      try await bench.schedule(sealed: [1], dueAt: bench.now)
      let claim = try #require(try await bench.claim().first)
      try await bench.apply(.putRecheck(account: "ac_1", identity, nil, under: claim.fence))
      try await bench.schedule(sealed: nil, dueAt: bench.now, isNew: false)
      #expect(try await bench.claim().first?.recheck.sealed == [])
    },
    StoreConformance("the most overdue rechecks are claimed first") { bench async throws in
      for number in 1...3 {
        let other = Identifier(kind: .federated, value: "work \(number)", display: "")
        try await bench.apply(.createAccount(bench.account("ac_\(number)", verified: [other])))
        let recheck = StoredRecheck(
          provider: site, sealed: [1], confirmedAt: bench.now, dueAt: bench.now + .seconds(10 - number))
        try await bench.apply(.putRecheck(account: "ac_\(number)", other, recheck, under: nil))
      }
      bench.clock.advance(by: .seconds(60))
      #expect(try await bench.claim(1).map(\.account) == ["ac_3"])
      #expect(Set(try await bench.claim(5).map(\.account)) == ["ac_1", "ac_2"])
    },
  ]
}

extension StoreBench {
  private static let site = ProviderName(test: "work")
  private static let identity = Identifier(
    kind: .federated, value: "work 1", display: "Asha", attributes: ["floor": "3"], groups: ["ops"])

  func claim(_ limit: Int = 10) async throws -> [ClaimedRecheck] {
    try await store.claimRechecks(limit: limit, until: now + .seconds(90), at: now)
  }

  fileprivate func schedule(sealed: [UInt8]?, dueAt due: Timestamp, isNew: Bool = true) async throws {
    if isNew { try await apply(.createAccount(account("ac_1", verified: [Self.identity]))) }
    let recheck = StoredRecheck(provider: Self.site, sealed: sealed, confirmedAt: now, dueAt: due)
    try await apply(.putRecheck(account: "ac_1", Self.identity, recheck, under: nil))
  }

  fileprivate func put(sealed: [UInt8], under claim: ClaimedRecheck) async throws -> ApplyResult {
    let recheck = StoredRecheck(
      provider: Self.site, sealed: sealed, confirmedAt: now, dueAt: now + .seconds(60))
    return try await store.apply([.putRecheck(account: "ac_1", claim.identity, recheck, under: claim.fence)], at: now)
  }
}
