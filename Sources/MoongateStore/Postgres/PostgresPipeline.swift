import CPostgres
import Foundation
import MoongateCore

/// A pending reply of the server.
enum PendingReply {
  /// The preparation of a statement.
  case preparation(String)
  /// A statement. `keeps`: whether its result is needed.
  case statement(keeps: Bool)
  /// The end of a batch: after an error, the server skips the rest of the batch (PostgreSQL documentation, "Pipeline
  /// Mode").
  case end(isIgnored: Bool)
}

/// The replies to a batch.
struct PostgresAnswers {
  /// The number of its statements.
  var statements = 0
  var kept: [PostgresResult] = []
  /// Whether an error of the server ended the connection.
  var isFatal = false
  /// The first error, and the index of its statement; nil if that belonged to an earlier batch.
  var failure: (error: PostgresError, place: Int?)?

  /// Whether all statements except the last were executed.
  var failedAtEnd: Bool { failure.map { $0.place == statements - 1 } ?? false }
}

/// One server round trip carries all queued statements. Parameters and results are in PostgreSQL's binary format:
/// numbers as eight bytes, big-endian; texts and bytes unchanged.
extension PostgresConnection {
  /// The maximum number of prepared statements. A store has about a hundred.
  private static let maxPrepared = 500

  /// Queues a statement, which `exchange` or `dispatch` sends. Errors of the connection are reported there.
  /// - Parameter sql: its arguments are `?1`, `?2`, ….
  func queue(_ sql: String, _ arguments: [SQLValue] = [], keeps: Bool) {
    unsent += 1
    var sent: Int32 = 0
    if let name = prepared[sql] {
      sent = PostgresArguments(arguments).withPointers { PQsendQueryPrepared(handle, name, $0, $1, $2, $3, 1) }
    } else if prepared.count < Self.maxPrepared {
      nameCount += 1
      let name = "s\(nameCount)"
      prepared[sql] = name
      // The server infers the types of arguments, so the same text always has the same types.
      guard PQsendPrepare(handle, name, PostgresText.translated(sql), 0, nil) == 1 else { return isBroken = true }
      owed.append(.preparation(sql))
      sent = PostgresArguments(arguments).withPointers { PQsendQueryPrepared(handle, name, $0, $1, $2, $3, 1) }
    } else {
      sent = PostgresArguments(arguments).withPointers {
        PQsendQueryParams(handle, PostgresText.translated(sql), $0, nil, $1, $2, $3, 1)
      }
    }
    guard sent == 1 else { return isBroken = true }
    owed.append(.statement(keeps: keeps))
  }

  /// Sends the queued statements and waits for the replies.
  /// - Returns: the results that were to be kept.
  /// - Throws: the first error of a statement. The statements after it were not executed.
  func exchange() throws(PostgresError) -> [PostgresResult] {
    let answers = try answers()
    if let failure = answers.failure { throw failure.error }
    return answers.kept
  }

  /// Sends the queued statements and waits for the replies, including errors of statements.
  func answers() throws(PostgresError) -> PostgresAnswers {
    try end(isIgnored: false)
    metrics.add(statements: unsent, roundTrips: 1)
    unsent = 0
    return try collect()
  }

  /// Sends the queued statements without waiting. The next wait skips their replies and errors.
  func dispatch() throws(PostgresError) {
    try end(isIgnored: true)
    metrics.add(statements: unsent, roundTrips: 0)
    unsent = 0
  }

  /// Executes several statements in one text, without arguments. Leaves pipeline mode, which only allows one at a time.
  func script(_ sql: String) throws(PostgresError) {
    if !owed.isEmpty { _ = try exchange() }
    guard PQexitPipelineMode(handle) == 1, PQsendQuery(handle, sql) == 1 else { throw broken(.lost) }
    metrics.add(statements: 1, roundTrips: 1)
    var answers = PostgresAnswers()
    _ = try take(into: &answers, keeps: false)
    guard PQenterPipelineMode(handle) == 1 else { throw broken(.lost) }
    if let failure = answers.failure { throw failure.error }
  }

  private func end(isIgnored: Bool) throws(PostgresError) {
    guard !isBroken, PQpipelineSync(handle) == 1 else { throw broken(.lost) }
    owed.append(.end(isIgnored: isIgnored))
  }

  private func collect() throws(PostgresError) -> PostgresAnswers {
    var answers = PostgresAnswers()
    // The server's last message explains why it closed the connection, so nothing is thrown after an error of the
    // server.
    var isHeard = true
    var unwaited = owed.count { if case .end(isIgnored: true) = $0 { true } else { false } }
    for one in owed {
      do throws(PostgresError) {
        switch one {
        case .preparation(let sql): if isHeard, try !take(into: &answers, keeps: false) { prepared[sql] = nil }
        case .statement(let keeps):
          if isHeard { _ = try take(into: &answers, keeps: keeps) }
          answers.statements += 1
        case .end(let isIgnored):
          if isHeard {
            guard let result = try next(), result.status == PGRES_PIPELINE_SYNC else { throw broken(.lost) }
          }
          guard isIgnored else { continue }
          unwaited -= 1
          // If the connection ended with an error, that error applies to everything after it.
          if isHeard { answers = PostgresAnswers() }
        }
      } catch {
        guard let failure = answers.failure else { throw broken(error) }
        // An error of an ignored batch says nothing about the next batch, which may have been executed, unless the
        // error ended the connection.
        guard unwaited == 0 || answers.isFatal else { throw broken(.lost) }
        if unwaited > 0 { answers.failure = (failure.error, nil) }
        isHeard = false
        isBroken = true
        if case .statement = one { answers.statements += 1 }
      }
    }
    owed.removeAll(keepingCapacity: true)
    if answers.failure?.error.endsConnection == true { isBroken = true }
    return answers
  }

  /// Reads the results of one statement up to the null result that ends them.
  /// - Returns: whether it was executed.
  private func take(into answers: inout PostgresAnswers, keeps: Bool) throws(PostgresError) -> Bool {
    var isDone = false
    while let result = try next() {
      switch result.status {
      case PGRES_COMMAND_OK, PGRES_TUPLES_OK:
        if keeps { answers.kept.append(result) }
        isDone = true
      case PGRES_PIPELINE_ABORTED: break
      case PGRES_FATAL_ERROR:
        // An error without a code comes from libpq: the connection is lost.
        guard let error = result.error else { throw broken(.lost) }
        if answers.failure == nil { answers.failure = (error, answers.statements) }
        if result.isFatal {
          isBroken = true
          answers.isFatal = true
        }
      default: throw broken(.lost)
      }
    }
    // Neither a result nor an earlier error: the reply does not belong to this statement.
    guard isDone || answers.failure != nil else { throw broken(.lost) }
    return isDone
  }

  /// If a connection ends after this much silence, the server did not close it: the kernel gave up on a network that
  /// drops packets.
  private static let swallowed: Duration = .milliseconds(1500)

  /// The next result; nil between the results of two statements.
  private func next() throws(PostgresError) -> PostgresResult? {
    var since = ContinuousClock.now
    while PQisBusy(handle) == 1 {
      let isFull = PQflush(handle)
      guard isFull >= 0 else { throw broken(.lost) }
      guard try ready(isFull == 1 ? POLLIN | POLLOUT : POLLIN, until: since + silence) else { throw broken(.silent) }
      guard PQconsumeInput(handle) == 1 else {
        throw broken(ContinuousClock.now - since > Self.swallowed ? .silent : .lost)
      }
      since = ContinuousClock.now
    }
    return PQgetResult(handle).map(PostgresResult.init)
  }
}

/// Translates statements to PostgreSQL's syntax for arguments.
enum PostgresText {
  /// Replaces `?1` by `$1`, except in quotes.
  static func translated(_ sql: String) -> String {
    var text: [UInt8] = []
    text.reserveCapacity(sql.utf8.count)
    var quote: UInt8?
    var bytes = Array(sql.utf8)[...]
    while let byte = bytes.popFirst() {
      if let open = quote {
        if byte == open { quote = nil }
      } else if byte == UInt8(ascii: "'") || byte == UInt8(ascii: "\"") {
        quote = byte
      } else if byte == UInt8(ascii: "?"), let digit = bytes.first, (48...57).contains(digit) {
        text.append(UInt8(ascii: "$"))
        continue
      }
      text.append(byte)
    }
    return String(decoding: text, as: UTF8.self)
  }
}

/// The arguments of a statement in libpq's form.
struct PostgresArguments {
  private var bytes: [UInt8] = []
  /// The range of each argument; nil: null.
  private var places: [Range<Int>?] = []

  init(_ values: [SQLValue]) {
    for value in values {
      let start = bytes.count
      switch value {
      case .null:
        places.append(nil)
        continue
      case .integer(let number): withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
      case .text(let text): bytes.append(contentsOf: text.storable.utf8)
      case .bytes(let given): bytes.append(contentsOf: given)
      }
      places.append(start..<bytes.count)
    }
    // A terminator, so that an empty value has an address. Without one it would be null.
    bytes.append(0)
  }

  /// Calls the body with the number, addresses, lengths and formats of the arguments.
  func withPointers(
    _ body: (Int32, UnsafePointer<UnsafePointer<CChar>?>?, UnsafePointer<Int32>?, UnsafePointer<Int32>?) -> Int32
  ) -> Int32 {
    bytes.withUnsafeBytes { buffer in
      let base = buffer.bindMemory(to: CChar.self).baseAddress
      let values = places.map { place in place.flatMap { place in base.map { $0 + place.lowerBound } } }
      let lengths = places.map { Int32($0?.count ?? 0) }
      return body(Int32(places.count), values, lengths, [Int32](repeating: 1, count: places.count))
    }
  }
}
