import MoongateSDK

/// What an authorization needs next.
package enum AuthorizationStep: Sendable, Equatable {
  /// The user must sign in, or sign in again.
  case signIn
  /// The session must pass more. The verdict says what; it can be passed, or may be met later.
  case stepUp(AppVerdict)
  /// The user must agree to the scopes.
  case consent
  /// The app gets this error. The verdict is the reason, if `require` or `decide` is.
  case refuse(OAuthError, AppVerdict?)
  /// The code can be sent.
  case ready
}

extension Apps {
  /// Decides about a session: its groups, its steps, the number of its factors, then `decide`. The same code decides
  /// about routes (`AccessRule`).
  package func verdict(_ app: App, _ session: SessionSnapshot, _ call: AppCall) -> AppVerdict {
    // Attack: a personal access token in place of a session. It has proved nothing about its holder.
    if session.token != nil { return .judged(.noSession) }
    let now = clock.now()
    do {
      return try generations.withEvaluator(of: call.generation) { evaluator throws(PolicyFault) in
        let known = try call.generation.accounts.entitlements(of: session, in: call.generation) {
          () throws(PolicyFault) in evaluator
        }
        let required = AccessRule(groups: app.requirement.groups, steps: app.requirement.steps)
        let met = required.verdict(session, known, at: now) { _ in .allow }
        if met != .pass { return .judged(met) }
        if let factors = app.requirement.factors, Session.factorCount(of: session.session.counted) < factors {
          return .needsFactors(factors)
        }
        let facts = facts(of: session, known, call, at: now)
        return .judged(
          AccessRule(decide: app.decide).verdict(session, known, at: now) { evaluator.verdict(of: $0, given: facts) })
      }
    } catch {
      return .judged(.failed(error))
    }
  }

  /// The facts for `decide` and `claims` of an app: as for `decide` of a route that is asked for the authorization.
  func facts(of session: SessionSnapshot, _ known: Entitlements, _ call: AppCall, at now: Timestamp) -> Facts {
    let request = RequestFacts(
      method: "GET", host: call.generation.gateway.publicURL.host, path: App.requestPath, query: "")
    return session.facts(of: request, by: call.client, known, at: now, clockIsSuspect: clock.isSuspect)
  }

  /// What an authorization needs next. Everything is judged anew at each call.
  package func next(
    _ request: AuthorizationRequest, _ app: App, in session: SessionSnapshot?, _ call: AppCall
  ) async throws(StoreFault) -> AuthorizationStep {
    guard request.grant.client == app.id, call.generation.apps.registers(request.grant) else {
      return .refuse(OAuthError("unauthorized_client", "The app or its redirect URI is no longer registered."), nil)
    }
    guard app.isSatisfied(by: request.grant) else {
      return .refuse(OAuthError("invalid_request", "code_challenge is missing."), nil)
    }
    guard let session, session.isLive(at: clock.now()), !mustAuthenticate(request, session) else { return .signIn }
    // Attack: an app shows the ID token of one user, and gets the tokens of another one who uses the same browser.
    if let hinted = request.hintedSubject, hinted != app.subject(of: session.account.id, keys: keys) {
      return .refuse(OAuthError("login_required", "Somebody else is signed in."), nil)
    }
    let verdict = verdict(app, session, call)
    switch verdict {
    case .judged(.pass): break
    case .judged(.needs), .needsFactors, .judged(.emailNotVerified): return .stepUp(verdict)
    case .judged(.noSession): return .signIn
    case .judged(.notInGroup), .judged(.tooNew), .judged(.denied), .judged(.failed):
      return .refuse(OAuthError("access_denied", "The user may not sign in to this app."), verdict)
    }
    guard level(for: request, session) != nil else {
      return request.essentialACR.contains(AppSignIn.acr(2))
        ? .stepUp(.needsFactors(2))
        : .refuse(OAuthError("access_denied", "The requested acr cannot be reached."), nil)
    }
    return try await needsConsent(request, app, of: session.account.id) ? .consent : .ready
  }

  /// Whether the session is too old for the request.
  ///
  /// `prompt=login` and `select_account` ask for a sign-in that is later than the request. For `max_age`, a later step
  /// is enough. It meets every `max_age`, because `max_age=0` could not be met otherwise.
  ///
  /// Attack: a step-up in another tab, such as a PIN, passes for the sign-in that `prompt=login` asks for.
  package func mustAuthenticate(_ request: AuthorizationRequest, _ session: SessionSnapshot) -> Bool {
    if !request.prompt.isDisjoint(with: ["login", "select_account"]), session.session.createdAt < request.beganAt {
      return true
    }
    let at = session.session.authenticatedAt
    if at >= request.beganAt { return false }
    return request.maxAge.map { clock.now() >= at + .seconds($0) } ?? false
  }

  /// The assurance level that the tokens state: the session's, or a lower one that the request accepts.
  /// - Returns: nil if an essential `acr` is not reached.
  func level(for request: AuthorizationRequest, _ session: SessionSnapshot) -> Int? {
    let own = session.session.assuranceLevel
    if request.essentialACR.isEmpty { return own }
    return request.essentialACR.compactMap(AppSignIn.level).filter { $0 <= own }.max()
  }

  /// Whether a page must ask the user before the app gets a code.
  package func needsConsent(_ request: AuthorizationRequest, _ app: App, of account: String) async throws(StoreFault)
    -> Bool
  {
    if app.consent == .always || request.prompt.contains("consent") { return true }
    let scopes = app.permitted(request.grant.scopes)
    // Attack: an app that is never asked about gets tokens that survive every sign-out, and the user learns nothing of
    // it (OpenID Connect Core 1.0 section 11).
    let asked = app.consent == .once ? scopes : scopes.filter { $0 == AppScope.offline }
    if app.consent == .never, asked.isEmpty { return false }
    let known = try await store.appConnections(of: account).first { $0.app == app.id }
    guard let known, known.agreed else { return true }
    return !Set(asked).isSubset(of: known.scopes)
  }
}
