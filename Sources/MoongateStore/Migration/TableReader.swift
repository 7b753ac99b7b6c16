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
