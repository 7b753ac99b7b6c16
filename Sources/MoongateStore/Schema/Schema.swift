/// The tables, as a list of migration steps. A released step never changes, and each step must be safe while a program
/// that only knows the earlier steps is still serving.
///
/// Times are milliseconds since the epoch; `Int64.max` means never. Keys of counters and timers are keyed hashes.
/// Tables and columns have the same names and meaning in all databases.
enum Schema {
  /// A migration step: the same tables in each database's dialect, as several statements.
  struct Step: Sendable {
    let sqlite: String
    let postgres: String
  }

  /// Identifies a database as ours (`PRAGMA application_id`; on PostgreSQL it is stored in `moongate_schema`): "MOON".
  static let application: Int32 = 0x4d4f_4f4e
  /// The schema version of this program.
  static var version: Int { steps.count }

  private static let steps = [
    first, nodes, nodeKeys, accountEpoch, flowEviction, unverifiedAccounts, providerValues, accountLanguage, groups,
    accessTokens, domains, operations, sessionAddress, importedHashes, identityGroups, devices,
  ]

  /// The statements of the steps that a database lacks.
  /// - Parameter version: the database's schema version, at most `Schema.version`.
  static func steps(after version: Int, _ dialect: SQLDialect) -> [String] {
    steps.dropFirst(version).map { dialect.words(sqlite: $0.sqlite, postgres: $0.postgres) }
  }
}
