import MoongateCore

extension SQLStore {
  package func events(matching filter: AuditFilter, limit: Int) async throws(StoreFault) -> [AuditEvent] {
    guard let bounds = try await read({ rows in try Trail.bounds(rows) }) else { return [] }
    var events: [AuditEvent] = []
    var last = bounds.upperBound
    // In batches, so that others do not wait.
    while last >= bounds.lowerBound, events.count < limit {
      let first = max(bounds.lowerBound, last - Trail.stretch + 1)
      let found = try await read { [last] rows in try EventRows.search(filter, from: first, to: last, rows) }
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
