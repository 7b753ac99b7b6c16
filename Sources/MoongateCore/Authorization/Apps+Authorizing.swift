import MoongateSDK

extension Apps {
  /// How long a code can be redeemed.
  static let codeLifetime = GrantCode.lifetime

  /// Issues the code of an authorization.
  /// - Parameter agreed: whether the user has just agreed, on a page of the same browser.
  /// - Throws: `AppFault.oauth` if `next` demands anything else.
  package func authorize(
    _ request: AuthorizationRequest, _ app: App, in session: SessionSnapshot, agreed: Bool, _ call: AppCall
  ) async throws(AppFault) -> SecretText {
    switch try await asking({ () async throws(StoreFault) in try await next(request, app, in: session, call) }) {
    case .ready: break
    case .consent: if !agreed { throw .oauth(OAuthError("consent_required", "The user has not agreed.")) }
    case .signIn: throw .oauth(OAuthError("login_required", "The user must sign in."))
    case .stepUp: throw .oauth(OAuthError("interaction_required", "The user must pass another step."))
    case .refuse(let error, _): throw .oauth(error)
    }
    let now = clock.now()
    let signIn = AppSignIn(nonce: request.nonce, session, level: level(for: request, session), self, call)
    let scopes = app.permitted(request.grant.scopes)
    // Before the code, which must not be older than the connection.
    let (connecting, since) = try await connecting(app, scopes, of: session.account.id, agreed: agreed, call)
    let code = code(for: request.grant, signIn, session, since: since, lifetime: Self.codeLifetime)
    let text: SecretText
    do { text = try keys.code(code) } catch { throw .store(StoreFault("a code could not be sealed")) }
    try await apply(
      [.requireEpoch(AccountVersion(session.account))] + connecting
        + [
          .audit(
            event(
              .appAuthorized, app.id, session.account.id, call,
              ["grant": code.grantID, "scopes": scopes.joined(separator: " "), "session": session.session.id]))
        ], at: now)
    return text
  }

  /// - Parameter since: the time of the connection, by the clock of the gateway that made it. The code is not older.
  func code(
    for grant: Grant, _ signIn: AppSignIn, _ session: SessionSnapshot, since: Timestamp, lifetime: Duration
  ) -> AuthorizationCode {
    let now = clock.now()
    return AuthorizationCode(
      grant: grant, grantID: AppGrant.newID(random), account: session.account.id, epoch: session.account.epoch,
      session: session.session.id, signIn: signIn, issuedAt: max(now, since), expiresAt: now + lifetime)
  }

  /// The changes that connect the app to the account, and the time since when they are connected.
  ///
  /// Attack: the user disconnects the app meanwhile, and the old time comes back with the connection, so that a code
  /// from before can be redeemed. A stored connection keeps its time; a new one has the present.
  func connecting(_ app: App, _ scopes: [String], of account: String, agreed: Bool, _ call: AppCall)
    async throws(AppFault) -> (changes: [Change], since: Timestamp)
  {
    let now = clock.now()
    let known = try await asking { () async throws(StoreFault) in
      try await store.appConnections(of: account).first { $0.app == app.id }
    }
    // What the user has agreed to is never extended without being asked.
    var listed = agreed || known?.agreed != true ? scopes : []
    if let known, known.agreed || !agreed { listed = known.scopes + listed.filter { !known.scopes.contains($0) } }
    let connection = AppConnection(
      account: account, app: app.id, scopes: listed, createdAt: now, usedAt: now,
      agreed: agreed || known?.agreed ?? false)
    let since = known?.createdAt ?? now
    guard agreed else { return ([.putAppConnection(connection)], since) }
    let event = event(.appConsented, app.id, account, call, ["scopes": scopes.joined(separator: " ")])
    return ([.putAppConnection(connection), .audit(event)], since)
  }

  /// Marks a pushed request as used.
  /// - Returns: false if it was used before.
  package func spend(pushed request: AuthorizationRequest) async throws(StoreFault) -> Bool {
    // Remembered longer than it is valid, because another gateway's clock may be behind.
    let until = request.beganAt + AuthorizationRequest.pushedLifetime + .seconds(60)
    return try await store.apply([.spendCode(request.spent, until: until)], at: clock.now())
      != .conflict(.codeSpent)
  }

  /// Writes that an app's `require` or `decide` refused a user.
  /// - Returns: the ID under which `moongate policy explain` finds it.
  @discardableResult
  package func refused(_ app: App, _ verdict: AppVerdict, account: String?, _ call: AppCall) -> DecisionID {
    let rule = app.rule(of: verdict)
    var detail = ["reason": verdict.reason, "rule": rule.name]
    detail["at"] = rule.location?.description
    if case .judged(.failed(let fault)) = verdict { detail["fault"] = fault.description }
    metrics.count(app.id, .refused)
    return audit.record(event(.appRefused, app.id, account, call, detail))
  }

  // MARK: Shared

  /// An audit event about an app. It has the ID of the call's decision in its detail.
  func event(
    _ kind: AuditEvent.Kind, _ app: String, _ account: String?, _ call: AppCall, _ detail: [String: String] = [:]
  ) -> AuditEvent {
    AuditEvent(
      id: DecisionID(from: random), at: clock.now(), kind: kind, account: account,
      address: call.client.address.description,
      detail: ["app": app, "request": call.decision.text].merging(detail) { $1 })
  }

  /// Runs a store operation and converts its error.
  func asking<Answer>(_ body: () async throws(StoreFault) -> Answer) async throws(AppFault) -> Answer {
    do { return try await body() } catch { throw .store(error) }
  }

  /// Applies changes that must not conflict.
  func apply(_ changes: [Change], at now: Timestamp) async throws(AppFault) {
    let result = try await asking { () async throws(StoreFault) in try await store.apply(changes, at: now) }
    guard case .conflict = result else { return }
    throw .oauth(OAuthError("access_denied", "The account or the session has changed."))
  }
}

extension AppVerdict {
  /// In a word, for operators.
  package var reason: String {
    switch self {
    case .needsFactors: "needs_factors"
    case .judged(.pass): "pass"
    case .judged(.noSession): "no_session"
    case .judged(.emailNotVerified): "email_not_verified"
    case .judged(.notInGroup): "not_in_group"
    case .judged(.needs(let provider)): "needs_\(provider)"
    case .judged(.tooNew(let provider, _)): "too_new_\(provider)"
    case .judged(.denied(let reason)): reason
    case .judged(.failed): "policy_error"
    }
  }
}

extension App {
  /// The rule that a verdict comes from, as in apps.lua, and its place.
  package func rule(of verdict: AppVerdict) -> (name: String, location: SourceLocation?) {
    switch verdict {
    case .judged(.denied), .judged(.failed):
      (decide?.path ?? "\(id).require", locations["decide"] ?? locations["require"] ?? locations[""])
    case .judged, .needsFactors: ("\(id).require", locations["require"] ?? locations[""])
    }
  }
}

extension AppSignIn {
  /// What tokens say of the session.
  /// - Parameter level: nil: the session's.
  init(nonce: String?, _ session: SessionSnapshot, level: Int?, _ apps: Apps, _ call: AppCall) {
    let counted = session.session.counted
    // The last step of each provider is all that `require` reads. Identifiers are left out.
    let last = counted.latest.sorted { ($0.value, $0.key) < ($1.value, $1.key) }.map { provider, at in
      PassedStep(
        provider: provider, at: at,
        isMultiFactor: counted.contains { $0.provider == provider && $0.isMultiFactor ?? false })
    }
    self.init(
      nonce: nonce, authTime: session.session.authenticatedAt, aal: level ?? session.session.assuranceLevel,
      amr: apps.methods(of: last, call), passed: last)
    address = call.client.address.bytes
    userAgent = call.client.userAgent.map {
      String(String.UnicodeScalarView($0.unicodeScalars.prefix(Self.longestUserAgent)))
    }
  }
}
