import MoongateCore
import Synchronization

/// Deletes expired rows in small steps, so that others do not wait long. Tables without an index by age are scanned in
/// the order of their keys, in batches; `Pruner` stores the position.
final class Pruner: Sendable {
  /// The number of rows processed per step and table.
  private static let stretch = 500

  private struct Place {
    var counter: [UInt8] = []
    var pending: [UInt8] = []
    var session: [UInt8] = []
    var domainToken: [UInt8] = []
    var replacedToken: [UInt8] = []
    var timer: [UInt8] = []
    /// The newest event beyond each quota, while surplus events are being deleted.
    var surplus: [AuditQuota: Int64] = [:]
  }

  private let place = Mutex(Place())

  /// - Returns: whether there is more to process.
  func step(at now: Timestamp, _ rows: some SQLTransaction) throws -> Bool {
    let moment = SQLValue(now)
    let flows = try rows.changes(
      "DELETE FROM flow WHERE number IN (SELECT number FROM flow WHERE forgotten_at <= ?1 ORDER BY forgotten_at LIMIT \(Self.stretch))",
      [moment])
    // Only up to the first recent change: times come from different gateways and are not exactly in the order of the
    // numbers, and the numbers must not have gaps.
    let changes = try rows.changes(
      """
      DELETE FROM session_change WHERE number IN (SELECT number FROM session_change ORDER BY number LIMIT \(Self.stretch))
        AND number < (SELECT max(number) FROM session_change)
        AND number < coalesce((
          SELECT min(number) FROM (SELECT number, at FROM session_change ORDER BY number LIMIT \(Self.stretch)) AS stretch WHERE at > ?1
        ), \(Int64.max))
      """, [SQLValue(now - SessionRows.retention)])
    let events = try rows.changes(
      """
      DELETE FROM event WHERE number IN (SELECT number FROM event ORDER BY number LIMIT \(Self.stretch)) AND at <= ?1
      """, [SQLValue(now - EventRows.retention)])
    if events > 0 { try AuditCursorRows.resetCursorsIfTrailIsEmpty(rows) }
    let attempts = try FailedAttemptRows.prune(at: now, limit: Self.stretch, rows)
    let codes = try SpentCodeRows.prune(at: now, limit: Self.stretch, rows)
    let values = try ProviderValueRows.prune(at: now, limit: Self.stretch, rows)
    let tokens = try AccessTokenRows.prune(at: now, limit: Self.stretch, rows)
    let invitations = try InvitationRows.prune(at: now, limit: Self.stretch, rows)
    let (ofApps, hasMoreOfApps) = try pruneApps(at: now, rows)
    var place = place.withLock { $0 }
    // Delete old events first, because counting a quota takes milliseconds.
    let surplus = events < Self.stretch ? try dropSurplus(&place.surplus, at: now, rows) : 0
    // A counter without events or a lock to remember, or whose events and locks are all over.
    let dead = "(expires_at <= ?3 OR (counted = 0 AND locked_until IS NULL AND disabled_since IS NULL))"
    for counter in try walk("counter", "key", from: &place.counter, dead: dead, [moment], rows) {
      try rows.run("DELETE FROM tally WHERE counter = ?1", [.bytes(counter)])
    }
    // Delayed beyond need, because the counters are not locked here: a transaction that waited, or has another
    // gateway's time, still finds in its second statement what it counted in its first.
    _ = try walk(
      "pending", "counter", from: &place.pending, dead: "expires_at <= ?3",
      [SQLValue(now - CounterState.settlementTimeout)],
      rows)
    // Written so that no sum can overflow.
    _ = try walk(
      "session", "token", from: &place.session, dead: "(expires_at <= ?3 OR ?3 - last_seen_at >= idle)", [moment], rows)
    _ = try walk("session_domain", "token", from: &place.domainToken, dead: DomainTokenRows.orphaned, [], rows)
    _ = try walk(
      "replaced_token", "token", from: &place.replacedToken, dead: ReplacedTokenRows.dead,
      [SQLValue(now - ReplacedTokenRows.lifetime)], rows)
    _ = try walk(
      "timer", "key", from: &place.timer, dead: "resend_at <= ?3 AND sent_at <= ?4",
      [moment, SQLValue(now - ResendTimer.sequenceEnd)], rows)
    self.place.withLock { [place] in $0 = place }
    let isWalking =
      !(place.counter.isEmpty && place.pending.isEmpty && place.session.isEmpty && place.domainToken.isEmpty
      && place.replacedToken.isEmpty && place.timer.isEmpty)
    return isWalking || hasMoreOfApps
      || [flows, changes, events, codes, values, tokens, invitations, ofApps, attempts, surplus].contains {
        $0 >= Self.stretch
      }
  }

  /// Ends grants of apps whose sessions have expired, before the sessions are deleted, and deletes what is over.
  /// - Returns: the largest number of deleted rows of a kind, and whether there may be more to end.
  private func pruneApps(at now: Timestamp, _ rows: some SQLTransaction) throws -> (deleted: Int, hasMore: Bool) {
    let isSweeping = try AppGrantEnding.sweep(at: now, rows)
    let isDropping = try AppGrantEnding.dropNotices(at: now, rows)
    let grants = try AppGrantRows.prune(at: now, limit: Self.stretch, rows)
    let requests = try DeviceRequestRows.prune(at: now, limit: Self.stretch, rows)
    return (max(grants, requests), isSweeping || isDropping)
  }

  /// Deletes events beyond their quota. The surplus is determined when a scan begins.
  /// - Returns: the largest number of deleted events of a quota, at most the batch size.
  private func dropSurplus(_ surplus: inout [AuditQuota: Int64], at now: Timestamp, _ rows: some SQLTransaction) throws
    -> Int
  {
    if surplus.isEmpty { for quota in AuditQuota.allCases { surplus[quota] = try EventRows.surplus(quota, rows) } }
    var most = 0
    for (quota, number) in surplus {
      let removed = try EventRows.remove(quota, through: number, limit: Self.stretch, at: now, rows)
      if removed < Self.stretch { surplus[quota] = nil }
      most = max(most, removed)
    }
    return most
  }

  /// More than five parameters: the parts of one statement, and the transaction.
  /// Deletes the expired rows in the next batch of a table. Sets `place` to the last key of the batch; empty at the end
  /// of the table. Rows with the same key are never split between batches.
  /// - Parameter dead: the condition for expired rows, with arguments from `?3` on. Evaluated when a row is deleted,
  ///   because it may have been renewed.
  /// - Returns: the keys of the deleted rows.
  private func walk(
    _ table: String, _ key: String, from place: inout [UInt8], dead: String, _ arguments: [SQLValue],
    _ rows: some SQLTransaction
  ) throws -> [[UInt8]] {
    let last = try rows.row(
      "SELECT \(key) FROM \(table) WHERE \(key) > ?1 ORDER BY \(key) LIMIT 1 OFFSET \(Self.stretch - 1)",
      [.bytes(place)])?.bytes(0)
    let stretch: [SQLValue] = [.bytes(place), .bytes(last ?? Self.beyond)]
    place = last ?? []
    let gone = "\(key) > ?1 AND \(key) <= ?2 AND \(dead)"
    // Skip locked rows: their transactions may wait for other rows, and deadlocks cause retries. The next scan finds
    // them.
    let free = " AND \(key) IN (SELECT \(key) FROM \(table) WHERE \(gone) ORDER BY \(key) FOR UPDATE SKIP LOCKED)"
    return try rows.rows(
      "DELETE FROM \(table) WHERE \(gone)\(rows.dialect.words(sqlite: "", postgres: free)) RETURNING \(key)",
      stretch + arguments
    ).map { try $0.bytes(0) }
  }

  /// Greater than every key. Keys are hashes of at most 32 bytes.
  private static let beyond = [UInt8](repeating: 0xff, count: 64)
}
