/// A sink for the audit trail: a file, a syslog server or an HTTP endpoint.
package protocol AuditSink: Sendable {
  /// Writes events in order. When it returns, they are stored durably.
  /// - Parameter lines: JSON, each without a line end.
  /// - Throws: if it is not certain that all of them were stored. They are then sent again.
  func take(_ lines: [[UInt8]], at now: Timestamp) async throws(AuditSinkFault)
}

/// Why a sink did not accept events.
package struct AuditSinkFault: Error, Sendable, Equatable, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}
