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
  /// The table that has rows already.
  case notEmpty(name: String, table: String)
  /// What was read back is not what was written.
  case differs(table: String)

  package var description: String {
    switch self {
    case .nothingThere(let name): "There is no store at \(name)."
    case .olderSchema(let name, let found, let known):
      "The schema of \(name) is \(found), and this program's is \(known): bring it up to date first, by `moongate store migrate`."
    case .notEmpty(let name, let table): "\(name) is not empty: its table \(table) has rows. Name a database that no gateway has used."
    case .differs(let table): "What the target gives back of the table \(table) is not what the source has; nothing was copied."
    }
  }
}

/// Reads one state of the source, whatever a gateway writes meanwhile, and hands it on.
struct CopySource<Target: Vault>: VaultWork {
  let target: Target
  let told: (CopiedTable) -> Void

  func run(_ rows: some SQLTransaction) throws -> [CopiedTable] {
    try rows.takeTime()
    return try target.write(CopyRows(source: rows, name: target.name, told: told))
  }
}

/// Writes a store into an empty one, in one transaction: what fails half-way leaves it as empty as it was, even where the process dies.
private struct CopyRows<Source: SQLTransaction>: VaultWork {
  /// Rows that one statement writes.
  private static var batch: Int { 100 }

  let source: Source
  let name: String
  let told: (CopiedTable) -> Void

  func run(_ rows: some SQLTransaction) throws -> [CopiedTable] {
    try rows.takeTime()
    // Which gateways serve from the source is no business of the target's.
    let tables = Schema.tables.filter { $0.name != "node" }
    for table in tables where try rows.row("SELECT 1 FROM \(table.name) LIMIT 1") != nil { throw CopyRefusal.notEmpty(name: name, table: table.name) }
    let copied = try tables.map { table in
      let written = try copy(table, rows)
      var digest = TableDigest()
      try TableReader(table).read(rows) { page in for row in page { digest.add(row) } }
      guard digest.count == written.rows, digest.text == written.digest else { throw CopyRefusal.differs(table: table.name) }
      told(written)
      return written
    }
    if rows.dialect == .postgres { for statement in Self.numbers { _ = try rows.rows(statement) } }
    return copied
  }

  private func copy(_ table: Schema.Table, _ rows: some SQLTransaction) throws -> CopiedTable {
    let columns = table.columns.map(\.name).joined(separator: ", ")
    let width = table.columns.count
    func insert(_ count: Int) -> String {
      let values = (0..<count).map { row in "(" + (0..<width).map { "?\(row * width + $0 + 1)" }.joined(separator: ", ") + ")" }
      return "INSERT INTO \(table.name) (\(columns)) VALUES \(values.joined(separator: ", "))"
    }
    let full = insert(Self.batch)
    var digest = TableDigest()
    try TableReader(table).read(source) { page in
      for row in page { digest.add(row) }
      for start in stride(from: 0, to: page.count, by: Self.batch) {
        let part = page[start..<min(start + Self.batch, page.count)]
        _ = try rows.changes(part.count == Self.batch ? full : insert(part.count), part.flatMap { $0 })
      }
    }
    return CopiedTable(name: table.name, rows: digest.count, digest: digest.text)
  }

  /// Rows that PostgreSQL numbers by itself go on after those that came with their numbers.
  private static var numbers: [String] {
    ["flow", "event"].map { table in
      """
      SELECT setval(CAST(pg_get_serial_sequence('\(table)', 'number') AS regclass), coalesce(max(number), 1), max(number) IS NOT NULL) FROM \(table)
      """
    } + ["UPDATE session_number SET number = (SELECT coalesce(max(number), 0) FROM session_change) WHERE id = 1 RETURNING number"]
  }
}

/// How far a store has come: two of these are equal where nothing was written in between that a copy would lack.
struct Watermark: VaultWork {
  func run(_ rows: some SQLTransaction) throws -> [Int64?] {
    try rows.rows([
      SQLRead("SELECT moment FROM meta"), SQLRead("SELECT max(number) FROM session_change"), SQLRead("SELECT max(number) FROM event"),
      SQLRead("SELECT max(number) FROM flow"),
    ]).map { try $0.first?.optionalInteger(0) }
  }
}
