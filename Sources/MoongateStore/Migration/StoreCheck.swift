import MoongateCore

/// The result of checking a store.
package struct StoreReport: Sendable, Equatable {
  /// The number of rows of a table.
  package struct Count: Sendable, Equatable {
    package let table: String
    package let rows: Int
  }

  /// The version of the schema.
  package let version: Int
  package let counts: [Count]
  /// The problems, one sentence each. Empty if the store is sound.
  package let findings: [String]
}

/// The invariants of every store. Each rule is a statement that counts violations.
struct StoreCheck: SnapshotWork {
  private struct Rule {
    let sql: String
    /// The sentence for this number of violations.
    let finding: @Sendable (Int) -> String
  }

  func run(_ rows: some SQLTransaction) throws -> (counts: [StoreReport.Count], findings: [String]) {
    try rows.allowLongRun()
    let counts = try Schema.tables.map { table in
      StoreReport.Count(table: table.name, rows: try rows.row("SELECT count(*) FROM \(table.name)")?.count(0) ?? 0)
    }
    var findings: [String] = []
    for rule in Self.rules + (rows.dialect == .postgres ? Self.postgresRules : []) {
      let broken = try rows.row(rule.sql)?.count(0) ?? 0
      if broken > 0 { findings.append(rule.finding(broken)) }
    }
    return (counts, findings)
  }

  private static let rules = [
    Rule(sql: "SELECT (SELECT count(*) FROM account) WHERE NOT EXISTS (SELECT 1 FROM meta)") {
      "accounts in a store that names no master key: \($0)"
    },
    Rule(
      sql:
        "SELECT count(*) FROM counter WHERE counted <> (SELECT count(*) FROM tally WHERE tally.counter = counter.key)"
    ) {
      "counters with a wrong number of attempts: \($0)"
    },
    Rule(
      sql: """
        SELECT count(*) FROM counter WHERE coalesce(oldest, -1) <> coalesce((SELECT min(at) FROM tally WHERE tally.counter = counter.key), -1)
        """
    ) { "counters with a wrong time of the oldest attempt: \($0)" },
    Rule(
      sql: """
        SELECT count(*) FROM (SELECT DISTINCT counter FROM tally) AS tries WHERE NOT EXISTS (SELECT 1 FROM counter WHERE counter.key = tries.counter)
        """
    ) { "missing counters that have attempts: \($0)" },
    Rule(
      sql: """
        SELECT count(*) FROM (SELECT kind, value FROM identifier WHERE verified_at IS NOT NULL GROUP BY kind, value HAVING count(*) > 1) AS twice
        """
    ) { "identifiers verified by more than one account: \($0)" },
    Rule(
      sql: """
        SELECT count(*) FROM (SELECT account, kind, value FROM identifier GROUP BY account, kind, value HAVING count(*) > 1) AS twice
        """
    ) { "identifiers stored twice for one account: \($0)" },
    orphans("identifier", "identifiers"), orphans("provider_record", "providers' records"),
    orphans("session", "sessions"), orphans("app_connection", "connected apps"),
    // Attack on ourselves: a way to end a session forgets the apps. Each grant of a session is looked at when the
    // session would expire at the latest.
    Rule(sql: "SELECT count(*) FROM app_grant WHERE session IS NOT NULL AND (account IS NULL OR session_due IS NULL)") {
      "grants of apps whose sessions are not watched: \($0)"
    },
    Rule(sql: "SELECT count(*) FROM session WHERE account IN (SELECT id FROM account WHERE is_locked <> 0)") {
      "sessions of locked accounts: \($0)"
    },
    Rule(sql: "SELECT coalesce(max(number) - min(number) + 1 - count(*), 0) FROM session_change") {
      "missing numbers of session changes: \($0)"
    },
    Rule(sql: "SELECT count(*) FROM session_change WHERE token IS NULL AND account IS NULL") {
      "session changes without a token or an account: \($0)"
    },
    Rule(sql: "SELECT count(*) FROM flow WHERE version < 1") { "flows without a version: \($0)" },
  ]

  private static let postgresRules = [
    Rule(sql: "SELECT abs(1 - count(*)) FROM session_number") { _ in
      "session_number does not have exactly one row: session changes cannot be numbered"
    },
    Rule(
      sql: "SELECT count(*) FROM session_number WHERE number < (SELECT coalesce(max(number), 0) FROM session_change)"
    ) { _ in
      "the next number of session changes is already in use"
    },
  ]

  /// The statements that are run on PostgreSQL, besides those that count rows.
  static var statements: [String] { (rules + postgresRules).map(\.sql) }

  /// Not with NOT IN: PostgreSQL would scan all accounts for each row once they exceed its working memory.
  private static func orphans(_ table: String, _ name: String) -> Rule {
    Rule(
      sql: "SELECT count(*) FROM \(table) WHERE NOT EXISTS (SELECT 1 FROM account WHERE account.id = \(table).account)"
    ) {
      "\(name) without an account: \($0)"
    }
  }
}
