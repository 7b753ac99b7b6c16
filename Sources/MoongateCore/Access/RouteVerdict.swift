import MoongateSDK

/// The decision of a route about a request. The data path decides how the client is told (page or problem document).
package enum RouteVerdict: Sendable, Hashable {
  case pass
  /// The request has no live session.
  case noSession
  case emailNotVerified
  /// The requester is in none of the required groups. No step can change that.
  case notInGroup(GroupRequirement)
  /// The provider must be passed, or passed again.
  case needs(ProviderName)
  /// The provider was passed by an identifier or a factor that is too new. It can be passed again from this time on.
  case tooNew(ProviderName, until: Timestamp)
  /// `decide` refused, with this reason.
  case denied(String)
  /// `decide` failed.
  case failed(PolicyFault)
}

extension RouteVerdict {
  /// Whether the route refuses this session because of what it has passed or because of `decide`.
  package var isRefusal: Bool {
    switch self {
    case .pass, .noSession, .failed: false
    case .emailNotVerified, .notInGroup, .needs, .tooNew, .denied: true
    }
  }
}

/// What a route or an app asks of a live session.
package struct AccessRule: Sendable {
  package let groups: GroupRequirement?
  package let steps: [Requirement]
  package let decide: FunctionName?

  package init(groups: GroupRequirement? = nil, steps: [Requirement] = [], decide: FunctionName? = nil) {
    self.groups = groups
    self.steps = steps
    self.decide = decide
  }

  /// Checks the groups, then the steps, then `decide`.
  ///
  /// Groups are checked before steps, so that a user who is in none of them is not asked for a passcode before being
  /// refused.
  /// - Parameter ask: runs the function. Called only if all other checks pass.
  package func verdict(
    _ session: SessionSnapshot, _ entitlements: Entitlements, at now: Timestamp, decide ask: (FunctionName) -> Verdict
  ) -> RouteVerdict {
    if let groups, !groups.isMet(by: entitlements) { return .notInGroup(groups) }
    for step in steps { if let unmet = step.unmet(by: session, at: now) { return unmet } }
    guard let decide else { return .pass }
    switch ask(decide) {
    case .allow: return .pass
    case .deny(let reason): return .denied(reason)
    // Required until the session has passed that provider.
    case .requireAlso(let provider):
      let isPassed = session.session.counted.contains { $0.provider == provider }
      return isPassed ? .pass : session.session.unmet(provider, at: now)
    case .fault(let fault): return .failed(fault)
    }
  }
}

extension Route {
  /// Decides about a request. Checks a live session first, then its `AccessRule`. Used by the data path and by the
  /// cases in tests/.
  /// - Parameters:
  ///   - session: a live session, if any.
  ///   - entitlements: the session's entitlements. A failure refuses every route that is not open, because services
  ///     receive the groups as well.
  ///   - decide: runs the function. Called only if all other checks pass.
  package func verdict(
    _ session: SessionSnapshot?, _ entitlements: Result<Entitlements, PolicyFault>, at now: Timestamp,
    decide ask: (_ function: FunctionName, _ session: SessionSnapshot, _ entitlements: Entitlements) -> Verdict
  ) -> RouteVerdict {
    if isOpen { return .pass }
    guard let session else { return .noSession }
    // Attack: a token on a route for users. The data path does not look tokens up there; this check holds even if it
    // did.
    if let token = session.token, tokens?.admits(token) != true { return .noSession }
    let known: Entitlements
    switch entitlements {
    case .success(let found): known = found
    case .failure(let fault): return .failed(fault)
    }
    let rule = AccessRule(groups: groups, steps: requirement.map { [$0] } ?? [], decide: decide)
    return rule.verdict(session, known, at: now) { ask($0, session, known) }
  }

  /// The flow in which a signed-in user passes what is missing.
  package var stepUpFlow: String { flow == FlowPurpose.signIn.usualName ? FlowPurpose.stepUp.usualName : flow }
}

extension Requirement {
  fileprivate func unmet(by session: SessionSnapshot, at now: Timestamp) -> RouteVerdict? {
    switch self {
    case .emailVerified: return session.account.identifier(.email)?.verifiedAt != nil ? nil : .emailNotVerified
    case .passed(let provider, let within):
      guard let at = session.session.counted.last(where: { $0.provider == provider })?.at else {
        return session.session.unmet(provider, at: now)
      }
      // Half-open, as all times: a step passed at t and valid for 5 minutes is valid until just before t + 5 min.
      if let within, now >= at + within { return .needs(provider) }
      return nil
    }
  }
}

extension Session {
  /// Why a provider that does not count is not passed. Passing it again would not help while it is too new.
  fileprivate func unmet(_ provider: ProviderName, at now: Timestamp) -> RouteVerdict {
    guard let until = passed.last(where: { $0.provider == provider })?.tooNewUntil, now < until else {
      return .needs(provider)
    }
    return .tooNew(provider, until: until)
  }
}

extension SessionSnapshot {
  /// The facts for `decide`.
  package func facts(
    of request: RequestFacts, by client: ClientFacts, _ entitlements: Entitlements, at now: Timestamp,
    clockIsSuspect: Bool
  ) -> Facts {
    sessionFacts(at: now, entitlements).facts(of: request, by: client, at: now, clockIsSuspect: clockIsSuspect)
  }
}

extension SessionFacts {
  /// The facts for `decide`.
  package func facts(of request: RequestFacts, by client: ClientFacts, at now: Timestamp, clockIsSuspect: Bool) -> Facts
  {
    Facts(now: now, client: client, clockIsSuspect: clockIsSuspect, request: request, session: self)
  }
}
