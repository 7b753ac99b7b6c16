import MoongateCore
import MoongateSDK
import Testing

// Searching events, and sending them to sinks.

extension StoreConformance {
  static let audit: [StoreConformance] = [
    StoreConformance("events are found by person, kind, time and request") { bench async throws in
      let start = bench.now
      try await bench.store.append([
        bench.event("dc_1", .refused, account: "ac_1"), bench.event("dc_2", .locked, identifier: "trace"),
        bench.event("dc_3", .refused, account: "ac_2"),
      ])
      bench.clock.advance(by: .seconds(60))
      var follow = bench.event("dc_4", .sessionStarted, account: "ac_1")
      follow.detail["request"] = "dc_1"
      try await bench.store.append([follow])
      func ids(_ filter: AuditFilter, limit: Int = 10) async throws -> [String] {
        try await bench.store.events(matching: filter, limit: limit).map(\.id.text)
      }
      #expect(try await ids(AuditFilter()) == ["dc_4", "dc_3", "dc_2", "dc_1"])
      #expect(try await ids(AuditFilter(), limit: 2) == ["dc_4", "dc_3"])
      #expect(try await ids(AuditFilter(people: .init(accounts: ["ac_1"]))) == ["dc_4", "dc_1"])
      #expect(
        try await ids(AuditFilter(people: .init(accounts: ["ac_1"], traces: ["trace"]))) == ["dc_4", "dc_2", "dc_1"])
      #expect(try await ids(AuditFilter(people: .init(accounts: ["ac_"]))).isEmpty, "no part of an id")
      #expect(try await ids(AuditFilter(people: .init())).isEmpty, "nobody")
      #expect(try await ids(AuditFilter(kinds: [.refused])) == ["dc_3", "dc_1"])
      #expect(try await ids(AuditFilter(kinds: [.refused, .locked])) == ["dc_3", "dc_2", "dc_1"])
      #expect(try await ids(AuditFilter(since: bench.now)) == ["dc_4"])
      #expect(try await ids(AuditFilter(since: start)).count == 4)
      #expect(try await ids(AuditFilter(since: bench.now + .seconds(1))).isEmpty)
      #expect(
        try await ids(AuditFilter(decision: DecisionID(text: "dc_1"))) == ["dc_4", "dc_1"], "and its outcome")
      #expect(
        try await ids(AuditFilter(people: .init(accounts: ["ac_1"]), kinds: [.refused], since: start)) == ["dc_1"])
    },
    StoreConformance("a sink gets every event once and in order, from its cursor on") { bench async throws in
      for number in 0..<5 { try await bench.store.append([bench.event("dc_\(number)", .refused)]) }
      try await bench.apply(.audit(bench.event("dc_5", .locked)))
      let lease = try #require(try await bench.lease("one", name: "audit"))
      let start = try await bench.store.auditCursor(of: "file", at: bench.now)
      #expect(start == .beginning)
      let first = try await bench.unsent(after: start, limit: 4, atLeast: 4)
      #expect(first.map(\.event.id.text) == ["dc_0", "dc_1", "dc_2", "dc_3"])
      _ = try await bench.unsent(after: start, limit: 10, atLeast: 6)
      #expect(try await bench.store.auditBacklog(after: start).count == 6)
      let place = try #require(first.last?.position)
      #expect(try await bench.store.moveAuditCursor(of: "file", to: place, under: lease, at: bench.now))
      #expect(try await bench.store.auditCursor(of: "file", at: bench.now) == place)
      #expect(try await bench.store.auditCursor(of: "another", at: bench.now) == .beginning)
      let rest = try await bench.unsent(after: place, limit: 10, atLeast: 2)
      #expect(rest.map(\.event.id.text) == ["dc_4", "dc_5"])
      let end = try #require(rest.last?.position)
      #expect(try await bench.store.events(after: end, limit: 10).isEmpty)
      #expect(try await bench.store.auditBacklog(after: end) == AuditBacklog(count: 0, oldest: nil))
    },
    // Attack on ourselves: a gateway that was suspended in the middle of a batch, and continues while another one is
    // sending.
    StoreConformance("a cursor cannot be moved under a lost lease") { bench async throws in
      try await bench.store.append([bench.event("dc_1", .refused)])
      let first = try #require(try await bench.lease("one", name: "audit"))
      _ = try await bench.store.auditCursor(of: "file", at: bench.now)
      let place = try #require(try await bench.unsent(after: .beginning, limit: 1, atLeast: 1).last?.position)
      bench.clock.advance(by: .seconds(90))
      #expect(try await !bench.store.moveAuditCursor(of: "file", to: place, under: first, at: bench.now))
      let second = try #require(try await bench.lease("two", name: "audit"))
      #expect(try await !bench.store.moveAuditCursor(of: "file", to: place, under: first, at: bench.now))
      #expect(try await bench.store.auditCursor(of: "file", at: bench.now) == .beginning)
      #expect(try await bench.store.moveAuditCursor(of: "file", to: place, under: second, at: bench.now))
    },
    StoreConformance("a flood that is stored again with its count is sent again") { bench async throws in
      var fold = bench.event("dc_1", .refused)
      fold.count = 1
      try await bench.store.append([fold])
      let place = try #require(try await bench.unsent(after: .beginning, limit: 10, atLeast: 1).last?.position)
      fold.count = 990
      try await bench.store.append([fold])
      #expect(try await bench.unsent(after: place, limit: 10, atLeast: 1).map(\.event) == [fold])
    },
    StoreConformance("an emptied trail loses none of the later events") { bench async throws in
      try await bench.store.append([bench.event("dc_1", .refused), bench.event("dc_2", .refused)])
      let lease = try #require(try await bench.lease("one", name: "audit"))
      _ = try await bench.store.auditCursor(of: "file", at: bench.now)
      let place = try #require(try await bench.unsent(after: .beginning, limit: 10, atLeast: 2).last?.position)
      #expect(try await bench.store.moveAuditCursor(of: "file", to: place, under: lease, at: bench.now))
      bench.clock.advance(by: .seconds(8 * 86_400))
      while try await bench.store.prune(at: bench.now) {}
      try await bench.store.append([bench.event("dc_3", .refused)])
      let cursor = try await bench.store.auditCursor(of: "file", at: bench.now)
      #expect(try await bench.unsent(after: cursor, limit: 10, atLeast: 1).map(\.event.id.text) == ["dc_3"])
    },
    StoreConformance("cursors of removed sinks are deleted") { bench async throws in
      for sink in ["old", "kept"] { _ = try await bench.store.auditCursor(of: sink, at: bench.now) }
      let lease = try #require(try await bench.lease("one", name: "audit"))
      let place = AuditPosition(transaction: 0, number: 7)
      for sink in ["old", "kept"] {
        #expect(try await bench.store.moveAuditCursor(of: sink, to: place, under: lease, at: bench.now))
      }
      bench.clock.advance(by: .seconds(10))
      try await bench.store.forgetAuditCursors(unusedSince: bench.now - .seconds(60), except: [], at: bench.now)
      #expect(try await bench.store.auditCursor(of: "kept", at: bench.now) == place, "in use")
      bench.clock.advance(by: .seconds(60))
      try await bench.store.forgetAuditCursors(unusedSince: bench.now - .seconds(60), except: ["kept"], at: bench.now)
      #expect(try await bench.store.auditCursor(of: "kept", at: bench.now) == place)
      #expect(try await bench.store.auditCursor(of: "old", at: bench.now) == .beginning)
    },
    StoreConformance("a lease can be extended by its holder only") { bench async throws in
      let first = try #require(try await bench.lease("one"))
      bench.clock.advance(by: .seconds(80))
      let renewed = try #require(try await bench.store.renewLease(first, for: .seconds(90), at: bench.now))
      #expect(renewed.heldUntil == bench.now + .seconds(90) && renewed.fence == first.fence)
      bench.clock.advance(by: .seconds(89))
      #expect(try await bench.acquire("two") == .notBefore(renewed.heldUntil))
      bench.clock.advance(by: .seconds(1))
      #expect(try await bench.store.renewLease(renewed, for: .seconds(90), at: bench.now) == nil, "its end is enough")
      let second = try #require(try await bench.lease("two"))
      #expect(try await bench.store.renewLease(renewed, for: .seconds(90), at: bench.now) == nil)
      #expect(try await bench.store.renewLease(second, for: .seconds(90), at: bench.now) != nil)
    },
  ]
}

extension StoreBench {
  /// The events to be sent. Waits for them, because a database returns none while an older transaction is running, even
  /// one of another test.
  func unsent(after position: AuditPosition, limit: Int, atLeast count: Int) async throws -> [PositionedEvent] {
    for _ in 0..<5_000 {
      let found = try await store.events(after: position, limit: limit)
      if found.count >= count { return found }
      try await Task.sleep(for: .milliseconds(2))
    }
    return try await store.events(after: position, limit: limit)
  }

  func event(_ id: String, _ kind: AuditEvent.Kind, account: String? = nil, identifier: String? = nil) -> AuditEvent {
    AuditEvent(id: DecisionID(text: id), at: now, kind: kind, account: account, identifier: identifier)
  }
}
