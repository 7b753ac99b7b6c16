import MoongateCore

/// Requests of devices without a browser.
enum DeviceRequestRows {
  private static let columns =
    "device, user_code, app, scopes, created_at, expires_at, address, polled_at, poll_interval, outcome, code"
  /// The values of `outcome`.
  private static let (pending, denied, allowed) = (Int64(0), Int64(1), Int64(2))

  static func find(device: TokenHash, _ rows: some SQLTransaction) throws -> DeviceRequest? {
    try rows.row("SELECT \(columns) FROM device_request WHERE device = ?1", [.bytes(device.bytes)]).map {
      try request($0)
    }
  }

  /// The pending request with these letters.
  static func find(user: TokenHash, at now: Timestamp, _ rows: some SQLTransaction) throws -> DeviceRequest? {
    try rows.row(
      "SELECT \(columns) FROM device_request WHERE user_code = ?1 AND expires_at > ?2 AND outcome = \(pending)",
      [.bytes(user.bytes), SQLValue(now)]
    ).map { try request($0) }
  }

  /// Stores a new request.
  ///
  /// Attack: somebody begins requests without end, so that letters that are guessed are those of a request. An address
  /// has at most so many; requests of one address are stored one after the other (`RowLocks`).
  /// - Parameter most: the maximum number of unexpired requests of an app from an address.
  static func put(_ request: DeviceRequest, most: Int, at now: Timestamp, _ rows: some SQLTransaction) throws {
    let full = try rows.row(
      """
      SELECT expires_at FROM device_request WHERE app = ?1 AND address = ?2 AND expires_at > ?3
      ORDER BY expires_at LIMIT 1 OFFSET ?4
      """, [.text(request.app), .text(request.address), SQLValue(now), SQLValue(max(0, most - 1))])
    if full != nil { throw ChangeConflict(.tooManyDeviceRequests) }
    let (outcome, code) = values(of: request.outcome)
    try rows.demand(
      """
      INSERT INTO device_request (\(columns)) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
      ON CONFLICT DO NOTHING
      """,
      [
        .bytes(request.device.bytes), .bytes(request.user.bytes), .text(request.app), try .json(request.scopes),
        SQLValue(request.createdAt), SQLValue(request.expiresAt), .text(request.address), SQLValue(request.polledAt),
        SQLValue(request.interval), outcome, code,
      ], orElse: .tooManyDeviceRequests)
  }

  static func decide(
    _ user: TokenHash, _ decision: DeviceRequest.Outcome, at now: Timestamp, _ rows: some SQLTransaction
  ) throws {
    let (outcome, code) = values(of: decision)
    // Attack: two users decide at the same moment. The second one waits for the row, and finds it decided.
    try rows.demand(
      """
      UPDATE device_request SET outcome = ?1, code = ?2
      WHERE user_code = ?3 AND expires_at > ?4 AND outcome = \(pending)
      """, [outcome, code, .bytes(user.bytes), SQLValue(now)], orElse: .codeSpent)
  }

  static func poll(_ device: TokenHash, at moment: Timestamp, interval: Int, _ rows: some SQLTransaction) throws {
    try rows.run(
      "UPDATE device_request SET polled_at = ?1, poll_interval = ?2 WHERE device = ?3",
      [SQLValue(moment), SQLValue(interval), .bytes(device.bytes)])
  }

  /// Deletes a request that was decided.
  static func take(_ device: TokenHash, _ rows: some SQLTransaction) throws {
    try rows.demand(
      "DELETE FROM device_request WHERE device = ?1 AND outcome <> \(pending)", [.bytes(device.bytes)],
      orElse: .codeSpent)
  }

  /// Deletes expired requests, at most `limit`.
  /// - Returns: the number of deleted requests.
  static func prune(at now: Timestamp, limit: Int, _ rows: some SQLTransaction) throws -> Int {
    try rows.changes(
      """
      DELETE FROM device_request WHERE device IN (
        SELECT device FROM device_request WHERE expires_at <= ?1 ORDER BY expires_at LIMIT \(limit)
          \(rows.dialect.words(sqlite: "", postgres: "FOR UPDATE SKIP LOCKED")))
      """, [SQLValue(now)])
  }

  private static func values(of outcome: DeviceRequest.Outcome) -> (outcome: SQLValue, code: SQLValue) {
    switch outcome {
    case .pending: (.integer(pending), .null)
    case .denied: (.integer(denied), .null)
    case .allowed(let code): (.integer(allowed), .bytes(code))
    }
  }

  private static func request(_ row: some SQLRow) throws -> DeviceRequest {
    DeviceRequest(
      device: TokenHash(bytes: try row.bytes(0)), user: TokenHash(bytes: try row.bytes(1)), app: try row.text(2),
      scopes: try JSON.decode([String].self, try row.text(3).utf8), createdAt: try row.moment(4),
      expiresAt: try row.moment(5), address: try row.text(6), polledAt: try row.optionalMoment(7),
      interval: try row.count(8), outcome: try outcome(row))
  }

  private static func outcome(_ row: some SQLRow) throws -> DeviceRequest.Outcome {
    switch try row.integer(9) {
    case pending: return .pending
    case denied: return .denied
    case allowed: return .allowed(try row.bytes(10))
    default: throw damaged("device request")
    }
  }
}
