import MoongateSDK

extension Apps {
  /// How long a refresh token that was replaced gives the same answer again, for an app that lost the first one.
  private static let repetition: Duration = .seconds(10)

  /// Redeems an authorization code (RFC 6749 section 4.1.3). The app has already proved who it is.
  ///
  /// Whoever cannot prove that the code is theirs spends nothing: the app that it belongs to can still redeem it. A
  /// second use by its own app ends what the first one got.
  package func redeem(_ code: String, verifier: String?, redirect: String?, by app: App, _ call: AppCall)
    async throws(AppFault) -> AppTokens
  {
    try demand(.authorizationCode, of: app)
    // Attack: a code for another app, be it stolen or the attacker's own.
    guard let opened = keys.authorizationCode(code), opened.grant.client == app.id, clock.now() < opened.expiresAt,
      let redirect, constantTimeEquals(redirect, opened.grant.redirect), opened.grant.isProved(by: verifier)
    else { throw try await wrong("The code is invalid, expired, or for another request.", app, call) }
    // Attack: the operator has removed the redirect URI since, because somebody else reads there.
    guard call.generation.apps.registers(opened.grant) else { throw Self.invalid("The redirect URI was removed.") }
    guard app.isSatisfied(by: opened.grant) else { throw Self.invalid("The app needs PKCE now.") }
    let spending = Change.spendCode(opened.spent, until: opened.expiresAt + .seconds(60))
    do { return try await take(opened, spending, app, call) } catch {
      // Attack: a code that was refused for a reason that goes away, such as a missing group, is used again.
      guard case .oauth = error else { throw error }
      if try await asking({ () async throws(StoreFault) in try await store.apply([spending], at: clock.now()) })
        == .conflict(.codeSpent)
      {
        try await end(opened.grantID, of: opened.account, "code_reuse", app.id, call)
      }
      throw error
    }
  }

  /// Stores the grant of a code, and makes its first tokens.
  /// - Parameter spending: marks the code as used. It conflicts if it was used before.
  func take(_ code: AuthorizationCode, _ spending: Change, _ app: App, _ call: AppCall) async throws(AppFault)
    -> AppTokens
  {
    let now = clock.now()
    let (account, session) = try await found(code.account, session: code.session, at: now)
    let scopes = app.permitted(code.grant.scopes)
    let refresh = app.grants.contains(.refreshToken) ? RefreshToken(of: code.grantID, keys, random) : nil
    let lifetime = refresh == nil ? app.lifetimes.accessToken : app.lifetimes.refreshToken
    let grant = AppGrant(
      id: code.grantID, app: app.id, account: code.account, session: code.session,
      sid: app.sessionName(code.session, keys: keys), epoch: code.epoch, isOffline: scopes.contains(AppScope.offline),
      scopes: scopes, signIn: code.signIn, createdAt: code.issuedAt, usedAt: now, refresh: refresh?.hash,
      expiresAt: now + lifetime)
    let live = LiveAppGrant(grant: grant, account: account, session: session)
    // Attack: a sign-out between the authorization and the redemption, also of an authorization for offline access.
    guard live.session != nil else { throw Self.invalid("The session has ended.") }
    try demandLive(live, app, call)
    let issue = TokenIssue(refresh: refresh?.text, scopes: scopes, isFirst: true)
    let tokens = try await tokens(of: live, issue, app, call)
    let changes = [
      spending, .requireEpoch(AccountVersion(id: code.account, epoch: code.epoch)), .putAppGrant(grant),
    ]
    switch try await asking({ () async throws(StoreFault) in try await store.apply(changes, at: now) }) {
    case .applied: break
    case .conflict(.codeSpent): throw Self.invalid("The code was used before.")
    case .conflict: throw Self.invalid("The session or the connection has ended.")
    }
    metrics.count(app.id, .issued)
    return tokens
  }

  /// Exchanges a refresh token (RFC 6749 section 6). It is replaced each time (RFC 9700 section 4.14.2).
  /// - Parameter scopes: nil: those of the authorization.
  package func refresh(_ token: String, scopes: [String]?, by app: App, _ call: AppCall) async throws(AppFault)
    -> AppTokens
  {
    try demand(.refreshToken, of: app)
    guard let given = RefreshToken(token) else { throw try await wrong("The refresh token is invalid.", app, call) }
    // A second round if another request of the app has replaced the token meanwhile.
    for _ in 0..<2 {
      if let tokens = try await refresh(given, scopes, app, call) { return tokens }
    }
    throw Self.invalid("The refresh token was used before.")
  }

  /// - Returns: nil if another request has replaced the token meanwhile.
  private func refresh(_ given: RefreshToken, _ scopes: [String]?, _ app: App, _ call: AppCall) async throws(AppFault)
    -> AppTokens?
  {
    let now = clock.now()
    let live = try await asking { () async throws(StoreFault) in
      try await store.appGrant(refresh: given.hash, at: now)
    }
    // Attack: another app that has stolen the token. It gets nothing, and cannot end the authorization either.
    guard let live, live.grant.app == app.id else {
      if live == nil { try await endReused(given, app, call) }
      throw try await wrong("The refresh token is invalid.", app, call)
    }
    let grant = live.grant
    guard grant.isOpen(at: now) else { throw Self.invalid("The authorization has ended.") }
    let isCurrent = grant.refresh == given.hash
    if !isCurrent, grant.refreshedAt.map({ now >= $0 + Self.repetition }) ?? true {
      try await end(grant.id, of: grant.account, "refresh_reuse", app.id, call)
      throw try await wrong("The refresh token was used before.", app, call)
    }
    let granted = try narrowed(grant, to: scopes, app)
    try demandLive(live, app, call)
    let followers = given.followers(keys)
    guard let next = isCurrent ? followers[0] : followers.first(where: { $0.hash == grant.refresh }) else {
      throw Self.invalid("The refresh token was used before.")
    }
    let tokens = try await tokens(of: live, TokenIssue(refresh: next.text, scopes: granted, isFirst: false), app, call)
    guard isCurrent else { return tokens }
    var changes: [Change] = []
    if let account = grant.account { changes = [.requireEpoch(AccountVersion(id: account, epoch: grant.epoch))] }
    changes += [
      .rotateAppGrant(
        grant.id, from: given.hash, to: next.hash, usedAt: now, expiresAt: now + app.lifetimes.refreshToken),
      .audit(event(.appRefreshed, app.id, grant.account, call, ["grant": grant.id])),
    ]
    switch try await asking({ () async throws(StoreFault) in try await store.apply(changes, at: now) }) {
    case .applied: break
    case .conflict(.appGrantChanged): return nil
    case .conflict: throw Self.invalid("The authorization has ended.")
    }
    metrics.count(app.id, .refreshed)
    return tokens
  }

  /// The scopes of a refresh.
  ///
  /// Attack: an app asks at a refresh for a scope that the user has not agreed to.
  private func narrowed(_ grant: AppGrant, to scopes: [String]?, _ app: App) throws(AppFault) -> [String] {
    let granted = app.permitted(grant.scopes)
    guard let scopes else { return granted }
    guard Set(scopes).isSubset(of: granted) else {
      throw .oauth(OAuthError("invalid_scope", "A scope goes beyond the authorization."))
    }
    return granted.filter(scopes.contains)
  }

  /// Ends the grant of a token that was replaced before the previous one.
  ///
  /// Attack: a thief uses a stolen token after its owner has refreshed twice. One of both is the thief, so both lose
  /// the tokens.
  private func endReused(_ given: RefreshToken, _ app: App, _ call: AppCall) async throws(AppFault) {
    guard given.isGenuine(keys) else { return }
    let live = try await asking { () async throws(StoreFault) in
      try await store.appGrant(given.grant, at: clock.now())
    }
    guard let live, live.grant.app == app.id, live.grant.isOpen(at: clock.now()) else { return }
    try await end(given.grant, of: live.grant.account, "refresh_reuse", app.id, call)
  }

  /// Gives an app tokens of its own (`client_credentials`, RFC 6749 section 4.4).
  package func issue(to app: App, scopes: [String]?, _ call: AppCall) async throws(AppFault) -> AppTokens {
    try demand(.clientCredentials, of: app)
    guard app.authentication != .none else {
      throw .oauth(OAuthError("unauthorized_client", "A public app has no tokens of its own."))
    }
    let now = clock.now()
    // The standard scopes are about a user.
    let own = app.scopes.filter { !AppScope.aboutUsers.contains($0) }.sorted()
    guard Set(scopes ?? []).isSubset(of: own) else {
      throw .oauth(OAuthError("invalid_scope", "A scope is unknown, or about a user."))
    }
    let granted = scopes.map { wanted in own.filter(wanted.contains) } ?? own
    let grant = AppGrant(
      id: AppGrant.newID(random), app: app.id, account: nil, session: nil, sid: nil, epoch: 0, isOffline: false,
      scopes: granted, signIn: AppSignIn(nonce: nil, authTime: now, aal: 1, amr: [], passed: []), createdAt: now,
      usedAt: now, refresh: nil, expiresAt: now + app.lifetimes.accessToken)
    let live = LiveAppGrant(grant: grant, account: nil, session: nil)
    let tokens = try await tokens(of: live, TokenIssue(refresh: nil, scopes: granted, isFirst: true), app, call)
    try await apply([.putAppGrant(grant)], at: now)
    metrics.count(app.id, .issued)
    return tokens
  }

  // MARK: Shared

  func demand(_ type: GrantType, of app: App) throws(AppFault) {
    guard app.grants.contains(type) else {
      throw .oauth(OAuthError("unauthorized_client", "The app may not use this grant type."))
    }
  }

  static func invalid(_ description: String) -> AppFault { .oauth(OAuthError("invalid_grant", description)) }

  /// Refuses a wrong code or token.
  ///
  /// Attack: someone opens the app's redirect URI with made-up codes, which the app's server redeems, until the server
  /// itself is refused. A code cannot be guessed, so only those that public apps send from their users' devices count.
  func wrong(_ description: String, _ app: App, _ call: AppCall) async throws(AppFault) -> AppFault {
    metrics.count(app.id, .refused)
    if app.authentication == .none {
      _ = try await asking { () async throws(StoreFault) in
        try await limiter.charge(call.client.address, client: app.id)
      }
    }
    return Self.invalid(description)
  }

  /// Ends a grant, and writes why.
  func end(_ grant: String, of account: String?, _ reason: String, _ app: String, _ call: AppCall)
    async throws(AppFault)
  {
    metrics.count(app, .revoked)
    let event = event(.appRevoked, app, account, call, ["grant": grant, "reason": reason])
    try await apply([.endAppGrant(grant), .audit(event)], at: clock.now())
  }

  /// Refuses a grant whose account or session no longer permits it, or whose rule is not met any more.
  ///
  /// Attack: an app asks for the claims of a refused user again and again, until the audit trail holds nothing else.
  /// What only asks (userinfo, introspection) writes nothing.
  /// - Parameter refusal: what the app gets; nil: `invalid_grant`, and a refusal by the app's rule is written.
  func demandLive(
    _ live: LiveAppGrant, _ app: App, _ call: AppCall, asking refusal: ((_ description: String) -> AppFault)? = nil
  ) throws(AppFault) {
    let error = refusal ?? Self.invalid
    let grant = live.grant
    guard grant.account != nil else {
      guard app.grants.contains(.clientCredentials) else { throw error("The app has no tokens of its own.") }
      return
    }
    guard let account = live.account, !account.isLocked, account.epoch == grant.epoch, let snapshot = live.snapshot
    else { throw error("The account has changed or is locked.") }
    let isOffline = grant.isOffline && app.permitted(grant.scopes).contains(AppScope.offline)
    guard live.session != nil || isOffline else { throw error("The session has ended.") }
    let verdict = verdict(app, snapshot, call.judged(by: grant.signIn))
    guard verdict.isAllowed else {
      if refusal == nil { refused(app, verdict, account: account.id, call) }
      throw error("The user may no longer use the app.")
    }
  }
}

extension AppGrant {
  /// Whether neither the app, the user nor time has ended it.
  func isOpen(at now: Timestamp) -> Bool { endedAt == nil && now < expiresAt }
}
