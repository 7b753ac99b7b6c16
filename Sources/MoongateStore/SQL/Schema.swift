/// The tables, as a list of steps forward: a step that has shipped never changes, and each one is safe while a program
/// that knows only the steps before it still serves.
///
/// Times are milliseconds since the epoch; `Int64.max` is never. Keys of counters and timers are keyed hashes. Tables
/// and columns have the same names and meaning in all databases.
enum Schema {
  /// One step: the same tables in the words of each database, several statements in a row.
  struct Step: Sendable {
    let sqlite: String
    let postgres: String
  }

  /// Marks a database as ours (`PRAGMA application_id`; PostgreSQL has it in `moongate_schema`): "MOON".
  static let application: Int32 = 0x4d4f_4f4e
  /// What this program knows.
  static var version: Int { steps.count }

  private static let steps = [
    first, second, third, fourth, fifth, sixth, seventh, eighth, ninth, accessTokens, domains, operations,
  ]

  /// The statements of each step that a database lacks.
  /// - Parameter version: of the schema that it has, at most `Schema.version`.
  static func steps(after version: Int, _ dialect: SQLDialect) -> [String] {
    steps.dropFirst(version).map { dialect.words(sqlite: $0.sqlite, postgres: $0.postgres) }
  }
}
