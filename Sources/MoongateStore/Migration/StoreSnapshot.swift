import MoongateCore

/// A store's database as an operator works on it: without the key, on one connection, one transaction at a time. What
/// runs in it may take long, and blocks.
protocol StoreSnapshot: Sendable {
  /// Without a password.
  var name: String { get }

  /// - Returns: the version of its schema; 0 where there is nothing yet; nil where it is not even there.
  /// - Throws: what keeps it from being looked at, such as another program's tables or a newer schema.
  func version() throws(StoreRefusal) -> Int?
  /// Makes it where it is not there, and brings its schema up to date.
  /// - Returns: the version that it had.
  func migrate() throws(StoreRefusal) -> Int
  /// What the database itself finds wrong with its files, in its words.
  func damage() throws -> [String]
  /// Runs the work in a transaction that reads, and sees one state of the database.
  func read<Work: SnapshotWork>(_ work: Work) throws -> Work.Value
  /// Runs the work in a transaction that writes; takes back all of it where the work throws.
  func write<Work: SnapshotWork>(_ work: Work) throws -> Work.Value
}

/// What is done in one transaction, on whatever database.
protocol SnapshotWork {
  associatedtype Value

  func run(_ rows: some SQLTransaction) throws -> Value
}

/// A table row by row, in the order of its key, a page at a time: as little is in memory as two pages.
struct TableReader {
  /// Rows of a page.
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

  /// Reads all of it.
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
