import MoongateSDK

// Audit events for what a completed flow changed in an existing account.

extension FlowCompletion {
  /// The event of a session that began or got a new token. By `session_hash`, an operator finds out later how the
  /// session ended.
  func startEvent(_ session: Session, _ flow: FlowTransaction) -> AuditEvent {
    var event = event(.sessionStarted, flow)
    event.detail["session"] = session.id
    event.detail["session_hash"] = session.token.trace
    event.detail["expires_at"] = session.expiresAt.text
    if session.isRemembered { event.detail["remembered"] = "true" }
    return event
  }

  /// Audit events for changed identifiers and factors. They are derived from the two account states and not from the
  /// flow's purpose, so a new kind of change needs no code here.
  /// - Parameters:
  ///   - before: the account before the flow; nil if the flow created it.
  ///   - after: the account after the flow.
  ///   - endsSessions: whether the change ends the account's other sessions.
  func changeEvents(_ flow: FlowTransaction, before: Account?, after: Account, endsSessions: Bool) -> [Change] {
    guard let before else { return [] }
    return (identifierEvents(flow, before, after) + factorEvents(flow, before, after)).map { event in
      var event = event
      if endsSessions { event.detail["sessions"] = "all others" }
      return .audit(event)
    }
  }

  private func identifierEvents(_ flow: FlowTransaction, _ before: Account, _ after: Account) -> [AuditEvent] {
    let verified = { (account: Account) in account.identifiers.filter { $0.verifiedAt != nil }.map(\.identifier) }
    // Two accounts were joined: the identifiers of the first are new to the second.
    let old = before.id == after.id ? verified(before) : []
    let new = before.id == after.id ? verified(after) : verified(before)
    var gone = old.filter { !new.contains($0) }
    var events: [AuditEvent] = []
    for added in new where !old.contains(added) {
      let replaced = gone.firstIndex { $0.kind == added.kind }.map { gone.remove(at: $0) }
      var event = line(replaced == nil ? .identifierAdded : .identifierChanged, about: added, flow)
      event.detail["before"] = replaced.map { keys.logHash($0.value) }
      events.append(event)
    }
    return events + gone.map { line(.identifierRemoved, about: $0, flow) }
  }

  private func line(_ kind: AuditEvent.Kind, about identifier: Identifier, _ flow: FlowTransaction) -> AuditEvent {
    var event = event(kind, flow)
    event.identifier = keys.logHash(identifier.value)
    event.detail["identifier_kind"] = identifier.kind.rawValue
    event.provider = registry(flow.request).prover(of: identifier)
    return event
  }

  private func factorEvents(_ flow: FlowTransaction, _ before: Account, _ after: Account) -> [AuditEvent] {
    let record = flow.record
    let written = Set(record.pendingProofs.records.keys.filter { record.stepPurpose(of: $0) != .prove })
    // A record that was only proved may have been rewritten (new hash cost, time of the last code). That is not a
    // change.
    return written.union(before.credentials).union(after.credentials).sorted().compactMap { provider in
      let kind: AuditEvent.Kind? =
        switch (before.credentials.contains(provider), after.credentials.contains(provider)) {
        case (false, true): .factorSet
        case (true, false): .factorRemoved
        case (true, true): written.contains(provider) ? .factorChanged : nil
        case (false, false): nil
        }
      guard let kind else { return nil }
      var event = event(kind, flow)
      event.provider = provider
      return event
    }
  }
}
