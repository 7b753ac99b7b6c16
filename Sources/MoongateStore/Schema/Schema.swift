/// The tables, as a list of migration steps. A released step never changes, and each step must be safe while a program
/// that only knows the earlier steps is still serving.
///
/// Times are milliseconds since the epoch; `Int64.max` means never. Keys of counters and timers are keyed hashes.
/// Tables and columns have the same names and meaning in all databases.
struct Schema: Sendable {
  /// A migration step: the same tables in each database's dialect, as several statements.
  struct Step: Sendable {
    let sqlite: String
    let postgres: String
  }

  /// Identifies a database as ours (`PRAGMA application_id`; on PostgreSQL it is stored in `moongate_schema`): "MOON".
  static let application: Int32 = 0x4d4f_4f4e
  /// The schema of this program.
  static let current = Schema(steps: [Step(sqlite: firstSQLite, postgres: firstPostgres)])

  let steps: [Step]

  /// The version of a database that has all steps.
  var version: Int { steps.count }

  /// The statements of the steps that a database lacks.
  /// - Parameter version: the database's schema version, at most this schema's.
  func steps(after version: Int, _ dialect: SQLDialect) -> [String] {
    steps.dropFirst(version).map { dialect.words(sqlite: $0.sqlite, postgres: $0.postgres) }
  }
}
