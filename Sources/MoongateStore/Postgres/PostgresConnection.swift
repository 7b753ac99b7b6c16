import CPostgres
import Foundation
import MoongateCore

/// The timeouts of a connection.
struct PostgresTiming: Sendable {
  /// For connecting and authenticating, without name resolution.
  var connect: Duration
  /// For one statement, measured by the server.
  var statement: Duration
  /// For acquiring a lock, measured by the server.
  var lock: Duration
  /// For the server to send anything while a reply is pending. Longer than a statement's timeout, so that a live
  /// server's reply is received.
  var silence: Duration
  /// For work that waits for a connection.
  var queue: Duration

  /// For a gateway, whose clients wait: about two seconds.
  static let serving = PostgresTiming(
    connect: .milliseconds(1500), statement: .milliseconds(1900), lock: .milliseconds(1500),
    silence: .milliseconds(2200), queue: .seconds(2))
  /// For `silence`: only the kernel detects whether the server is still reachable (`keepalives`, `tcp_user_timeout`).
  static let unbounded: Duration = .seconds(365 * 86_400)

  /// For commands and for opening a store, which can scan whole tables.
  static let patient = PostgresTiming(
    connect: .seconds(3), statement: .seconds(120), lock: .seconds(30), silence: .seconds(125), queue: .seconds(30))
}

/// A connection in pipeline mode. No operation blocks for longer than its timeout. Must be used by one thread at a
/// time.
final class PostgresConnection {
  let timing: PostgresTiming
  let metrics: PostgresMetrics
  let handle: OpaquePointer
  /// The names of prepared statements, by their SQL.
  var prepared: [String: String] = [:]
  /// The number of names assigned to prepared statements.
  var nameCount = 0
  /// The pending replies, in order.
  var owed: [PendingReply] = []
  var unsent = 0
  /// Set once the connection cannot be used any more.
  var isBroken = false
  /// Whether it broke because the server did not respond.
  var wasSilent = false
  /// The timeout for the server to send anything.
  var silence: Duration
  /// The server's timeline; nil if it was not asked or does not report one.
  private var timeline: UInt32?
  private let timelines: ServerTimeline

  /// - Throws: `PostgresError.notConnected` with the first target's failure that is not just absence.
  static func open(_ address: PostgresAddress, timing: PostgresTiming, metrics: PostgresMetrics) throws(PostgresError)
    -> PostgresConnection
  {
    var obstacle: PostgresErrorClassification?
    // At first it is not known which of several servers was promoted last, so all of them are asked.
    let asksAll = address.targets.count > 1 && !address.timeline.isKnown
    var found: [PostgresConnection] = []
    for target in address.targets {
      do throws(PostgresError) {
        let connection = try PostgresConnection(address, target, timing: timing, metrics: metrics)
        try connection.settle()
        if address.targets.count > 1 { try connection.findTimeline() }
        metrics.connected()
        guard asksAll else { return connection }
        found.append(connection)
      } catch {
        metrics.failedToConnect()
        let found: PostgresErrorClassification =
          switch error {
          case .notConnected(let found): found
          case .refused(let state, _): PostgresErrorClassification(state)
          case .silent: .silent
          case .lost, .outcomeUnknown: .hangsUp
          }
        // If several targets fail, a server that refuses is more informative than one that is absent.
        if obstacle?.isAbsence ?? true { obstacle = found }
      }
    }
    if let latest = found.max(by: { $0.timeline ?? 0 < $1.timeline ?? 0 }) { return latest }
    throw .notConnected(obstacle ?? .unreachable)
  }

  private init(
    _ address: PostgresAddress, _ target: PostgresAddress.Target, timing: PostgresTiming, metrics: PostgresMetrics
  ) throws(PostgresError) {
    self.timing = timing
    self.metrics = metrics
    timelines = address.timeline
    silence = timing.silence
    var options = address.options
    options["host"] = target.host
    options["hostaddr"] = target.hostAddress
    options["port"] = target.port
    guard let started = Self.start(options) else { throw .notConnected(.other("libpq is out of memory")) }
    handle = started
    // Errors then contain only the code. Messages would quote the user's name and can be in any language.
    PQsetErrorVerbosity(handle, PQERRORS_SQLSTATE)
    // Notices may quote values, and nothing reads them.
    PQsetNoticeReceiver(handle, { _, _ in }, nil)
    try connect()
    guard PQsetnonblocking(handle, 1) == 0, PQenterPipelineMode(handle) == 1 else {
      throw .notConnected(.other("libpq has no pipeline mode"))
    }
    guard Self.parameter("server_encoding", handle) == "UTF8" else { throw .notConnected(.encoding) }
  }

  deinit { PQfinish(handle) }

  private static func start(_ options: [String: String]) -> OpaquePointer? {
    var keywords: [UnsafeMutablePointer<CChar>?] = []
    var values: [UnsafeMutablePointer<CChar>?] = []
    for (keyword, value) in options {
      keywords.append(strdup(keyword))
      values.append(strdup(value))
    }
    defer { for text in keywords + values { free(text) } }
    let keywordList = keywords.map { UnsafePointer($0) } + [nil]
    let valueList = values.map { UnsafePointer($0) } + [nil]
    return PQconnectStartParams(keywordList, valueList, 0)
  }

  private static func parameter(_ name: String, _ handle: OpaquePointer) -> String? {
    PQparameterStatus(handle, name).map { String(cString: $0) }
  }

  /// PostgreSQL documentation, "Database Connection Control Functions", PQconnectPoll.
  private func connect() throws(PostgresError) {
    let deadline = ContinuousClock.now + timing.connect
    var waits = PGRES_POLLING_WRITING
    guard PQstatus(handle) != CONNECTION_BAD else { throw .notConnected(obstacle) }
    while waits != PGRES_POLLING_OK {
      guard try ready(waits == PGRES_POLLING_READING ? POLLIN : POLLOUT, until: deadline) else {
        throw .notConnected(.silent)
      }
      waits = PQconnectPoll(handle)
      if waits == PGRES_POLLING_FAILED { throw .notConnected(obstacle) }
    }
  }

  private var obstacle: PostgresErrorClassification {
    PostgresErrorClassification(
      libpq: String(cString: PQerrorMessage(handle)), certificate: .init(cpostgres_found_certificate()))
  }

  /// Sets the session's parameters, in one round trip.
  private func settle() throws(PostgresError) {
    // Attack: someone who can create objects in a schema that is searched first replaces our tables or functions.
    // Commits are on disk before they are acknowledged, regardless of the server's default. A node that was cut off
    // does not hold locks for long. Statements without BEGIN are read-only and see a consistent snapshot.
    queue(
      """
      SELECT current_schema()::text, set_config('default_transaction_isolation', 'repeatable read', false),
        set_config('default_transaction_read_only', 'on', false),
        set_config('statement_timeout', ?1, false), set_config('lock_timeout', ?2, false),
        set_config('idle_in_transaction_session_timeout', ?3, false),
        set_config('search_path', quote_ident(coalesce(current_schema()::text, 'none')) || ', pg_temp', false),
        set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)
      """,
      [
        .text("\(timing.statement.wholeMilliseconds)"), .text("\(timing.lock.wholeMilliseconds)"),
        .text("\(timing.silence.wholeMilliseconds)"),
      ], keeps: true)
    // Without a schema, the store's tables would be created among the connection's temporary tables.
    guard let row = try exchange().first?.rows.first, (try? row.optionalText(0)) ?? nil != nil else {
      throw .notConnected(.noRights)
    }
  }

  /// Reads the server's timeline.
  /// - Throws: `PostgresError.notConnected` if a server with a later timeline was seen.
  private func findTimeline() throws(PostgresError) {
    queue(ServerTimeline.question, keeps: true)
    do throws(PostgresError) {
      timeline = (try exchange().first?.rows.first.flatMap { try? $0.optionalText(0) }).flatMap {
        UInt32($0, radix: 16)
      }
    } catch {
      // Databases that only resemble PostgreSQL have no timelines.
      guard error == .refused(.noFunction, constraint: nil) else { throw error }
    }
    if isSuperseded { throw .notConnected(.superseded) }
    if let timeline { timelines.observe(timeline) }
  }

  /// Whether a server with a later timeline was seen since.
  private var isSuperseded: Bool { timeline.map(timelines.isPast) ?? false }

  // MARK: Waiting

  /// Waits until the socket is ready.
  /// - Returns: false at the deadline.
  func ready(_ events: Int32, until deadline: ContinuousClock.Instant) throws(PostgresError) -> Bool {
    while true {
      let left = max(.zero, deadline - ContinuousClock.now)
      var descriptor = pollfd(fd: PQsocket(handle), events: Int16(events), revents: 0)
      guard descriptor.fd >= 0 else { throw .lost }
      // Add a millisecond: otherwise the last wait would be rounded down to zero and spin.
      let count = poll(&descriptor, 1, Int32(clamping: left.wholeMilliseconds + 1))
      if count > 0 { return true }
      if count == 0, ContinuousClock.now >= deadline { return false }
      guard count == 0 || errno == EINTR || errno == EAGAIN else { throw .lost }
    }
  }

  /// Whether the connection is still open and its server not superseded. Costs a system call.
  func isAlive() -> Bool {
    if isSuperseded { return false }
    for _ in 0..<4 {
      var descriptor = pollfd(fd: PQsocket(handle), events: Int16(POLLIN), revents: 0)
      guard !isBroken, descriptor.fd >= 0 else { return false }
      if poll(&descriptor, 1, 0) == 0 { return true }
      guard PQconsumeInput(handle) == 1, PQstatus(handle) == CONNECTION_OK else { return false }
    }
    return true
  }

  /// Waits for notifications.
  /// - Returns: whether one arrived before the deadline.
  func notified(until deadline: ContinuousClock.Instant) throws(PostgresError) -> Bool {
    while true {
      var isNotified = false
      while let notification = PQnotifies(handle) {
        PQfreemem(notification)
        isNotified = true
      }
      if isNotified { return true }
      guard try ready(POLLIN, until: deadline) else { return false }
      guard PQconsumeInput(handle) == 1 else { throw broken(.lost) }
    }
  }

  func broken(_ error: PostgresError) -> PostgresError {
    isBroken = true
    if error == .silent { wasSilent = true }
    return error
  }
}
