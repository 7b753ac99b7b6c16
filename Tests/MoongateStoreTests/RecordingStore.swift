import MoongateCore
import Synchronization

@testable import MoongateStore

/// A store that records each statement that it executes.
struct RecordingStore<Base: SQLDatabase>: SQLStore {
  let database: RecordingDatabase<Base>
  let memory = SQLStoreMemory()

  init(_ base: Base, in book: StatementBook) { database = RecordingDatabase(base: base, book: book) }
}

/// The texts of statements.
final class StatementBook: Sendable {
  private let texts = Mutex<Set<String>>([])

  var statements: [String] { texts.withLock { $0.sorted() } }

  func add(_ text: String) { texts.withLock { _ = $0.insert(text) } }
}

struct RecordingDatabase<Base: SQLDatabase>: SQLDatabase {
  let base: Base
  let book: StatementBook

  func read<Value: Sendable>(_ body: @escaping @Sendable (RecordingTransaction<Base.Transaction>) throws -> Value)
    async throws -> Value
  {
    try await base.read { [book] rows in try body(RecordingTransaction(base: rows, book: book)) }
  }

  func write<Value: Sendable>(
    at moment: Timestamp, _ body: @escaping @Sendable (RecordingTransaction<Base.Transaction>) throws -> Value
  ) async throws -> Value {
    try await base.write(at: moment) { [book] rows in try body(RecordingTransaction(base: rows, book: book)) }
  }

  func forgetDeleted() async { await base.forgetDeleted() }

  func close() throws(StoreFault) { try base.close() }
}

struct RecordingTransaction<Base: SQLTransaction>: SQLTransaction {
  let base: Base
  let book: StatementBook

  var dialect: SQLDialect { base.dialect }

  func run(_ sql: String, _ arguments: [SQLValue]) throws {
    book.add(sql)
    try base.run(sql, arguments)
  }

  func demand(_ sql: String, _ arguments: [SQLValue], orElse conflict: ApplyResult.Conflict) throws {
    book.add(sql)
    try base.demand(sql, arguments, orElse: conflict)
  }

  func changes(_ sql: String, _ arguments: [SQLValue]) throws -> Int {
    book.add(sql)
    return try base.changes(sql, arguments)
  }

  func rows(_ reads: [SQLRead]) throws -> [[Base.Row]] {
    for read in reads { book.add(read.sql) }
    return try base.rows(reads)
  }

  func wake() throws { try base.wake() }
}
