import MoongateCore

/// One transaction on a connection. BEGIN goes with the first statement; what only writes goes with the next read, or
/// with COMMIT.
package final class PostgresTransaction: SQLTransaction {
  enum Kind {
    /// Reads once: what is sent together is a transaction by itself, as the session's defaults say one that reads.
    /// Whoever reads again is stopped (`RepeatedRead`).
    case looking
    /// Sees one state of the database; nobody waits for its end.
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

  /// What was to read once wants to read again, and would see another state of the database: it is to begin anew as
  /// `reading`.
  struct RepeatedRead: Error {}

  /// What those who wait for changes of sessions listen to.
  static let channel = "moongate_sessions"

  package let dialect = SQLDialect.postgres
  private let connection: PostgresConnection
  private let kind: Kind
  private var hasBegun = false
  private var hasLooked = false
  private var hasWritten = false
  private var isCalling = false
  /// How many statements went into the stretch that was not sent yet, and which of them are demands.
  private var queued = 0
  private var demands: [Int: ApplyResult.Conflict] = [:]
  /// The first error that the database gave: after it nothing of the transaction counts, whatever the body makes of it.
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
    // Nobody waits for its answer: where there was no row, dividing by their number is an error, and keeps COMMIT from
    // being carried out.
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
    // What returns rows may write them, too, and must then be waited for at the end.
    if reads.contains(where: { !$0.sql.hasPrefix("SELECT") }) { hasWritten = true }
    for read in reads { queue(read.sql, read.arguments, keeps: true) }
    let results = try exchange()
    guard results.count == reads.count else { throw damaged("answer") }
    return results.map(\.rows)
  }

  package func wake() throws { isCalling = true }

  package func takeTime() throws {
    _ = try rows(
      ["statement_timeout", "idle_in_transaction_session_timeout"].map {
        SQLRead("SELECT set_config('\($0)', '0', false)")
      })
    connection.silence = PostgresTiming.unbounded
  }

  /// Several statements in one text, without arguments, and outside of the pipeline: steps of a schema.
  func script(_ sql: String) throws {
    try beginWriting()
    _ = try exchange()
    do throws(PostgresError) { try connection.script(sql) } catch { throw fail(error, in: nil) }
  }

  private func beginWriting() throws {
    // In one that only looks it would be queued, never sent, and fall into the next one's transaction.
    if kind != .writing, failure == nil { failure = StoreFault("what only reads was to write") }
    try begin()
    hasWritten = true
  }

  private func begin() throws {
    if let failure { throw failure }
    guard let first = kind.begin else {
      if hasLooked {
        let again = RepeatedRead()
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
    let answers: PostgresAnswers
    do throws(PostgresError) { answers = try connection.answers() } catch { throw fail(error, in: nil) }
    if let (error, place) = answers.failure { throw fail(error, in: place) }
    queued = 0
    demands = [:]
    return answers.kept
  }

  /// - Parameter place: of the statement in its stretch.
  private func fail(_ error: PostgresError, in place: Int?) -> any Error {
    if let failure { return failure }
    let conflict = error == .refused(.divisionByZero, constraint: nil) ? place.flatMap { demands[$0] } : nil
    let known: any Error = conflict.map { ChangeConflict($0) } ?? error
    failure = known
    return known
  }

  // MARK: the end

  /// Commits, with what is still queued, in one round trip.
  /// - Throws: `PostgresError` or `ChangeConflict`; after `outcomeUnknown` it may or may not be committed, after
  ///   anything else it is not.
  func commit() throws {
    if let failure { throw failure }
    guard hasBegun else { return }
    hasBegun = false
    queue("COMMIT", [], keeps: true)
    guard kind == .writing, hasWritten else { return try connection.dispatch() }
    let answers: PostgresAnswers
    do throws(PostgresError) { answers = try connection.answers() } catch { throw fail(.outcomeUnknown, in: nil) }
    if let (error, place) = answers.failure {
      // An error of a statement before it keeps COMMIT from being carried out. One of COMMIT itself, where the server
      // then hung up, tells nothing: a server that is shut down while it waits for its standby has committed, and one
      // that panics because its log's disk is full may have, too. Nor does one of the connection: what stands between
      // the server and us says that, and knows no more than we.
      throw fail(
        answers.failedAtEnd && connection.isBroken || error.isOfConnection ? .outcomeUnknown : error, in: place)
    }
    let command = answers.kept.last?.command
    guard command == "COMMIT" else {
      throw fail(
        command == "ROLLBACK" ? .refused(SQLState(rawValue: "25P02"), constraint: nil) : .outcomeUnknown, in: nil)
    }
    guard isCalling else { return }
    // Within the transaction it would hold a lock of the whole database until the disk has the commit. Where it is
    // lost, they look by themselves.
    connection.queue("NOTIFY \(Self.channel)", keeps: false)
    try? connection.dispatch()
  }

  /// Takes back what was written; nobody waits for it.
  func rollBack() {
    guard kind.begin != nil, hasBegun || failure != nil, !connection.isBroken else { return }
    hasBegun = false
    // What was queued and never sent goes by itself: an error of it would make the server skip ROLLBACK, too.
    if connection.unsent > 0 { try? connection.dispatch() }
    connection.queue("ROLLBACK", keeps: false)
    try? connection.dispatch()
  }
}
