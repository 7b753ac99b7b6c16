import MoongateSDK

/// What an ID token of ours says about whom it was for (`id_token_hint`).
package struct IDTokenHint: Sendable {
  package let app: App
  /// `sub`.
  package let subject: String
  package let sid: String?
}

extension Apps {
  private static func invalidToken(_ description: String) -> AppFault {
    .oauth(OAuthError("invalid_token", description, status: 401))
  }

  /// Judges an access token (RFC 6750): its grant, account, session and `require`, as they are now.
  package func live(access token: String, _ call: AppCall) async throws(AppFault) -> AccessGranted {
    let now = clock.now()
    guard let content = await content(of: token, call), now < content.expiresAt else {
      throw Self.invalidToken("The access token is invalid or has expired.")
    }
    let live = try await liveGrant(of: content, at: now)
    // Attack: the token of an app that the operator has removed.
    guard let live, live.grant.isOpen(at: now), let app = call.generation.apps[live.grant.app] else {
      throw Self.invalidToken("The authorization has ended.")
    }
    try demandLive(live, app, call, asking: Self.invalidToken)
    return AccessGranted(
      live: live, app: app, scopes: app.permitted(content.scopes), issuedAt: content.issuedAt,
      expiresAt: min(content.expiresAt, live.grant.expiresAt))
  }

  /// Judges the current refresh token of an app, for introspection (RFC 7662). It stays valid.
  /// - Returns: nil if it is not valid, or another app's.
  package func live(refresh token: String, by app: App, _ call: AppCall) async throws(AppFault) -> LiveAppGrant? {
    let now = clock.now()
    guard let given = RefreshToken(token) else { return nil }
    let found = try await asking { () async throws(StoreFault) in
      try await store.appGrant(refresh: given.hash, at: now)
    }
    guard let found, found.grant.app == app.id, found.grant.refresh == given.hash, found.grant.isOpen(at: now) else {
      return nil
    }
    do { try demandLive(found, app, call, asking: Self.invalid) } catch {
      if case .oauth = error { return nil }
      throw error
    }
    return found
  }

  /// What an access token says, if it is ours.
  private func content(of token: String, _ call: AppCall) async -> AccessTokenContent? {
    if let content = keys.accessTokenContent(token) { return content }
    guard let claims = await signing.verify(token, type: JWTType.accessToken, at: clock.now()),
      claims["iss"]?.text == issuer(call), let grant = claims["jti"]?.text?.split(separator: ".").first,
      let issuedAt = claims["iat"]?.number, let end = claims["exp"]?.number, let scope = claims["scope"]?.text
    else { return nil }
    return AccessTokenContent(
      grant: String(grant), issuedAt: Timestamp(milliseconds: Int64(issuedAt) * 1000),
      expiresAt: Timestamp(milliseconds: Int64(end) * 1000), scopes: scope.split(separator: " ").map(String.init))
  }

  /// Ends the authorization that a token belongs to (RFC 7009). The answer never tells whether there was one.
  package func revoke(_ token: String, by app: App, _ call: AppCall) async throws(AppFault) {
    let now = clock.now()
    let refresh = RefreshToken(token)
    let access = refresh == nil ? await content(of: token, call) : nil
    let found = try await asking { () async throws(StoreFault) -> LiveAppGrant? in
      if let refresh { return try await store.appGrant(refresh: refresh.hash, at: now) }
      guard let access else { return nil }
      return try await store.appGrant(access.grant, at: now)
    }
    // Attack: an app revokes the tokens of another one.
    guard let grant = found?.grant, grant.app == app.id, grant.isOpen(at: now) else { return }
    try await end(grant.id, of: grant.account, "revoked_by_app", app.id, call)
  }

  /// Reads an `id_token_hint`, expired or not.
  ///
  /// Attack: a forged hint, an access token or a logout token in place of one, or an assertion that a service received.
  /// - Returns: nil if it is not an ID token of ours for an app that still exists.
  package func hint(_ idToken: String, _ call: AppCall) async -> IDTokenHint? {
    guard let claims = await signing.verify(idToken, type: JWTType.idToken, at: clock.now()),
      claims["iss"]?.text == issuer(call), let subject = claims["sub"]?.text,
      let app = claims["aud"]?.text.flatMap({ call.generation.apps[$0] })
    else { return nil }
    return IDTokenHint(app: app, subject: subject, sid: claims["sid"]?.text)
  }
}
