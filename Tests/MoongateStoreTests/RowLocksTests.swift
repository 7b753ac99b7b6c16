import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateStore

/// Which rows a transaction locks before it reads, and in which order.
@Suite struct RowLocksTests {
  /// A transaction that records its statements, and returns what the test defines.
  private final class RecordingTransaction: SQLTransaction {
    struct Nothing: SQLRow {
      func optionalInteger(_ column: Int) throws -> Int64? { nil }
      func optionalText(_ column: Int) throws -> String? { nil }
      func optionalBytes(_ column: Int) throws -> [UInt8]? { nil }
    }

    let dialect: SQLDialect
    var ran: [SQLRead] = []
    var trips: [[SQLRead]] = []

    init(_ dialect: SQLDialect) { self.dialect = dialect }

    func run(_ sql: String, _ arguments: [SQLValue]) throws { ran.append(SQLRead(sql, arguments)) }
    func changes(_ sql: String, _ arguments: [SQLValue]) throws -> Int { 0 }
    func rows(_ reads: [SQLRead]) throws -> [[Nothing]] {
      trips.append(reads)
      return reads.map { _ in [] }
    }
  }

  private static func limit(_ counter: [UInt8]) -> ResolvedLimit {
    ResolvedLimit(
      provider: ProviderName(test: "pin"), name: "verify", key: .identifier, counter: counter, max: 1, window: nil,
      counts: .failures, lock: [],
      disables: false)
  }

  private static let timer = ResendTimer(key: [2], intervals: [], expiredAt: nil)

  /// Two transactions that lock in different orders would deadlock.
  @Test func countersTheTimerAndAccountsAreLockedInOrder() throws {
    var locks = RowLocks([Self.limit([9]), Self.limit([1, 255]), Self.limit([1])], Self.timer)
    for account in ["ac_b", "ac_a", "ac_b"] { locks.add(account: account) }
    let rows = RecordingTransaction(.postgres)
    try locks.take(rows)
    let keys: [SQLValue] = [.bytes([1]), .bytes([1, 255]), .bytes([2]), .bytes([9])]
    #expect(rows.trips.isEmpty && rows.ran.count == 2, "locking goes with what is read next")
    #expect(rows.ran[0].arguments.filter { if case .bytes = $0 { true } else { false } } == keys)
    // Attack: two transactions that only check whether the row exists would both proceed.
    #expect(rows.ran[0].sql.contains("ON CONFLICT (key) DO UPDATE"), "a row that is there is locked, not left alone")
    #expect(
      rows.ran[1].arguments == [.text("ac_a"), .text("ac_b")] && rows.ran[1].sql.hasSuffix("ORDER BY id FOR UPDATE"))
  }

  @Test func emptyRequestLocksNoRows() throws {
    let rows = RecordingTransaction(.postgres)
    try RowLocks().take(rows)
    #expect(rows.trips.isEmpty && rows.ran.isEmpty)
  }

  @Test func sqliteLocksNothing() throws {
    var locks = RowLocks([Self.limit([1])], Self.timer)
    locks.add(account: "ac_a")
    let rows = RecordingTransaction(.sqlite)
    try locks.take(rows)
    #expect(rows.ran.isEmpty && rows.trips.isEmpty)
  }

  /// Changes of sessions get their numbers at the very end, and one for each token and account.
  @Test func announcementsAreWrittenTogether() throws {
    let notifications = ChangeNotifications()
    notifications.add(account: "ac_a")
    notifications.add(token: [1])
    notifications.add(token: [1])
    notifications.add(account: "ac_a")
    let rows = RecordingTransaction(.postgres)
    try notifications.write(at: Timestamp(milliseconds: 5), rows)
    let numbered = rows.ran.filter { $0.sql.contains("UPDATE session_number SET number = number + 1") }
    #expect(numbered.map(\.arguments) == [[.integer(5), .bytes([1]), .null], [.integer(5), .null, .text("ac_a")]])
    // Grants of apps end before, because the row with the counter must be locked last.
    #expect(rows.ran.suffix(2).map(\.sql) == numbered.map(\.sql))
    let quiet = RecordingTransaction(.postgres)
    try ChangeNotifications().write(at: Timestamp(milliseconds: 5), quiet)
    #expect(quiet.ran.isEmpty)
  }
}
