import GRDB
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateStore

/// A statement that scans a whole table slows down as the installation grows: the store has none, except for those
/// listed here.
@Suite struct PlanTests {
  /// The beginnings of statements that may scan a table, with the reason.
  static let exceptions: [(beginning: String, why: String)] = [
    ("DELETE FROM node WHERE seen_at", "a row for each gateway"),
    ("SELECT id, generation, seen_at, keys FROM node", "a row for each gateway"),
    ("SELECT fingerprint, moment FROM meta", "one row"), ("SELECT moment FROM meta", "one row"),
    ("UPDATE meta SET fingerprint", "one row"),
    ("SELECT master, count(*) FROM access_token", "a command of an operator's"),
    ("SELECT sink FROM audit_cursor", "a row for each sink"),
    ("UPDATE audit_cursor SET number = 0", "a row for each sink"),
    ("SELECT name, count(*) FROM group_member GROUP BY name", "an operator asks how many members the groups have"),
  ]
  /// Statements that read a table in the order of its key up to a LIMIT; SQLite calls that a scan.
  static let bounded: [String] = [
    "SELECT event FROM event ORDER BY number DESC LIMIT ?1",
    "DELETE FROM event WHERE number IN (SELECT number FROM event ORDER BY number LIMIT 500)",
    "DELETE FROM session_change WHERE number IN (SELECT number FROM session_change ORDER BY number LIMIT 500)",
  ]

  /// Every statement that the store executes.
  static func statements<Database: SQLDatabase>(of make: () throws -> Database) async throws -> [String] {
    let book = StatementBook()
    for check in StoreConformance.all {
      let store = RecordingStore(try make(), in: book)
      try await check.run(on: store)
      try store.close()
    }
    let store = RecordingStore(try make(), in: book)
    try await PopulatedStore.fill(store)
    // PostgreSQL records the latest time to within a second.
    #expect(try await PopulatedStore.missing(in: store).allSatisfy { $0 == "latest moment" })
    _ = try await store.replaceFingerprint([1], with: [1], at: PopulatedStore.now)
    while try await store.prune(at: PopulatedStore.now + .seconds(40 * 86_400)) {}
    try store.close()
    #expect(book.statements.count > 80, "the suite reaches less than it did")
    return book.statements
  }

  @Test func sqliteLooksUpByIndex() async throws {
    let folder = try ScratchFolder()
    let path = folder.path("plans.db")
    try SQLiteStore(path: path, keyFingerprint: [1]).close()
    let statements = try await Self.statements { try SQLiteDatabase(path: ":memory:", keyFingerprint: [1]) }
    let database = try DatabaseQueue(path: path)
    for statement in statements where !Self.exceptions.contains(where: { statement.hasPrefix($0.beginning) }) {
      let plan = try await database.read { db in
        try Row.fetchAll(
          db, sql: "EXPLAIN QUERY PLAN " + statement, arguments: StatementArguments(Self.nothing(for: statement))
        )
        .map { $0["detail"] as String }
      }
      let isBounded = Self.bounded.contains { statement.hasPrefix($0) }
      let scans = plan.filter {
        $0.hasPrefix("SCAN") && !$0.contains("CONSTANT ROW") && !$0.contains("subquery") && !isBounded
      }
      // The indexes contain a row for each disabled counter, and for each flow in which nothing was proved. Both are
      // bounded; no other full index scan is allowed.
      .filter { plan in
        plan != "SCAN audit_cursor" && plan != "SCAN unsent"
          && ![
            "USING INDEX counter_disabled", "USING COVERING INDEX flow_unproved", "USING INDEX access_token_outdated",
          ].contains(
            where: plan.contains)
          && plan != "SCAN named" && plan != "SCAN imported" && plan != "SCAN due"
      }
      #expect(scans.isEmpty, "\(statement)\n\(plan)")
    }
  }

  /// A null for each argument.
  private static func nothing(for statement: String) -> [Int?] {
    let numbers = statement.split(separator: "?").dropFirst().compactMap { Int($0.prefix { $0.isNumber }) }
    return [Int?](repeating: nil, count: numbers.max() ?? 0)
  }
}
