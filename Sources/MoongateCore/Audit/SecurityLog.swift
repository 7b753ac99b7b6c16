import Logging

/// Writes what an operator has to see into the log: sign-ins, locks and their ends, changes of identifiers and factors,
/// what operators did. One line for each event of the audit trail, once the store holds it; `GET /decisions/{id}` tells
/// the rest.
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
  /// Whether it says who came in, what opens an account, or what an operator did.
  package var isSecurityEvent: Bool {
    switch self {
    // Generations have lines of their own. A name opens nothing.
    case .flowBegun, .codeSent, .deliveryFailed, .codeVerified, .stepSkipped, .refused, .generationActive,
      .generationRefused, .client,
      .accountRenamed:
      false
    default: true
    }
  }
}
