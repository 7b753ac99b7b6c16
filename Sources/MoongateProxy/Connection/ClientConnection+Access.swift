import MoongateCore
import NIOCore

/// The side effects of access decisions, for proxied requests and forward-auth.
extension ClientConnection {
  /// Records a decision: the route for the metrics and for a 401, the request for a shadow policy, and an ignored
  /// policy error for the log.
  func record(_ decision: AccessDecision, of request: AccessRequest) {
    if let route = decision.route {
      state.exchange.metricsIndex = route.metricsIndex
      state.exchange.takesTokens = route.rule.tokens != nil
      if let style = route.refusalStyle { state.exchange.refusalStyle = style }
    }
    if case .needsLookup = decision.outcome { return }
    switch decision.shadow {
    case .hidden: break
    case .anonymous: copyToShadow(request, nil)
    case .session(let session): copyToShadow(request, session)
    }
    if let ignored = decision.ignored {
      loop.shared.dependencies.policyFaults.report(ignored.fault, rule: ignored.rule, decision: nil)
    }
  }

  /// Records that the session or token of an allowed request was used.
  func recordUse(of grant: AccessGrant, _ request: AccessRequest, _ now: Timestamp) {
    guard let session = grant.session else { return }
    guard let token = session.snapshot.token else {
      return loop.sessions.used(session, from: request.origin.address, now: now)
    }
    loop.tokens.used(session, token, from: grant.tokenAddress ?? peer, now: now)
  }

  /// Asks the store or `Apps`, and handles the head again with the answer.
  func look(up lookup: CredentialLookup, for head: RequestHead) {
    state.beginLookup(for: head, at: loop.now)
    let asked = state.serial
    let resume: (SessionCache.LookupResult) -> Void = { found in
      guard self.state.serial == asked, case .looking(let head) = self.state.phase else { return }
      self.receive(head, found: found)
      self.process()
    }
    switch lookup {
    case .session(let key): loop.sessions.ask(key, by: loop.lookup(of: key), resume)
    case .token(let key, let secret, let address):
      loop.tokens.cache.ask(key, by: loop.tokens.lookup(of: secret, from: address), resume)
    case .bearer(let session, let question):
      state.exchange.isRateCounted = true
      loop.bearers.ask(question, for: session, resume)
    }
  }

  /// Copies the request for a shadow policy (`moongate policy shadow`), if one is active.
  ///
  /// Without a shadow policy, this costs one check of a flag. With one, the request never waits: copies beyond the
  /// queue's bound are dropped.
  /// - Parameter session: the live session; nil for an anonymous request.
  private func copyToShadow(_ request: AccessRequest, _ session: CachedSession?) {
    guard let shadow = loop.shared.dependencies.shadow, shadow.isOn, shadow.hasRoom() else { return }
    // The refusal and the access log use the same ID, so that the operator can find the request of a difference.
    let decision = DecisionID(from: loop.shared.dependencies.random)
    state.exchange.decision = decision
    shadow.take(
      ObservedRequest(
        facts: request.facts, address: request.origin.address, userAgent: request.head.userAgent,
        session: session?.snapshot),
      decision,
      at: loop.time(at: loop.now).now)
  }
}
