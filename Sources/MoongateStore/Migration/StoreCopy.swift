import MoongateCore

/// A table that was copied.
package struct CopiedTable: Sendable, Equatable {
  package let name: String
  package let rows: Int
  /// SHA-256 over its rows in the order of the key, in hexadecimal: found on both sides.
  package let digest: String
}

/// Why nothing was copied. The target is as empty as before.
package enum CopyRefusal: Error, Sendable, Equatable, CustomStringConvertible {
  case nothingThere(name: String)
  case olderSchema(name: String, found: Int, known: Int)
  /// The gateways that serve from it.
  case served(name: String, gateways: [String])
  /// The table that has rows already.
  case notEmpty(name: String, table: String)
  /// What was read back is not what was written.
  case differs(table: String)
  /// The table that is not what it was when the copy began.
  case written(name: String, table: String)

  package var description: String {
    switch self {
    case .nothingThere(let name): StoreRefusal.nothingThere(path: name).description
    case .olderSchema(let name, let found, let known):
      "The schema of \(name) is \(found), and this program's is \(known): bring it up to date first, by `moongate store migrate`."
    case .served(let name, let gateways):
      """
      \(name) is served by \(gateways.joined(separator: ", ")); nothing was changed. Stop every gateway that serves from it, and try again. One that \
      was killed counts for \(ServingNode.patience.asWritten) more.
      """
    case .notEmpty(let name, let table):
      "\(name) is not empty: its table \(table) has rows. Name a database that no gateway has used."
    case .differs(let table):
      "What the target gives back of the table \(table) is not what the source has; nothing was copied."
    case .written(let name, let table):
      """
      \(name) was written to while it was copied (its table \(table)); nothing was copied. Stop its gateways and whatever else works on it, and copy \
      again.
      """
    }
  }
}

/// What a copy takes along, and what it may find on either side.
struct CopyExtent: Sendable {
  var tables = Schema.moved
  /// Whether the source may be written to meanwhile: the copy is a backup, as old as its beginning.
  var followsWrites = false
  /// Whether what the target holds is deleted first, in the same transaction.
  var replaces = false
}

/// Reads one state of the source, whatever is written meanwhile, and hands it on.
struct CopySource<Source: StoreSnapshot, Target: StoreSnapshot>: SnapshotWork {
  let source: Source
  let target: Target
  let extent: CopyExtent
  let told: (CopiedTable) -> Void

  func run(_ rows: some SQLTransaction) throws {
    try rows.takeTime()
    try target.write(
      CopyRows(
        source: rows, name: target.name, extent: extent, told: told, confirm: extent.followsWrites ? { _ in } : confirm)
    )
  }

  /// What was written to the source since the copy began would be lost with it, silently, and so would what a gateway
  /// writes next: its gateways write their moment at least, and whoever else has written has changed a row.
  /// - Throws: `CopyRefusal`.
  private func confirm(_ copied: [CopiedTable]) throws {
    try source.read(NobodyServes(name: source.name))
    let now = try source.read(StoreDigest(tables: extent.tables))
    for (before, now) in zip(copied, now) where before != now {
      throw CopyRefusal.written(name: source.name, table: now.name)
    }
  }
}

/// Writes a store into an empty one, in one transaction: what fails half-way leaves it as empty as it was, even where
/// the process dies.
private struct CopyRows<Source: SQLTransaction>: SnapshotWork {
  /// Rows that one statement writes.
  private static var batch: Int { 100 }

  let source: Source
  let name: String
  let extent: CopyExtent
  let told: (CopiedTable) -> Void
  let confirm: ([CopiedTable]) throws -> Void

  func run(_ rows: some SQLTransaction) throws {
    try rows.takeTime()
    // A gateway that starts on the target meanwhile waits until it is whole. SQLite lets nobody else in anyway.
    if rows.dialect == .postgres {
      try rows.run("LOCK TABLE \(Schema.tables.map(\.name).joined(separator: ", ")) IN SHARE ROW EXCLUSIVE MODE")
    }
    try NobodyServes(name: name).run(rows)
    if extent.replaces {
      for table in Schema.tables.reversed() { try rows.run("DELETE FROM \(table.name)") }
    }
    for table in Schema.moved where try rows.row("SELECT 1 FROM \(table.name) LIMIT 1") != nil {
      throw CopyRefusal.notEmpty(name: name, table: table.name)
    }
    let copied = try extent.tables.map { table in
      let written = try copy(table, rows)
      guard try TableReader(table).digest(rows) == written else { throw CopyRefusal.differs(table: table.name) }
      told(written)
      return written
    }
    if rows.dialect == .postgres { for statement in Self.numbers { _ = try rows.rows(statement) } }
    try confirm(copied)
  }

  private func copy(_ table: Schema.Table, _ rows: some SQLTransaction) throws -> CopiedTable {
    let columns = table.columns.map(\.name).joined(separator: ", ")
    let width = table.columns.count
    func insert(_ count: Int) -> String {
      let values = (0..<count).map { row in
        "(" + (0..<width).map { "?\(row * width + $0 + 1)" }.joined(separator: ", ") + ")"
      }
      return "INSERT INTO \(table.name) (\(columns)) VALUES \(values.joined(separator: ", "))"
    }
    let full = insert(Self.batch)
    return try TableReader(table).digest(source) { page in
      for start in stride(from: 0, to: page.count, by: Self.batch) {
        let part = page[start..<min(start + Self.batch, page.count)]
        _ = try rows.changes(part.count == Self.batch ? full : insert(part.count), part.flatMap { $0 })
      }
    }
  }

  /// Rows that PostgreSQL numbers by itself go on after those that came with their numbers.
  private static var numbers: [String] {
    ["flow", "event"].map { table in
      """
      SELECT setval(CAST(pg_get_serial_sequence('\(table)', 'number') AS regclass), coalesce(max(number), 1), max(number) IS NOT NULL) FROM \(table)
      """
    } + [
      "UPDATE session_number SET number = (SELECT coalesce(max(number), 0) FROM session_change) WHERE id = 1 RETURNING number"
    ]
  }
}

/// All that a copy takes along, as one state of a store has it.
struct StoreDigest: SnapshotWork {
  let tables: [Schema.Table]

  func run(_ rows: some SQLTransaction) throws -> [CopiedTable] {
    try rows.takeTime()
    return try tables.map { table in try TableReader(table).digest(rows) }
  }
}

/// Refuses a store from which gateways serve now, by the names that people know them by.
struct NobodyServes: SnapshotWork {
  /// Of the store.
  let name: String

  /// - Throws: `CopyRefusal.served`.
  func run(_ rows: some SQLTransaction) throws {
    let now = try rows.row(
      rows.dialect.words(
        sqlite: "SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
        postgres: "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"))?.moment(0)
    guard let now else { throw damaged("clock") }
    let gateways = try NodeRows.all(at: now, rows).map(\.name)
    guard gateways.isEmpty else { throw CopyRefusal.served(name: name, gateways: gateways) }
  }
}

extension Schema {
  /// What a store takes along when it moves. Which gateways serve from it, and what they hold, is no business of
  /// another.
  static let moved = tables.filter { !["node", "lease", "audit_cursor"].contains($0.name) }
}
