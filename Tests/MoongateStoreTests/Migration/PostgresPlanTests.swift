import Foundation
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateStore

/// The same statements, explained by PostgreSQL.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.need)")) struct PostgresPlanTests {
  @Test func postgresLooksUpByIndex() async throws {
    let server = try #require(PostgresServer.shared)
    let statements = try await PlanTests.statements {
      let url = server.url(try server.makeDatabase())
      try PostgresStore(url: url, keyFingerprint: [1]).close()
      return PostgresDatabase(try PostgresAddress(url), timing: .patient)
    }
    let database = try server.makeDatabase()
    try PostgresStore(url: server.url(database), keyFingerprint: [1]).close()
    try server.sql("\(Self.crowd); \(Self.multitude)", in: database)
    // Only tests use hundreds of limits at once, and psql's command line is limited.
    for statement in statements where statement.utf8.count < 10_000 {
      if PlanTests.exceptions.contains(where: { statement.hasPrefix($0.beginning) }) { continue }
      let numbers = statement.split(separator: "?").dropFirst().compactMap { Int($0.prefix { $0.isNumber }) }
      let nothing = [String](repeating: "NULL", count: numbers.max() ?? 0).joined(separator: ", ")
      let plan = try server.sql(
        """
        SET plan_cache_mode = force_generic_plan;
        PREPARE asked AS \(statement.replacing(#/\?(\d+)/#) { "$\($0.output.1)" });
        EXPLAIN EXECUTE asked\(nothing.isEmpty ? "" : "(\(nothing))")
        """, in: database)
      #expect(
        Self.walks(plan, isBounded: PlanTests.bounded.contains { statement.hasPrefix($0) }) == [],
        "\(statement)\n\(plan)")
    }
  }

  /// A check scans each table once. `NOT IN` would go through all accounts for each row as soon as they do not fit into
  /// memory.
  @Test func aCheckOfManyAccountsEnds() throws {
    let server = try #require(PostgresServer.shared)
    let database = try server.makeDatabase()
    try PostgresStore(url: server.url(database), keyFingerprint: [1]).close()
    try server.sql("\(Self.crowd); \(Self.multitude)", in: database)
    for statement in StoreCheck.statements {
      let plan = try server.sql("SET work_mem = '64kB'; EXPLAIN \(statement)", in: database)
      #expect(plan.firstMatch(of: #/NOT \(.*SubPlan/#) == nil, "\(statement)\n\(plan)")
    }
  }

  /// What pruning reads, by the server's own statistics: no growing table is scanned completely, and no step reads more
  /// rows of a table than its limit, however many there are.
  @Test func pruningRunsInSmallSteps() async throws {
    let server = try #require(PostgresServer.shared)
    let name = try server.makeDatabase()
    let store = try PostgresStore(url: server.url(name), keyFingerprint: [1], purpose: .working)
    try server.sql("\(Self.crowd); \(Self.multitude)", in: name)
    // In a connection of its own: the other one reports when it ends, that it has looked for the account of each row.
    try server.sql("SELECT pg_stat_reset()", in: name)
    let steps = 60
    for _ in 0..<steps { #expect(try await store.prune(at: ManualClock.start)) }
    try store.close()
    // A connection reports its statistics when it ends.
    let end = ContinuousClock.now + .seconds(20)
    while try server.sql("SELECT count(*) FROM pg_stat_activity WHERE datname = '\(name)'") != "0" {
      try #require(ContinuousClock.now < end)
    }
    let counts = try server.sql(
      """
      SELECT relname, seq_scan, idx_tup_fetch / \(steps), n_tup_del FROM pg_stat_user_tables
      WHERE relname NOT IN ('meta', 'session_number', 'moongate_schema', 'node', 'lease', 'pending')
      """, in: name
    ).split(separator: "\n").map { $0.split(separator: "|").map(String.init) }
    #expect(counts.count > 8)
    for count in counts {
      #expect(count[1] == "0", "\(count[0]) was walked")
      #expect(try #require(Int(count[2])) <= 5 * 500, "\(count[0]): \(count[2]) rows a step")
    }
    let deleted = Dictionary(uniqueKeysWithValues: try counts.map { ($0[0], try #require(Int($0[3]))) })
    #expect(
      deleted["event"] == steps * 500 && deleted["flow"] == steps * 500 && deleted["session_change"] == 19_999
        && deleted["counter"] ?? 0 > 0)
    #expect(try server.sql("SELECT count(*) FROM event", in: name) == "\(200_000 - steps * 500)")
  }

  /// The nodes of a plan that read all of a growing table, directly or along an index.
  private static func walks(_ plan: String, isBounded: Bool) -> [String] {
    let lines = plan.split(separator: "\n").map(String.init)
    return lines.indices.compactMap { place in
      let line = lines[place]
      if line.contains("Seq Scan") {
        return ["on session_number", "on meta", "on lease", "on audit_cursor"].contains { line.contains($0) }
          ? nil : line
      }
      // These indexes contain a row for each lock, for each flow in which nothing was proved, and for each account of
      // an import that is not complete, of which a statement reads 200. No other full index scan is allowed.
      let small = [
        "counter_disabled", "counter_locked", "flow_unproved", "access_token_outdated", "account_pending",
      ]
      guard line.contains("Index"), line.contains("Scan"), !small.contains(where: line.contains) else { return nil }
      let details = lines[(place + 1)...].prefix { !$0.contains("->") && !$0.contains("Plan ") && !$0.contains("CTE ") }
      return isBounded || details.contains { $0.contains("Index Cond") } ? nil : line
    }
  }

  /// Enough rows that a scan is not the cheapest way to find one.
  private static let crowd = """
    INSERT INTO account SELECT 'ac_' || n, NULL, NULL, n, n, 0 FROM generate_series(1, 20000) AS n;
    INSERT INTO identifier SELECT 'ac_' || n, 0, 'phone', '+' || n, '', '{}', CASE WHEN n % 2 = 0 THEN 1 END FROM generate_series(1, 20000) AS n;
    INSERT INTO identifier SELECT 'ac_' || n, 1, 'name', 'n' || n, '', '{}', NULL, NULL, NULL, 's' || n FROM generate_series(1, 20000) AS n;
    INSERT INTO provider_record SELECT 'ac_' || n, 'pin', '\\x00', n, n FROM generate_series(1, 20000) AS n;
    INSERT INTO group_member SELECT 'g' || n % 50, 'ac_' || n, n FROM generate_series(1, 20000) AS n;
    INSERT INTO session SELECT sha256(n::text::bytea), 'se_' || n, 'ac_' || n, n, n, 1, n, '[]', NULL, NULL, NULL, 0 FROM generate_series(1, 20000) AS n;
    INSERT INTO site_session SELECT 's' || n, sha256(n::text::bytea) FROM generate_series(1, 20000) AS n;
    INSERT INTO session_domain SELECT sha256(n::text::bytea), 'ac_' || n, 'se_' || n, 'example.org', '\\x00', '[]' FROM generate_series(1, 20000) AS n;
    INSERT INTO trusted_device SELECT 'ac_' || n, 'de_' || n, n, n, NULL FROM generate_series(1, 20000) AS n;
    INSERT INTO replaced_token SELECT sha256(n::text::bytea), 'ac_' || n, 'se_' || n, n FROM generate_series(1, 20000) AS n;
    INSERT INTO factor_reset SELECT 'ac_' || n, 'pin', n FROM generate_series(1, 20000) AS n;
    INSERT INTO spent_code SELECT sha256(n::text::bytea), n FROM generate_series(1, 20000) AS n;
    INSERT INTO counter SELECT sha256(n::text::bytea), 'p', 'n', 1, n, n, CASE WHEN n % 50 = 0 THEN n END, 0, CASE WHEN n % 100 = 0 THEN n END, n
      FROM generate_series(1, 20000) AS n;
    INSERT INTO pending SELECT sha256(n::text::bytea), '\\x00', n, n FROM generate_series(1, 20000) AS n;
    INSERT INTO tally SELECT sha256(n::text::bytea), n, '\\x00' FROM generate_series(1, 20000) AS n;
    INSERT INTO failed_attempt SELECT sha256(n::text::bytea), n, '\\x00', 'a' || n, 'i' || n, '\\x00' FROM generate_series(1, 20000) AS n;
    INSERT INTO timer SELECT sha256(n::text::bytea), 0, n, n FROM generate_series(1, 20000) AS n;
    INSERT INTO flow (hash, version, forgotten_at, record)
      SELECT sha256(n::text::bytea), 1, n, repeat('x', 200)::bytea FROM generate_series(1, 200000) AS n;
    INSERT INTO event (id, at, event) SELECT 'dc_' || n, n, repeat('x', 200)::bytea FROM generate_series(1, 200000) AS n;
    INSERT INTO session_change SELECT n, n, '\\x00', NULL FROM generate_series(1, 20000) AS n;
    INSERT INTO provider_value SELECT CASE WHEN n % 2 = 0 THEN 'push' ELSE 'other' END, sha256(n::text::bytea), '\\x00', n FROM generate_series(1, 20000) AS n;
    INSERT INTO access_token SELECT 'tk_' || n, sha256(n::text::bytea), 'k', 'n' || n, CASE WHEN n % 2 = 0 THEN 'ac_' || n END, 0, '[]', '[]', n, n, 0,
      CASE WHEN n % 100 = 0 THEN 2 ELSE 1 END, NULL, NULL, '[]' FROM generate_series(1, 20000) AS n;
    INSERT INTO invitation SELECT 'in_' || n, sha256(n::text::bytea), NULL, NULL, NULL, NULL, '[]', n, n FROM generate_series(1, 20000) AS n;
    INSERT INTO app_grant SELECT 'ag_' || n, 'app' || n % 50, 'ac_' || n / 2, CASE WHEN n % 3 = 0 THEN 'se_' || n / 2 END, 's' || n, 0, 0, '[]', '{}', n, n,
      sha256(n::text::bytea), sha256((-n)::text::bytea), n, n, NULL, CASE WHEN n % 3 = 0 THEN n END, CASE WHEN n % 3 = 1 THEN n END, n, 0
      FROM generate_series(1, 20000) AS n;
    INSERT INTO app_connection SELECT 'ac_' || n, 'app', '[]', n, n, 0 FROM generate_series(1, 20000) AS n;
    INSERT INTO device_request SELECT sha256(n::text::bytea), sha256(n::text::bytea), 'app' || n % 50, '[]', n, n, '192.0.2.' || n % 99, NULL, 5, 0, NULL
      FROM generate_series(1, 20000) AS n;
    INSERT INTO node SELECT 'node ' || n, 'g', n, '' FROM generate_series(1, 20000) AS n;
    ANALYZE
    """

  /// Makes PostgreSQL assume ten million rows in each growing table.
  private static let multitude = """
    UPDATE pg_class SET reltuples = 10000000 WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i')
      AND (relkind = 'i' OR relname NOT IN ('meta', 'session_number', 'moongate_schema'))
    """
}
