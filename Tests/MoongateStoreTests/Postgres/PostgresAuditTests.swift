import MoongateCore
import MoongateStore
import MoongateTesting
import Testing

/// The order in which PostgreSQL returns the audit trail.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.need)")) struct PostgresAuditTests {
  /// A database restored into another server: its transaction ids are years ahead of this server's.
  @Test func restoredTrailAndLaterEventsAreSentAgain() async throws {
    let server = try #require(PostgresServer.shared)
    let database = try server.makeDatabase()
    let store = try PostgresStore(url: server.url(database), keyFingerprint: [1])
    let now = Timestamp(milliseconds: 1_795_000_000_000)
    func event(_ id: String) -> AuditEvent { AuditEvent(id: DecisionID(text: id), at: now, kind: .refused) }
    try await store.append([event("dc_1")])
    _ = try await store.auditCursor(of: "file", at: now)
    _ = try server.sql(
      "UPDATE event SET xact = 9000000000; UPDATE audit_cursor SET xact = 9000000000, number = (SELECT max(number) FROM event)",
      in: database)
    let cursor = try await store.auditCursor(of: "file", at: now)
    try await store.append([event("dc_2")])
    var found: [String] = []
    for _ in 0..<5_000 where found.count < 2 {
      found = try await store.events(after: cursor, limit: 10).map(\.event.id.text)
      if found.count < 2 { try await Task.sleep(for: .milliseconds(2)) }
    }
    #expect(found == ["dc_1", "dc_2"])
    try store.close()
  }
}
