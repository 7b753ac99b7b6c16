import Synchronization

/// The timeline of the server that a process works with, where its address names several: it grows when a standby is
/// promoted (PostgreSQL documentation, "Timelines").
///
/// A primary that comes back after its standby was promoted takes writes as before, and is the first of the list
/// perhaps. Part of the gateways, or of one gateway's connections, would work with it: guesses would be counted twice,
/// and sessions and locks be where nobody looks for them.
final class ServerTimeline: Sendable {
  /// In eight hexadecimal digits; NULL from a standby.
  static let question =
    "SELECT CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END"

  private let latest = Mutex<UInt32>(0)

  /// Whether a server was met.
  var isKnown: Bool { latest.withLock { $0 > 0 } }

  /// Remembers that a server of this timeline was met.
  func meet(_ timeline: UInt32) { latest.withLock { $0 = max($0, timeline) } }

  /// Whether a server of a later one was met.
  func isPast(_ timeline: UInt32) -> Bool { latest.withLock { timeline < $0 } }
}
