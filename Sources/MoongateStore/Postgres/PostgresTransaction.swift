import MoongateCore

/// A transaction on one connection. BEGIN is sent with the first statement. Writes are sent with the next read, or with
/// COMMIT.
package final class PostgresTransaction: SQLTransaction {
  enum Kind {
    /// One read: the statements that are sent together form a transaction, which is read-only by the session's
    /// defaults. A second read is refused (`SingleReadViolation`).
    case looking
    /// Reads with a consistent snapshot. COMMIT is not waited for.
    case reading
    case writing

    fileprivate var begin: String? {
      switch self {
      case .looking: nil
      case .reading: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
      case .writing: "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
      }
    }
  }

  /// A `looking` transaction that reads a second time would see another state of the database. It must be restarted as
  /// `reading`.
  struct SingleReadViolation: Error {}

  /// The channel for notifications of session changes.
  static let channel = "moongate_sessions"

  package let dialect = SQLDialect.postgres
  private let connection: PostgresConnection
  private let kind: Kind
  private var hasBegun = false
  private var hasLooked = false
  private var hasWritten = false
  private var isCalling = false
  /// The number of statements in the current batch, and those of them that are demands.
  private var queued = 0
  private var demands: [Int: ApplyResult.Conflict] = [:]
  /// The reads that are sent with COMMIT, and who receives their rows.
  private var readAtEnd: (count: Int, use: ([[PostgresRow]]) -> Void)?
  /// The first error of the database. After it, the transaction has failed, even if the body ignores it.
  private(set) var failure: (any Error)?

  init(_ kind: Kind, on connection: PostgresConnection) {
    self.kind = kind
    self.connection = connection
  }

  package func run(_ sql: String, _ arguments: [SQLValue]) throws {
    try beginWriting()
    queue(sql, arguments, keeps: false)
  }

  package func demand(_ sql: String, _ arguments: [SQLValue], orElse conflict: ApplyResult.Conflict) throws {
    try beginWriting()
    demands[queued] = conflict
    // The reply is not waited for: without a row, the division by zero is an error and prevents COMMIT.
    let returning = sql.hasPrefix("SELECT") ? "" : " RETURNING 1"
    queue("WITH demanded AS (\(sql)\(returning)) SELECT 1 / count(*) FROM demanded", arguments, keeps: false)
  }

  package func changes(_ sql: String, _ arguments: [SQLValue]) throws -> Int {
    try beginWriting()
    queue(sql, arguments, keeps: true)
    return try exchange().last?.changes ?? 0
  }

  package func rows(_ reads: [SQLRead]) throws -> [[PostgresRow]] {
    guard !reads.isEmpty else { return [] }
    try begin()
    // A statement that returns rows may also write them. The commit must then be waited for.
    if reads.contains(where: { !$0.sql.hasPrefix("SELECT") }) { hasWritten = true }
    for read in reads { queue(read.sql, read.arguments, keeps: true) }
    let results = try exchange()
    guard results.count == reads.count else { throw damaged("answer") }
    return results.map(\.rows)
  }

  package func rows(atEnd reads: [SQLRead], _ use: @escaping ([[PostgresRow]]) -> Void) throws {
    if kind != .writing, failure == nil { failure = StoreFault("a read at the end of a read-only transaction") }
    try begin()
    for read in reads { queue(read.sql, read.arguments, keeps: true) }
    readAtEnd = (reads.count, use)
  }

  package func wake() throws { isCalling = true }

  package func allowLongRun() throws {
    _ = try rows(
      ["statement_timeout", "idle_in_transaction_session_timeout"].map {
        SQLRead("SELECT set_config('\($0)', '0', false)")
      })
    connection.silence = PostgresTiming.unbounded
  }

  /// Executes several statements in one text, without arguments and outside of the pipeline: schema migrations.
  func script(_ sql: String) throws {
    try beginWriting()
    _ = try exchange()
    do throws(PostgresError) { try connection.script(sql) } catch { throw fail(error, in: nil) }
  }

  private func beginWriting() throws {
    // In a `looking` transaction, the statement would be queued without being sent, and become part of the next
    // transaction.
    if kind != .writing, failure == nil { failure = StoreFault("a write in a read-only transaction") }
    try begin()
    hasWritten = true
  }

  private func begin() throws {
    if let failure { throw failure }
    guard let first = kind.begin else {
      if hasLooked {
        let again = SingleReadViolation()
        failure = again
        throw again
      }
      return hasLooked = true
    }
    guard !hasBegun else { return }
    hasBegun = true
    queue(first, [], keeps: false)
  }

  private func queue(_ sql: String, _ arguments: [SQLValue], keeps: Bool) {
    queued += 1
    connection.queue(sql, arguments, keeps: keeps)
  }

  private func exchange() throws -> [PostgresResult] {
    guard readAtEnd == nil else { throw StoreFault("a read after the reads at the end of a transaction") }
    let answers: PostgresAnswers
    do throws(PostgresError) { answers = try connection.answers() } catch { throw fail(error, in: nil) }
    if let (error, place) = answers.failure { throw fail(error, in: place) }
    queued = 0
    demands = [:]
    return answers.kept
  }

  /// - Parameter place: the index of the statement in its batch.
  private func fail(_ error: PostgresError, in place: Int?) -> any Error {
    if let failure { return failure }
    let conflict = error == .refused(.divisionByZero, constraint: nil) ? place.flatMap { demands[$0] } : nil
    let known: any Error = conflict.map { ChangeConflict($0) } ?? error
    failure = known
    return known
  }

  // MARK: End of the transaction

  /// Commits together with the queued statements, in one round trip.
  /// - Throws: `PostgresError` or `ChangeConflict`. After `outcomeUnknown` the transaction may or may not be committed;
  ///   after any other error it is not.
  func commit() throws {
    if let failure { throw failure }
    guard hasBegun else { return }
    hasBegun = false
    queue("COMMIT", [], keeps: true)
    guard kind == .writing, hasWritten else { return try connection.dispatch() }
    let answers: PostgresAnswers
    do throws(PostgresError) { answers = try connection.answers() } catch { throw fail(.outcomeUnknown, in: nil) }
    if let (error, place) = answers.failure {
      // An error of an earlier statement prevents COMMIT. An error of COMMIT itself, after which the server closes the
      // connection, says nothing: a server that is shut down while it waits for its standby has committed, and one that
      // panics because its log's disk is full may have. An error of the connection says nothing either, because it
      // comes from a component between us and the server that does not know.
      throw fail(
        answers.failedAtEnd && connection.isBroken || error.isOfConnection ? .outcomeUnknown : error, in: place)
    }
    let command = answers.kept.last?.command
    guard command == "COMMIT" else {
      throw fail(
        command == "ROLLBACK" ? .refused(SQLState(rawValue: "25P02"), constraint: nil) : .outcomeUnknown, in: nil)
    }
    if let (count, use) = readAtEnd, answers.kept.count == count + 1 { use(answers.kept.prefix(count).map(\.rows)) }
    guard isCalling else { return }
    // Sent after the transaction: within it, NOTIFY would hold a database-wide lock until the commit is on disk. If it
    // is lost, the changes are found by polling.
    connection.queue("NOTIFY \(Self.channel)", keeps: false)
    try? connection.dispatch()
  }

  /// Rolls back without waiting.
  func rollBack() {
    guard kind.begin != nil, hasBegun || failure != nil, !connection.isBroken else { return }
    hasBegun = false
    // Statements that were queued but not sent must be sent in a separate batch. Otherwise an error in one of them
    // would make the server skip ROLLBACK too.
    if connection.unsent > 0 { try? connection.dispatch() }
    connection.queue("ROLLBACK", keeps: false)
    try? connection.dispatch()
  }
}
