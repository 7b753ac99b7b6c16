import MoongateCore

/// A PostgreSQL database for an operator's commands, with one connection per operation.
struct PostgresSnapshot: StoreSnapshot {
  let address: PostgresAddress
  let schema: Schema
  private let timing: PostgresTiming

  /// - Throws: the problem with the connection string.
  init(url: String, schema: Schema = .current, timing: PostgresTiming = .patient) throws(StoreRefusal) {
    self.schema = schema
    self.timing = timing
    do throws(PostgresAddress.Problem) { address = try PostgresAddress(url) } catch {
      throw .address(problem: error.description)
    }
  }

  var name: String { address.name }

  func version() throws(StoreRefusal) -> Int? {
    try opened { connection throws in try transaction(.reading, on: connection) { rows in try found(rows) } }
  }

  func migrate() throws(StoreRefusal) -> Int { try opened { connection throws in try migrate(connection) } }

  /// Whether a store exists and belongs to a master key.
  func isOwned(_ connection: PostgresConnection) throws -> Bool {
    try transaction(.reading, on: connection) { rows in try found(rows) > 0 && MetaRows.owner(rows) != nil }
  }

  /// Migrates the schema in one transaction. If several gateways start at once, one migrates and the others wait.
  /// - Returns: the previous schema version.
  func migrate(_ connection: PostgresConnection) throws -> Int {
    // Usually there is nothing to do, so check without taking a lock.
    let before = try transaction(.reading, on: connection) { rows in try found(rows) }
    if before == schema.version { return before }
    return try transaction(.writing, on: connection) { rows in
      // An index on ten million rows takes minutes, and other gateways must wait that long. A migrating gateway that
      // was cut off from the server does not block them.
      try rows.allowLongRun()
      let wait = { (setting: String, time: Duration) in
        _ = try rows.row("SELECT set_config('\(setting)', ?1, true)", [.text("\(time.wholeMilliseconds)")])
      }
      try wait("idle_in_transaction_session_timeout", timing.silence)
      try wait("lock_timeout", .zero)
      _ = try rows.row("SELECT pg_advisory_xact_lock(\(Schema.application))::text")
      try wait("lock_timeout", timing.lock)
      let before = try found(rows)
      if before == 0 {
        try rows.script(
          "CREATE TABLE moongate_schema (id BIGINT PRIMARY KEY CHECK (id = 1), application BIGINT NOT NULL, version BIGINT NOT NULL)"
        )
        try rows.run("INSERT INTO moongate_schema VALUES (1, ?1, 0)", [.integer(Int64(Schema.application))])
      }
      for step in schema.steps(after: before, .postgres) { try rows.script(step) }
      try rows.run("UPDATE moongate_schema SET version = ?1", [SQLValue(schema.version)])
      return before
    }
  }

  /// Checks that the database is ours.
  /// - Returns: the schema version; 0 if there is no schema.
  private func found(_ rows: PostgresTransaction) throws -> Int {
    let names = (Schema.tables.map(\.name) + ["moongate_schema"]).map { "'\($0)'" }.joined(separator: ", ")
    let tables = try rows.rows(
      "SELECT relname::text FROM pg_class WHERE relnamespace = to_regnamespace(quote_ident(current_schema()::text)) AND relname IN (\(names)) ORDER BY 1"
    ).map { try $0.text(0) }
    guard let first = tables.first else { return 0 }
    guard tables.contains("moongate_schema") else { throw StoreRefusal.foreignTables(name: name, table: first) }
    let mark = try rows.row("SELECT application::bigint, version::bigint FROM moongate_schema")
    guard let mark, try mark.integer(0) == Int64(Schema.application) else {
      throw StoreRefusal.foreignTables(name: name, table: "moongate_schema")
    }
    let version = try mark.count(1)
    guard version <= schema.version else {
      throw StoreRefusal.newerSchema(path: name, found: version, known: schema.version)
    }
    return version
  }

  /// PostgreSQL checks pages itself if the cluster has checksums, and reports damage in its log.
  func damage() throws -> [String] { [] }

  func read<Work: SnapshotWork>(_ work: Work) throws -> Work.Value {
    try connected { connection in try transaction(.reading, on: connection) { rows in try work.run(rows) } }
  }

  func write<Work: SnapshotWork>(_ work: Work) throws -> Work.Value {
    try connected { connection in try transaction(.writing, on: connection) { rows in try work.run(rows) } }
  }

  // MARK: Connections

  /// Connects while the body runs.
  /// - Throws: the refusal to show when a start fails.
  func opened<Value>(_ body: (PostgresConnection) throws -> Value) throws(StoreRefusal) -> Value {
    do { return try connected(body) } catch let error as StoreRefusal { throw error } catch {
      throw .fault(path: name, reason: "\(error)")
    }
  }

  private func connected<Value>(_ body: (PostgresConnection) throws -> Value) throws -> Value {
    do {
      return try body(try PostgresConnection.open(address, timing: timing, metrics: PostgresMetrics()))
    } catch let error as PostgresError {
      throw refusal(error)
    }
  }

  private func refusal(_ error: PostgresError) -> any Error {
    switch error {
    case .notConnected(let obstacle): StoreRefusal.obstacle(name: name, obstacle)
    case .refused(.noRights, _), .refused(.noSchema, _): StoreRefusal.obstacle(name: name, .noRights)
    case .refused(.readOnly, _): StoreRefusal.obstacle(name: name, .readOnly)
    case .refused(SQLState(rawValue: "42703"), _), .refused(SQLState(rawValue: "42P07"), _):
      StoreRefusal.foreignTables(name: name, table: "moongate_schema")
    default: error.fault
    }
  }

  /// Runs a transaction without retries.
  func transaction<Value>(
    _ kind: PostgresTransaction.Kind, on connection: PostgresConnection, _ body: (PostgresTransaction) throws -> Value
  ) throws -> Value {
    let rows = PostgresTransaction(kind, on: connection)
    do {
      let value = try body(rows)
      try rows.commit()
      return value
    } catch {
      rows.rollBack()
      throw rows.failure ?? error
    }
  }
}
