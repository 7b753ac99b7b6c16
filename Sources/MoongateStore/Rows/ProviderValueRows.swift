import MoongateCore
import MoongateSDK

/// The key-value entries of providers.
enum ProviderValueRows {
  static func find(_ place: ProviderValuePlace, at now: Timestamp, _ rows: some SQLTransaction) throws -> [UInt8]? {
    try rows.row(
      "SELECT sealed FROM provider_value WHERE provider = ?1 AND key = ?2 AND expires_at > ?3",
      place.values + [SQLValue(now)])?.bytes(0)
  }

  static func put(
    _ value: ProviderValue, _ rule: ProviderValueRule, at now: Timestamp, _ rows: some SQLTransaction
  ) throws -> ProviderValueOutcome {
    if let lease = rule.lease, try !LeaseRows.isHeld(lease, at: now, rows) { return .leaseLost }
    if try find(value.place, at: now, rows) != nil {
      if rule.isOnce { return .taken }
    } else if try isFull(value.place.provider, rule.most, at: now, rows) {
      return .full
    }
    // Attack: one nonce at two gateways at once. Neither sees the other's row; the second insert conflicts here.
    let condition = rule.isOnce ? " WHERE provider_value.expires_at <= ?5" : ""
    let stored = try rows.changes(
      """
      INSERT INTO provider_value (provider, key, sealed, expires_at) VALUES (?1, ?2, ?3, ?4)
      ON CONFLICT (provider, key) DO UPDATE SET sealed = excluded.sealed, expires_at = excluded.expires_at\(condition)
      """, value.columns + (rule.isOnce ? [SQLValue(now)] : []))
    return stored > 0 ? .stored : .taken
  }

  static func take(
    _ place: ProviderValuePlace, under lease: Lease?, at now: Timestamp, _ rows: some SQLTransaction
  ) throws -> TakenProviderValue {
    if let lease, try !LeaseRows.isHeld(lease, at: now, rows) { return .leaseLost }
    let found = try rows.row(
      "DELETE FROM provider_value WHERE provider = ?1 AND key = ?2 RETURNING sealed, expires_at", place.values)
    guard let found, now < (try found.moment(1)) else { return .nothing }
    return .value(try found.bytes(0))
  }

  static func all(after place: ProviderValuePlace?, limit: Int, _ rows: some SQLTransaction) throws -> [ProviderValue] {
    try rows.rows(
      "SELECT provider, key, sealed, expires_at FROM provider_value WHERE (provider, key) > (?1, ?2) ORDER BY provider, key LIMIT ?3",
      [.text(place?.provider.rawValue ?? ""), .bytes(place?.key ?? []), SQLValue(max(0, limit))]
    ).map { row in
      guard let provider = ProviderName(rawValue: try row.text(0)) else { throw damaged("provider value") }
      return ProviderValue(
        place: ProviderValuePlace(provider: provider, key: try row.bytes(1)), sealed: try row.bytes(2),
        expiresAt: try row.moment(3))
    }
  }

  static func replace(_ old: ProviderValue, by new: ProviderValue, _ rows: some SQLTransaction) throws {
    guard
      try rows.changes(
        "DELETE FROM provider_value WHERE provider = ?1 AND key = ?2 AND sealed = ?3",
        old.place.values + [.bytes(old.sealed)]) > 0
    else { return }
    try rows.run(
      "INSERT INTO provider_value (provider, key, sealed, expires_at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (provider, key) DO NOTHING",
      new.columns)
  }

  /// Deletes expired rows, at most `limit`.
  /// - Returns: the number of deleted rows.
  static func prune(at now: Timestamp, limit: Int, _ rows: some SQLTransaction) throws -> Int {
    try rows.changes(
      """
      DELETE FROM provider_value WHERE (provider, key) IN (
        SELECT provider, key FROM provider_value WHERE expires_at <= ?1 ORDER BY expires_at LIMIT \(limit)
          \(rows.dialect.words(sqlite: "", postgres: "FOR UPDATE SKIP LOCKED")))
      """, [SQLValue(now)])
  }

  /// Concurrent inserts can exceed the maximum by their number.
  private static func isFull(_ provider: ProviderName, _ most: Int, at now: Timestamp, _ rows: some SQLTransaction)
    throws -> Bool
  {
    try rows.row(
      "SELECT expires_at FROM provider_value WHERE provider = ?1 AND expires_at > ?2 ORDER BY expires_at LIMIT 1 OFFSET ?3",
      [.text(provider.rawValue), SQLValue(now), SQLValue(max(0, most - 1))]) != nil
  }
}

extension ProviderValuePlace {
  fileprivate var values: [SQLValue] { [.text(provider.rawValue), .bytes(key)] }
}

extension ProviderValue {
  fileprivate var columns: [SQLValue] { place.values + [.bytes(sealed), SQLValue(expiresAt)] }
}
