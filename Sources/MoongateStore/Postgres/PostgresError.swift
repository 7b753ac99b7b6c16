import MoongateCore

/// An error of a connection. Contains no SQL and no values, which PostgreSQL's messages may quote.
enum PostgresError: Error, Equatable {
  /// The server refused a statement.
  case refused(SQLState, constraint: String?)
  /// No connection could be established.
  case notConnected(PostgresErrorClassification)
  /// The connection broke, or the server closed it.
  case lost
  /// No reply arrived within the timeout.
  case silent
  /// The connection broke while COMMIT was being sent. Whether it was executed is unknown.
  case outcomeUnknown

  /// Whether the connection cannot be used any more.
  var endsConnection: Bool {
    switch self {
    case .refused(let state, _): state.endsConnection
    case .notConnected, .lost, .silent, .outcomeUnknown: true
    }
  }

  /// Whether a retry of the transaction is likely to succeed, because it conflicted with another one.
  var meetsAnother: Bool {
    if case .refused(let state, _) = self { state == .serializationFailure || state == .deadlock } else { false }
  }

  /// Whether it concerns the connection and not a statement.
  var isOfConnection: Bool { if case .refused(let state, _) = self { state.rawValue.hasPrefix("08") } else { false } }

  /// The error as the store's callers see it.
  var fault: StoreFault {
    switch self {
    case .refused(.statementTimeout, _): StoreFault("busy: PostgreSQL did not finish a statement in time")
    case .refused(.lockTimeout, _): StoreFault("busy: PostgreSQL did not grant a lock in time")
    case .refused(let state, _): StoreFault("PostgreSQL: \(state.words)")
    case .notConnected(let obstacle): StoreFault("PostgreSQL is not available: \(obstacle.words)")
    case .lost: StoreFault("the connection to PostgreSQL broke")
    case .silent: StoreFault("PostgreSQL does not answer")
    case .outcomeUnknown:
      StoreFault("the connection to PostgreSQL broke at the commit: it is not known whether the data was written")
    }
  }
}

/// A five-character PostgreSQL error code (PostgreSQL documentation, appendix A).
struct SQLState: RawRepresentable, Hashable, Sendable {
  let rawValue: String

  init(rawValue: String) { self.rawValue = rawValue }

  /// nil if the text is not an error code.
  init?(_ text: some StringProtocol) {
    guard text.utf8.count == 5, text.utf8.allSatisfy({ (48...57).contains($0) || (65...90).contains($0) }) else {
      return nil
    }
    rawValue = String(text)
  }

  static let serializationFailure = SQLState(rawValue: "40001")
  static let deadlock = SQLState(rawValue: "40P01")
  static let uniqueViolation = SQLState(rawValue: "23505")
  static let foreignKeyViolation = SQLState(rawValue: "23503")
  static let statementTimeout = SQLState(rawValue: "57014")
  static let lockTimeout = SQLState(rawValue: "55P03")
  static let readOnly = SQLState(rawValue: "25006")
  static let noFunction = SQLState(rawValue: "42883")
  static let divisionByZero = SQLState(rawValue: "22012")
  static let noRights = SQLState(rawValue: "42501")
  static let noSchema = SQLState(rawValue: "3F000")

  /// Whether the connection is useless after this error: the server closed it, it became read-only (a failover), or it
  /// no longer knows the prepared statements.
  var endsConnection: Bool {
    // 57P01 to 57P05: shut down, crashed, starting up, dropped, idle for too long. 08: connection exceptions. 25P03:
    // idle in a transaction.
    rawValue.hasPrefix("57P") || rawValue.hasPrefix("08")
      || ["25P03", "25006", "26000", "0A000", "53300"].contains(rawValue)
  }

  /// For logs: the code, with the meaning of the most common ones.
  var words: String {
    let meaning: String? =
      switch rawValue {
      case "40001", "40P01": "kept conflicting with other transactions"
      case "53100": "its disk is full"
      case "53200": "it is out of memory"
      case "53300": "it has no connection left"
      case "25006": "it is read-only"
      case "42501": "permission denied"
      case "42P01": "a table is missing"
      // Another client of the pooler has prepared the statement, or this session was swapped for one without it.
      case "42P05", "26000":
        "a pooler in front of it shares sessions between clients, like PgBouncer in transaction mode: let it keep one session for each client, or connect without it"
      case "57P01", "57P02", "57P03": "it is shutting down or starting"
      case "XX001", "XX002": "its data are damaged"
      default: nil
      }
    return meaning.map { "\($0) (\(rawValue))" } ?? "error \(rawValue)"
  }
}
