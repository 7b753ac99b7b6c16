import MoongateSDK

/// What a route says of a request. How the client is told (a page, a problem document) is the data path's to say.
package enum RouteVerdict: Sendable, Hashable {
  case pass
  /// Nobody is signed in.
  case noSession
  case emailNotVerified
  /// The requester is in none of the required groups. No step leads out of this.
  case notInGroup(GroupRequirement)
  /// The provider is to be passed, or passed again.
  case needs(ProviderName)
  /// `decide` refused, with its reason.
  case denied(String)
  /// `decide` could not be run to its end.
  case failed(PolicyFault)
}

extension RouteVerdict {
  /// Whether the session does not do, for what it has passed or for what `decide` makes of it.
  package var isRefusal: Bool {
    switch self {
    case .pass, .noSession, .failed: false
    case .emailNotVerified, .notInGroup, .needs, .denied: true
    }
  }
}

extension Route {
  /// Judges a request: a live session first, then the groups, then the rest of `require`, then `decide`. The data path
  /// and the cases of tests/ both go by it.
  ///
  /// Groups come before steps: a person who is in none of them is not asked for a passcode first, only to be refused
  /// after it.
  /// - Parameters:
  ///   - session: alive at the moment.
  ///   - entitlements: of the session; a failure refuses every route that is not open to all, since services are told
  ///     the groups as well.
  ///   - decide: runs the function; asked only where all else holds.
  package func verdict(
    _ session: SessionSnapshot?, _ entitlements: Result<Entitlements, PolicyFault>, at now: Timestamp,
    decide ask: (_ function: FunctionName, _ session: SessionSnapshot, _ entitlements: Entitlements) -> Verdict
  ) -> RouteVerdict {
    if isOpen { return .pass }
    guard let session else { return .noSession }
    // Attack: a token on a route for people. The data path does not look it up there; this holds even if it did.
    if let token = session.token, tokens?.admits(token) != true { return .noSession }
    let known: Entitlements
    switch entitlements {
    case .success(let found): known = found
    case .failure(let fault): return .failed(fault)
    }
    if let groups, !groups.isMet(by: known) { return .notInGroup(groups) }
    if let requirement, let unmet = requirement.unmet(by: session, at: now) { return unmet }
    guard let decide else { return .pass }
    switch ask(decide, session, known) {
    case .allow: return .pass
    case .deny(let reason): return .denied(reason)
    // It holds until the session has passed that provider.
    case .requireAlso(let provider):
      return session.session.passed.contains { $0.provider == provider } ? .pass : .needs(provider)
    case .fault(let fault): return .failed(fault)
    }
  }

  /// The flow in which someone who is signed in passes what is missing.
  package var stepUpFlow: String { flow == "login" ? "step_up" : flow }
}

extension Requirement {
  fileprivate func unmet(by session: SessionSnapshot, at now: Timestamp) -> RouteVerdict? {
    switch self {
    case .emailVerified: return session.account.identifier(.email)?.verifiedAt != nil ? nil : .emailNotVerified
    case .passed(let provider, let within):
      guard let at = session.session.passed.last(where: { $0.provider == provider })?.at else {
        return .needs(provider)
      }
      // Half-open, as all times: passed at t and good for 5 minutes is good until just before t + 5 min.
      if let within, now >= at + within { return .needs(provider) }
      return nil
    }
  }
}

extension SessionSnapshot {
  /// What `decide` is told.
  package func facts(
    of request: RequestFacts, by client: ClientFacts, _ entitlements: Entitlements, at now: Timestamp,
    clockIsSuspect: Bool
  ) -> Facts {
    Facts(
      now: now, client: client, clockIsSuspect: clockIsSuspect, request: request,
      session: sessionFacts(at: now, entitlements))
  }
}
