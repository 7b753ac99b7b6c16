/// Selects events of the audit trail. An event must match all given conditions.
package struct AuditFilter: Sendable, Equatable {
  /// Selects the events of certain people.
  package struct People: Sendable, Equatable {
    /// Account IDs.
    package var accounts: Set<String>
    /// Keyed hashes of identifiers (`KeyRing.logHash`).
    package var traces: Set<String>

    package init(accounts: Set<String> = [], traces: Set<String> = []) {
      self.accounts = accounts
      self.traces = traces
    }

    func contains(_ event: AuditEvent) -> Bool {
      (event.account.map(accounts.contains) ?? false) || (event.identifier.map(traces.contains) ?? false)
    }
  }

  package var people: People?
  package var kinds: Set<AuditEvent.Kind>?
  /// This time or later.
  package var since: Timestamp?
  /// The events of one request: the decision itself and its consequences.
  package var decision: DecisionID?
  /// The events of one session token (`TokenHash.trace`).
  package var sessionToken: String?

  package init(
    people: People? = nil, kinds: Set<AuditEvent.Kind>? = nil, since: Timestamp? = nil, decision: DecisionID? = nil,
    sessionToken: String? = nil
  ) {
    self.people = people
    self.kinds = kinds
    self.since = since
    self.decision = decision
    self.sessionToken = sessionToken
  }

  /// Whether the event matches all conditions.
  package func matches(_ event: AuditEvent) -> Bool {
    if let people, !people.contains(event) { return false }
    if let kinds, !kinds.contains(event.kind) { return false }
    if let since, event.at < since { return false }
    if let decision, event.id != decision, event.detail["request"] != decision.text { return false }
    if let sessionToken, event.detail["session_hash"] != sessionToken { return false }
    return true
  }

  /// Texts, at least one of which is contained in the JSON of every matching event; nil if any event may match.
  package var needles: [String]? {
    if let decision { return [decision.text] }
    if let sessionToken { return [sessionToken] }
    if let people { return Array(people.accounts) + Array(people.traces) }
    if let kinds { return kinds.map(\.rawValue) }
    return nil
  }
}
