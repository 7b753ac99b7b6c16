import MoongateCore

extension SQLStore {
  package func events(about account: String, traces: [String], limit: Int) async throws(StoreFault) -> [AuditEvent] {
    let trail = Trail(account: account, traces: traces)
    return try await latestEvents(limit: limit) { numbers, rows in
      (events: try trail.events(from: numbers.lowerBound, to: numbers.upperBound, rows), isTooOld: false)
    }
  }

  package func events(matching filter: AuditFilter, limit: Int) async throws(StoreFault) -> [AuditEvent] {
    try await latestEvents(limit: limit) { numbers, rows in
      try EventRows.search(filter, from: numbers.lowerBound, to: numbers.upperBound, rows)
    }
  }

  /// Searches the audit trail from its end, in batches, so that others do not wait.
  /// - Parameter search: finds the events among these numbers, newest first, and tells whether they are so old that
  ///   there is nothing to find before them.
  private func latestEvents(
    limit: Int,
    _ search:
      @escaping @Sendable (ClosedRange<Int64>, Database.Transaction) throws -> (
        events: [AuditEvent], isTooOld: Bool
      )
  ) async throws(StoreFault) -> [AuditEvent] {
    guard let bounds = try await read({ rows in try Trail.bounds(rows) }) else { return [] }
    var events: [AuditEvent] = []
    var last = bounds.upperBound
    while last >= bounds.lowerBound, events.count < limit {
      let first = max(bounds.lowerBound, last - Trail.stretch + 1)
      let found = try await read { [last] rows in try search(first...last, rows) }
      events += found.events
      if found.isTooOld { break }
      last = first - 1
    }
    return Array(events.prefix(limit))
  }

  package func auditCursor(of sink: String, at now: Timestamp) async throws(StoreFault) -> AuditPosition {
    try await write(at: now) { rows in try AuditCursorRows.begin(sink, at: now, rows) }
  }

  package func events(after position: AuditPosition, limit: Int) async throws(StoreFault) -> [PositionedEvent] {
    try await read { rows in try AuditCursorRows.events(after: position, limit: limit, rows) }
  }

  package func moveAuditCursor(
    of sink: String, to position: AuditPosition, under lease: Lease, at now: Timestamp
  ) async throws(StoreFault) -> Bool {
    try await write(at: now) { rows in try AuditCursorRows.move(sink, to: position, under: lease, at: now, rows) }
  }

  package func auditBacklog(after position: AuditPosition) async throws(StoreFault) -> AuditBacklog {
    try await read { rows in try AuditCursorRows.backlog(after: position, rows) }
  }

  package func forgetAuditCursors(unusedSince moment: Timestamp, except sinks: [String], at now: Timestamp)
    async throws(StoreFault)
  {
    try await write(at: now) { rows in try AuditCursorRows.forget(unusedSince: moment, except: sinks, rows) }
  }
}
