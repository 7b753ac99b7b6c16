/// Takes the audit trail in: a file, a syslog server, a site.
package protocol AuditSink: Sendable {
  /// Takes some events in, in their order. When it returns, they are there for good.
  /// - Parameter lines: JSON, each without its line end.
  /// - Throws: where it is not certain that all of them are there. They are sent again then.
  func take(_ lines: [[UInt8]], at now: Timestamp) async throws(AuditSinkFault)
}

/// Why a sink did not take events in.
package struct AuditSinkFault: Error, Sendable, Equatable, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }
}
