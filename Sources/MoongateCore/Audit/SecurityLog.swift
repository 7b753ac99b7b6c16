import Logging

/// Logs security events: sign-ins, locks and their ends, changes of identifiers and factors, and operators' actions.
/// One line for each audit event, once it is stored. `GET /decisions/{id}` has the details.
package struct SecurityLog: Sendable {
  private let logger: Logger

  package init(logger: Logger) { self.logger = logger }

  package func note(_ events: [AuditEvent]) {
    for event in events where event.kind.isSecurityEvent {
      var metadata: Logger.Metadata = ["decision": "\(event.id)"]
      metadata["flow"] = event.flow.map { "\($0)" }
      metadata["provider"] = event.provider.map { "\($0)" }
      metadata["account"] = event.account.map { "\($0)" }
      metadata["identifier"] = event.identifier.map { "\($0)" }
      metadata["address"] = event.address.map { "\($0)" }
      for (name, value) in event.detail { metadata[name] = "\(value)" }
      logger.notice("\(event.kind.rawValue)", metadata: metadata)
    }
  }
}

extension AuditEvent.Kind {
  /// Whether the event is about a sign-in, a change of what opens an account, or an operator's action.
  package var isSecurityEvent: Bool {
    switch self {
    // Generations have their own log lines. Renaming an account is not relevant to security.
    case .flowBegun, .codeSent, .deliveryFailed, .codeVerified, .stepSkipped, .refused, .generationActive,
      .generationRefused, .client,
      .accountRenamed, .deviceRemoved, .secretUnchecked:
      false
    default: true
    }
  }
}
