import MoongateCore
import MoongateSDK

/// What a transaction has to itself before it looks: the counters, the timer and the accounts that it is about. Others
/// that are about one of them come before or after it, not between what it reads and what it writes.
///
/// SQLite lets in one transaction that writes at a time. In PostgreSQL (READ COMMITTED: each statement sees what was
/// committed before it) rows are locked: counters first, in the order of their keys, then accounts in the order of
/// their ids, so that two transactions wait for each other in one direction only. What has no row yet cannot be locked,
/// so a counter gets an empty one; a timer is guarded by the row of a counter with its key.
struct Holding {
  private var guards: [(key: [UInt8], provider: String, name: String)] = []
  private var accounts: Set<String> = []

  /// Nothing.
  init() {}

  init(_ limits: [ResolvedLimit], _ timer: ResendTimer?) {
    add(limits)
    if let timer { add(timer: timer.key) }
  }

  mutating func add(_ limits: [ResolvedLimit]) {
    for limit in limits { add(limit.counter, limit.provider.rawValue, limit.name) }
  }
  mutating func add(timer key: [UInt8]) { add(key, "", "timer") }
  mutating func add(account: String) { accounts.insert(account) }

  private mutating func add(_ key: [UInt8], _ provider: String, _ name: String) {
    if !guards.contains(where: { $0.key == key }) { guards.append((key, provider, name)) }
  }

  /// Makes those that are missing and locks all, in the order of the values; one that was pruned meanwhile is made
  /// anew. It locks and changes nothing:
  ///
  /// Attack: tries at a full limit without end, while a backup keeps old versions of rows alive. Each would leave one
  /// more for the next to walk over.
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

  /// Takes hold: what is read after it in the transaction, in the same round trip, stays so until the transaction's
  /// end.
  func take(_ rows: some SQLTransaction) throws {
    guard rows.dialect == .postgres else { return }
    let sorted = guards.sorted { $0.key.lexicographicallyPrecedes($1.key) }
    if !sorted.isEmpty {
      try rows.run(Self.lock[sorted.count], sorted.flatMap { [.bytes($0.key), .text($0.provider), .text($0.name)] })
    }
    if !accounts.isEmpty { try rows.run(Self.lockAccounts[accounts.count], accounts.sorted().map(SQLValue.text)) }
  }
}
