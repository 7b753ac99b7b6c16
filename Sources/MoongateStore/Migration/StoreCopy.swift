import MoongateCore

/// A table that was copied.
package struct CopiedTable: Sendable, Equatable {
  package let name: String
  package let rows: Int
  /// The hexadecimal SHA-256 over its rows in the order of the key. Equal in source and target.
  package let digest: String
}

/// Why nothing was copied. The target is as empty as before.
package enum CopyRefusal: Error, Sendable, Equatable, CustomStringConvertible {
  case nothingThere(name: String)
  case olderSchema(name: String, found: Int, known: Int)
  /// Gateways are serving from it.
  case served(name: String, gateways: [String])
  /// The table already has rows.
  case notEmpty(name: String, table: String)
  /// The data read back differ from the data written.
  case differs(table: String)
  /// The table has changed since the copy began.
  case written(name: String, table: String)

  package var description: String {
    switch self {
    case .nothingThere(let name): StoreRefusal.nothingThere(path: name).description
    case .olderSchema(let name, let found, let known):
      "The schema of \(name) is \(found), and this program's is \(known): bring it up to date first, by `moongate store migrate`."
    case .served(let name, let gateways):
      """
      \(name) is served by \(gateways.joined(separator: ", ")); nothing was changed. Stop every gateway that serves from it, and try again. One that \
      was killed counts for \(ServingNode.livenessTimeout.asWritten) more.
      """
    case .notEmpty(let name, let table):
      "\(name) is not empty: its table \(table) has rows. Name a database that no gateway has used."
    case .differs(let table):
      "The table \(table) of the target differs from the source; nothing was copied."
    case .written(let name, let table):
      """
      \(name) was written to while it was copied (its table \(table)); nothing was copied. Stop its gateways and every other program that writes to it, and copy \
      again.
      """
    }
  }
}

/// What a copy includes, and what it allows in source and target.
struct CopyExtent: Sendable {
  var tables = Schema.moved
  /// Whether the source may be written to meanwhile. The copy is then a backup of the state at its beginning.
  var followsWrites = false
  /// Whether to delete the target's contents first, in the same transaction.
  var replaces = false
}

/// Reads a consistent state of the source and passes it to the target.
struct CopySource<Source: StoreSnapshot, Target: StoreSnapshot>: SnapshotWork {
  let source: Source
  let target: Target
  let extent: CopyExtent
  let onCopied: (CopiedTable) -> Void

  func run(_ rows: some SQLTransaction) throws {
    try rows.allowLongRun()
    try target.write(
      CopyRows(
        source: rows, name: target.name, extent: extent, onCopied: onCopied,
        confirm: extent.followsWrites ? { _ in } : confirm)
    )
  }

  /// Checks that the source has not changed since the copy began. Otherwise those writes would be silently lost with
  /// it, and so would a gateway's next writes. Gateways that are running at least update the recorded time, and any
  /// other writer has changed a row.
  /// - Throws: `CopyRefusal`.
  private func confirm(_ copied: [CopiedTable]) throws {
    try source.read(NoServingNodes(name: source.name))
    let now = try source.read(StoreDigest(tables: extent.tables))
    for (before, now) in zip(copied, now) where before != now {
      throw CopyRefusal.written(name: source.name, table: now.name)
    }
  }
}

/// Writes a store into an empty one, in one transaction: a copy that fails leaves the target empty, even if the process
/// dies.
private struct CopyRows<Source: SQLTransaction>: SnapshotWork {
  /// The number of rows per INSERT statement.
  private static var batch: Int { 100 }

  let source: Source
  let name: String
  let extent: CopyExtent
  let onCopied: (CopiedTable) -> Void
  let confirm: ([CopiedTable]) throws -> Void

  func run(_ rows: some SQLTransaction) throws {
    try rows.allowLongRun()
    // A gateway that starts on the target waits until the copy is complete. SQLite locks out other writers anyway.
    if rows.dialect == .postgres {
      try rows.run("LOCK TABLE \(Schema.tables.map(\.name).joined(separator: ", ")) IN SHARE ROW EXCLUSIVE MODE")
    }
    try NoServingNodes(name: name).run(rows)
    if extent.replaces {
      for table in Schema.tables.reversed() { try rows.run("DELETE FROM \(table.name)") }
    }
    for table in Schema.moved where try rows.row("SELECT 1 FROM \(table.name) LIMIT 1") != nil {
      throw CopyRefusal.notEmpty(name: name, table: table.name)
    }
    let copied = try extent.tables.map { table in
      let written = try copy(table, rows)
      guard try TableReader(table).digest(rows) == written else { throw CopyRefusal.differs(table: table.name) }
      onCopied(written)
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

  /// Continue the sequences of tables with automatic numbers after the copied numbers.
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

/// The digests of all copied tables, for a consistent state of a store.
struct StoreDigest: SnapshotWork {
  let tables: [Schema.Table]

  func run(_ rows: some SQLTransaction) throws -> [CopiedTable] {
    try rows.allowLongRun()
    return try tables.map { table in try TableReader(table).digest(rows) }
  }
}

/// Refuses a store from which gateways are serving, and lists their names.
struct NoServingNodes: SnapshotWork {
  /// The store's name.
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
  /// The tables that are copied. The serving gateways and their leases and cursors belong to one store only.
  static let moved = tables.filter { !["node", "lease", "audit_cursor"].contains($0.name) }
}
