/// How far the audit trail has been sent to each sink. The order of sending is that in which events were committed.
package protocol AuditCursorStore: Sendable {
  /// Where sending to a sink goes on; marks the sink as one that is in use. A new sink begins with the oldest event
  /// that is kept.
  func auditCursor(of sink: String, at now: Timestamp) async throws(StoreFault) -> AuditPosition
  /// The events behind a position, in the order of sending. An event is given only once no transaction can still commit
  /// one before it.
  /// - Parameter limit: at most so many, 1 or more.
  func events(after position: AuditPosition, limit: Int) async throws(StoreFault) -> [PositionedEvent]
  /// Notes that a sink has everything up to a position.
  /// - Returns: false where the lease is somebody else's, or over: nothing was noted.
  func moveAuditCursor(
    of sink: String, to position: AuditPosition, under lease: Lease, at now: Timestamp
  ) async throws(StoreFault) -> Bool
  /// What waits behind a position.
  func auditBacklog(after position: AuditPosition) async throws(StoreFault) -> AuditBacklog
  /// Forgets the cursors of sinks that are not in use.
  /// - Parameter moment: those that have been in use since then stay.
  func forgetAuditCursors(unusedSince moment: Timestamp, except sinks: [String], at now: Timestamp)
    async throws(StoreFault)
}

/// A place in the order in which the audit trail is sent.
package struct AuditPosition: Sendable, Hashable {
  /// The transaction that wrote the event, where the database lets several write at once; 0 elsewhere.
  package let transaction: Int64
  package let number: Int64

  /// Before all events.
  package static let beginning = AuditPosition(transaction: 0, number: 0)

  package init(transaction: Int64, number: Int64) {
    self.transaction = transaction
    self.number = number
  }
}

/// An event with its place in the order of sending.
package struct PositionedEvent: Sendable, Equatable {
  package let position: AuditPosition
  package let event: AuditEvent

  package init(position: AuditPosition, event: AuditEvent) {
    self.position = position
    self.event = event
  }
}

/// Events that a sink does not have yet.
package struct AuditBacklog: Sendable, Equatable {
  /// More of them are not counted.
  package static let most = 100_000

  package let count: Int
  /// When the oldest of them happened; nil: there are none.
  package let oldest: Timestamp?

  package init(count: Int, oldest: Timestamp?) {
    self.count = count
    self.oldest = oldest
  }
}
