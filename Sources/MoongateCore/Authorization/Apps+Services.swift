import MoongateSDK

/// What a service gets for a user whose requests reach it by a route with `bearer`.
package enum ServiceAuthorization: Sendable {
  /// An access token (RFC 9068), which is valid until the time.
  case token(SecretText, until: Timestamp)
  /// The app's `require` or `decide` refuses the user.
  case refused(AppVerdict)
  case failed(AppFault)
}

extension Apps {
  /// An access token of an app for the user of a session, which the gateway itself sends to a service.
  ///
  /// The app's rules decide as at its authorization endpoint. The user is not asked, because the operator has named the
  /// app in the route. Nothing is stored: the token names its session in sealed form, and ends with it.
  package func serviceToken(of app: App, for session: SessionSnapshot, _ call: AppCall) async -> ServiceAuthorization {
    let verdict = verdict(app, session, call)
    guard verdict.isAllowed else {
      metrics.count(app.id, .refused)
      return .refused(verdict)
    }
    let now = clock.now()
    let end = min(now + app.lifetimes.accessToken, session.session.expiresAt)
    // Nothing that the service does may outlive the session.
    let scopes = app.permitted(app.scopes.sorted()).filter { $0 != AppScope.offline }
    do {
      let signIn = AppSignIn(nonce: nil, session, level: nil, self, call)
      let service = ServiceGrant(app, session, signIn)
      let grant = service.grant(id: try keys.sealed(service), signIn, scopes: scopes, (now, end))
      let claims = try claims(of: session, scopes: scopes, app, call)
      let issue = TokenIssue(refresh: nil, scopes: scopes, isFirst: true, latestEnd: end)
      let token = try await accessToken(of: grant, issue, claims, app, call)
      metrics.count(app.id, .issued)
      return .token(token, until: end)
    } catch let fault as PolicyFault {
      return .failed(.policy(fault))
    } catch {
      return .failed(.store(error as? StoreFault ?? StoreFault("a token could not be made: \(error)")))
    }
  }

  /// The grant of an access token: the stored one, or that of a service's token, with the account and the session as
  /// they are now.
  func liveGrant(of content: AccessTokenContent, at now: Timestamp) async throws(AppFault) -> LiveAppGrant? {
    guard let service = keys.serviceGrant(content.grant) else {
      return try await asking { () async throws(StoreFault) in try await store.appGrant(content.grant, at: now) }
    }
    let (account, session) = try await found(service.account, session: service.session, at: now)
    let grant = service.grant(
      id: content.grant, service.signIn(at: content.issuedAt), scopes: content.scopes,
      (content.issuedAt, content.expiresAt))
    return LiveAppGrant(grant: grant, account: account, session: session)
  }

  /// The account, and its session if it is live.
  func found(_ account: String, session: String, at now: Timestamp) async throws(AppFault) -> (Account?, Session?) {
    let known = try await asking { () async throws(StoreFault) in try await store.account(account) }
    let live = try await asking { () async throws(StoreFault) in
      try await store.sessions(of: account).first { $0.id == session }
    }
    return (known, live.flatMap { now < $0.deadline ? $0 : nil })
  }
}
