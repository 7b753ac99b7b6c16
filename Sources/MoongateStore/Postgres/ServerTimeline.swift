import Synchronization

/// The timeline of the servers in an address with several hosts. It increases when a standby is promoted (PostgreSQL
/// documentation, "Timelines").
///
/// A primary that comes back after its standby was promoted accepts writes as before, and may be first in the list. If
/// some gateways or connections used it, guesses would be counted twice, and sessions and locks would be written where
/// they are not found.
final class ServerTimeline: Sendable {
  /// Returns eight hexadecimal digits; NULL on a standby.
  static let question =
    "SELECT CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END"

  private let latest = Mutex<UInt32>(0)

  /// Whether any server's timeline is known.
  var isKnown: Bool { latest.withLock { $0 > 0 } }

  /// Records a server's timeline.
  func observe(_ timeline: UInt32) { latest.withLock { $0 = max($0, timeline) } }

  /// Whether a server with a later timeline was seen.
  func isPast(_ timeline: UInt32) -> Bool { latest.withLock { timeline < $0 } }
}
