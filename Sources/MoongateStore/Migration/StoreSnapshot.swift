import MoongateCore

/// A store's database for an operator's commands: used without the key, on one connection, one transaction at a time.
/// Operations may take long and block the thread.
protocol StoreSnapshot: Sendable {
  /// The display name, without a password.
  var name: String { get }

  /// - Returns: the schema version; 0 if the database is empty; nil if it does not exist.
  /// - Throws: why it cannot be used, such as another program's tables or a newer schema.
  func version() throws(StoreRefusal) -> Int?
  /// Creates the database if it does not exist, and migrates its schema.
  /// - Returns: the previous schema version.
  func migrate() throws(StoreRefusal) -> Int
  /// The damage that the database reports about its files, as the original messages.
  func damage() throws -> [String]
  /// Runs the work in a read transaction with a consistent snapshot.
  func read<Work: SnapshotWork>(_ work: Work) throws -> Work.Value
  /// Runs the work in a write transaction, which is rolled back if the work throws.
  func write<Work: SnapshotWork>(_ work: Work) throws -> Work.Value
}

/// Work in one transaction, on any kind of database.
protocol SnapshotWork {
  associatedtype Value

  func run(_ rows: some SQLTransaction) throws -> Value
}

/// Reads a table in the order of its key, page by page. At most two pages are in memory.
struct TableReader {
  /// The number of rows per page.
  static let page = 500

  let table: Schema.Table
  private let first: String
  private let next: String

  init(_ table: Schema.Table) {
    self.table = table
    let columns = table.columns.map(\.name).joined(separator: ", ")
    let key = table.key.joined(separator: ", ")
    let last = CountedStatement.list(table.key.count)
    first = "SELECT \(columns) FROM \(table.name) ORDER BY \(key) LIMIT \(Self.page)"
    next = "SELECT \(columns) FROM \(table.name) WHERE (\(key)) > (\(last)) ORDER BY \(key) LIMIT \(Self.page)"
  }

  /// Reads the whole table and computes its digest.
  /// - Parameter body: called with each page.
  func digest(_ rows: some SQLTransaction, _ body: ([[SQLValue]]) throws -> Void = { _ in }) throws -> CopiedTable {
    var digest = TableDigest()
    try read(rows) { page in
      for row in page { digest.add(row) }
      try body(page)
    }
    return CopiedTable(name: table.name, rows: digest.count, digest: digest.text)
  }

  /// Calls the body with each page: rows of values, in the order of the table's columns.
  private func read(_ rows: some SQLTransaction, _ body: ([[SQLValue]]) throws -> Void) throws {
    let places = table.keyPlaces
    var last: [SQLValue]?
    while true {
      let found = try rows.rows(last == nil ? first : next, last ?? [])
      let page = try found.map { row in try table.columns.indices.map { try table.columns[$0].value(row, $0) } }
      if !page.isEmpty { try body(page) }
      guard page.count == Self.page, let end = page.last else { return }
      last = places.map { end[$0] }
    }
  }
}
