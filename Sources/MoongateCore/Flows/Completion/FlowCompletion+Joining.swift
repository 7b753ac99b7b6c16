import MoongateSDK

// Which identifiers a flow adds to an existing account, from when on they sign in, and when they are dropped again.

extension FlowCompletion {
  /// Whether the flow may add an identifier that it has proved to an account that does not have it.
  ///
  /// Attack: someone with a copy of a session adds an address of their own, and passes a step-up by an identity
  /// elsewhere that has the same address. The identity would open the account for ever, and nobody would be told. A
  /// flow of a session, and a reset, therefore add only what their purpose names, and what is too new adds nothing.
  ///
  /// Attack: someone who reads an account's mail for a minute joins an identity of their own to it, and signs in by
  /// that for ever, past the PIN, or beside the owner's identity at that site, where the account page does not show
  /// it. They may sign in now, but joining the identity is a change that a factor of the account must authorise. A flow
  /// that connects a site has already required one (`demandBasis`).
  func mayAdd(_ identifier: Identifier, to account: Account, _ flow: FlowTransaction) -> Bool {
    let (record, request) = (flow.record, flow.request)
    if identifier.kind == record.purpose.newIdentifier { return true }
    guard record.startedIn == nil, !record.purpose.isReset, record.passed.allSatisfy({ $0.tooNewUntil == nil }) else {
      return false
    }
    guard identifier.kind == .federated else { return true }
    return !checks.isConnected(toSiteOf: identifier, account, request) && requirements.mayJoin(account, flow)
  }

  /// Until when an identifier that the flow adds signs nobody in by itself; nil: it does at once.
  ///
  /// Attack: one code to the owner's mailbox, read once, joins an identity of the thief's own, which opens the account
  /// from then on. An identity that neither the owner's session nor a factor has authorised therefore waits. Until then
  /// its owner signs in as before it was joined: by another proof of the account.
  func wait(of identifier: Identifier, in account: Account, _ flow: FlowTransaction) -> Timestamp? {
    guard identifier.kind == .federated, !flow.record.purpose.connectsSite,
      checks.authority(over: account, flow.request).factors.isEmpty
    else { return nil }
    return flow.request.waitOfNewIdentity
  }

  /// Drops the identities that are too new, because a forgotten factor is being replaced.
  func dropUnsettled(_ outcome: inout AccountOutcome, _ request: RequestContext) {
    let dropped = outcome.account.unsettledIdentities(request.generation.accounts, at: request.now)
    outcome.account.identifiers.removeAll { dropped.contains($0.identifier) }
    outcome.changes += dropped.map { .removeIdentifier(account: outcome.account.id, $0) }
  }
}

extension RequestContext {
  /// Until when an identity that is added now, without the authority of the account's owner, signs nobody in.
  var waitOfNewIdentity: Timestamp? {
    let delay = generation.accounts.recoveryDelay
    return delay > .zero ? now + delay : nil
  }
}

extension Account {
  /// Whether the identifier signs nobody in yet.
  func isWaiting(_ identifier: Identifier, at now: Timestamp) -> Bool {
    identifiers.contains { held in
      held.identifier == identifier && held.waitsUntil.map { now < $0 } ?? false
    }
  }

  /// The identities at other sites that are younger than `recovery_delay`, and every identifier that still waits. A
  /// reset, and signing out everywhere, drop them: somebody else who had access to the account may have added them.
  ///
  /// Attack: an identity that a thief has joined or connected still opens the account after its owner has reset the
  /// password and signed out everywhere.
  /// - Returns: nothing if the account would have no verified identifier left.
  func unsettledIdentities(_ rules: AccountRules, at now: Timestamp) -> [Identifier] {
    let verified = identifiers.filter { $0.verifiedAt != nil }
    let young = verified.filter { held in
      isWaiting(held.identifier, at: now)
        || held.identifier.kind == .federated && isTooNewUntil(held, rules, at: now) != nil
    }
    return young.count < verified.count ? young.map(\.identifier) : []
  }
}
