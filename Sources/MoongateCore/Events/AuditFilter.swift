/// Which events of the audit trail are asked for. Each condition that is given narrows the answer.
package struct AuditFilter: Sendable, Equatable {
  /// Events of one of these people.
  package struct People: Sendable, Equatable {
    /// Ids of accounts.
    package var accounts: Set<String>
    /// `KeyRing.logHash` of identifiers.
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
  /// This moment and later ones.
  package var since: Timestamp?
  /// The events of one request: the decision itself, and what it led to.
  package var decision: DecisionID?

  package init(
    people: People? = nil, kinds: Set<AuditEvent.Kind>? = nil, since: Timestamp? = nil, decision: DecisionID? = nil
  ) {
    self.people = people
    self.kinds = kinds
    self.since = since
    self.decision = decision
  }

  /// Whether the event fulfils all conditions.
  package func matches(_ event: AuditEvent) -> Bool {
    if let people, !people.contains(event) { return false }
    if let kinds, !kinds.contains(event.kind) { return false }
    if let since, event.at < since { return false }
    if let decision, event.id != decision, event.detail["request"] != decision.text { return false }
    return true
  }

  /// Texts of which an event that matches holds at least one, as JSON spells them; nil: any event may match.
  package var needles: [String]? {
    if let decision { return [decision.text] }
    if let people { return Array(people.accounts) + Array(people.traces) }
    if let kinds { return kinds.map(\.rawValue) }
    return nil
  }
}
