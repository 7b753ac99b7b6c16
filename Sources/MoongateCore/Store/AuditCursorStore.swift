/// Records how far the audit trail has been sent to each sink. Events are sent in the order in which they were
/// committed.
package protocol AuditCursorStore: Sendable {
  /// The sink's position. Marks the sink as in use. A new sink starts with the oldest stored event.
  func auditCursor(of sink: String, at now: Timestamp) async throws(StoreFault) -> AuditPosition
  /// The events after a position, in sending order. An event is only returned once no transaction can still commit an
  /// earlier one.
  /// - Parameter limit: the maximum number, 1 or more.
  func events(after position: AuditPosition, limit: Int) async throws(StoreFault) -> [PositionedEvent]
  /// Records that a sink has received everything up to a position.
  /// - Returns: false if the lease has expired or another gateway holds it. Nothing was recorded then.
  func moveAuditCursor(
    of sink: String, to position: AuditPosition, under lease: Lease, at now: Timestamp
  ) async throws(StoreFault) -> Bool
  /// The number and age of the events after a position.
  func auditBacklog(after position: AuditPosition) async throws(StoreFault) -> AuditBacklog
  /// Deletes the cursors of sinks that are not in use.
  /// - Parameter moment: cursors that were used since this time are kept.
  func forgetAuditCursors(unusedSince moment: Timestamp, except sinks: [String], at now: Timestamp)
    async throws(StoreFault)
}

/// A position in the order in which the audit trail is sent.
package struct AuditPosition: Sendable, Hashable {
  /// The transaction that wrote the event, for databases with concurrent writers; otherwise 0.
  package let transaction: Int64
  package let number: Int64

  /// The position before all events.
  package static let beginning = AuditPosition(transaction: 0, number: 0)

  package init(transaction: Int64, number: Int64) {
    self.transaction = transaction
    self.number = number
  }
}

/// An event with its position.
package struct PositionedEvent: Sendable, Equatable {
  package let position: AuditPosition
  package let event: AuditEvent

  package init(position: AuditPosition, event: AuditEvent) {
    self.position = position
    self.event = event
  }
}

/// The events that a sink has not received yet.
package struct AuditBacklog: Sendable, Equatable {
  /// The maximum that is counted.
  package static let most = 100_000

  package let count: Int
  /// The time of the oldest one; nil if none exist.
  package let oldest: Timestamp?

  package init(count: Int, oldest: Timestamp?) {
    self.count = count
    self.oldest = oldest
  }
}
