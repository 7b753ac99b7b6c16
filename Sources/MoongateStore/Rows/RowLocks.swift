import MoongateCore
import MoongateSDK

/// The rows that a transaction locks before it reads: its counters, its timer and its accounts. Other transactions on
/// the same rows run before or after it, never between its reads and writes.
///
/// SQLite allows only one write transaction at a time. On PostgreSQL (READ COMMITTED: each statement sees what was
/// committed before it), rows are locked: first counters in the order of their keys, then accounts in the order of
/// their IDs, which prevents deadlocks. A row that does not exist cannot be locked, so an empty counter row is
/// inserted. A timer, or a session at another site, is locked by a counter row with its key.
struct RowLocks {
  private var guards: [(key: [UInt8], provider: String, name: String)] = []
  private var accounts: Set<String> = []

  /// Locks nothing.
  init() {}

  init(_ limits: [ResolvedLimit], _ timer: ResendTimer?) {
    add(limits)
    if let timer { add(timer: timer.key) }
  }

  mutating func add(_ limits: [ResolvedLimit]) {
    for limit in limits { add(limit.counter, limit.provider.rawValue, limit.name) }
  }
  mutating func add(timer key: [UInt8]) { add(key, "", "timer") }
  /// Attack: a session is stored between the site's sign-out and the search for the sessions that it ends.
  mutating func add(siteSession hash: String) { add(SiteSessionRows.key(of: hash), "", "site_session") }
  mutating func add(account: String) { accounts.insert(account) }
  /// Requests of devices have no row in common.
  mutating func add(devicesOf app: String, at address: String) {
    add(TokenHash(of: "devices of \(app) at \(address)".utf8).bytes, "", "device")
  }

  private mutating func add(_ key: [UInt8], _ provider: String, _ name: String) {
    if !guards.contains(where: { $0.key == key }) { guards.append((key, provider, name)) }
  }

  /// Inserts missing rows and locks all, in the order of the values. A row that was pruned meanwhile is inserted again.
  /// Existing rows are locked without being changed.
  ///
  /// Attack: attempts at a full limit without end, while a backup keeps old versions of rows alive. Each change would
  /// leave another version for the next one to skip.
  private static let lock = CountedStatement { count in
    let values = (0..<count).map { "(?\($0 * 3 + 1), ?\($0 * 3 + 2), ?\($0 * 3 + 3), 0, 0, 0)" }.joined(separator: ", ")
    return """
      INSERT INTO counter (key, provider, name, counted, lock_level, expires_at) VALUES \(values)
      ON CONFLICT (key) DO UPDATE SET key = excluded.key WHERE false
      """
  }
  private static let lockAccounts = CountedStatement {
    "SELECT id FROM account WHERE id IN (\(CountedStatement.list($0))) ORDER BY id FOR UPDATE"
  }

  /// Acquires the locks. Everything that is read afterwards in the transaction, including in the same round trip, stays
  /// unchanged until the transaction ends.
  func take(_ rows: some SQLTransaction) throws {
    guard rows.dialect == .postgres else { return }
    let sorted = guards.sorted { $0.key.lexicographicallyPrecedes($1.key) }
    if !sorted.isEmpty {
      try rows.run(Self.lock[sorted.count], sorted.flatMap { [.bytes($0.key), .text($0.provider), .text($0.name)] })
    }
    if !accounts.isEmpty { try rows.run(Self.lockAccounts[accounts.count], accounts.sorted().map(SQLValue.text)) }
  }
}
