import MoongateSDK

/// What is issued for a grant.
struct TokenIssue {
  let refresh: SecretText?
  let scopes: [String]
  /// Whether these are the first tokens of the grant. Only they have the `nonce` of the request.
  let isFirst: Bool
  /// When the access token expires at the latest; nil: after the lifetime that the app has.
  var latestEnd: Timestamp?
}

extension Apps {
  /// `iss`.
  package func issuer(_ call: AppCall) -> String { call.generation.gateway.publicURL.description }

  /// The tokens of a grant.
  func tokens(of live: LiveAppGrant, _ issue: TokenIssue, _ app: App, _ call: AppCall) async throws(AppFault)
    -> AppTokens
  {
    let now = clock.now()
    var claims: [AppClaim] = []
    if let snapshot = live.snapshot {
      let user = call.judged(by: live.grant.signIn)
      do { claims = try self.claims(of: snapshot, scopes: issue.scopes, app, user) } catch { throw .policy(error) }
    }
    do {
      let access = try await accessToken(of: live.grant, issue, claims, app, call)
      var idToken: SecretText?
      if live.account != nil, issue.scopes.contains(AppScope.openID) {
        let signer = try await signing.signer(app.signing, at: now)
        let members = idTokenMembers(live.grant, issue, claims, app, call)
        let hash = JSONClaim.text(signer.algorithm.halfHash(of: access.reveal()))
        idToken = SecretText(try signer.sign(Self.json(members + [("at_hash", hash)] + Self.own(claims))))
      }
      return AppTokens(
        access: access, expiresIn: app.lifetimes.accessToken, refresh: issue.refresh, idToken: idToken,
        scopes: issue.scopes)
    } catch {
      throw .store(error as? StoreFault ?? StoreFault("a token could not be made: \(error)"))
    }
  }

  func accessToken(
    of grant: AppGrant, _ issue: TokenIssue, _ claims: [AppClaim], _ app: App, _ call: AppCall
  ) async throws -> SecretText {
    let now = clock.now()
    let ordinaryEnd = now + app.lifetimes.accessToken
    let end = issue.latestEnd.map { min($0, ordinaryEnd) } ?? ordinaryEnd
    guard case .jwt(let audience) = app.accessToken else {
      return try keys.accessToken(
        AccessTokenContent(grant: grant.id, issuedAt: now, expiresAt: end, scopes: issue.scopes))
    }
    // RFC 9068 section 2.2.
    var members: [(String, JSONClaim)] = [
      ("iss", .text(issuer(call))), ("sub", .text(subject(of: grant, app))),
      ("aud", audience.count == 1 ? .text(audience[0]) : .list(audience.map(JSONClaim.text))),
      ("client_id", .text(app.id)), ("iat", Self.number(now)), ("exp", Self.number(end)),
      ("jti", .text("\(grant.id).\(Base64URL.encode(random.bytes(9)))")),
      ("scope", .text(issue.scopes.joined(separator: " "))),
    ]
    if grant.account != nil { members += Self.signInMembers(grant) }
    members += claims.filter { $0.name == "groups" }.map { ($0.name, $0.value) }
    return SecretText(
      try await signing.signer(app.signing, at: now).sign(Self.json(members), type: JWTType.accessToken))
  }

  private func idTokenMembers(_ grant: AppGrant, _ issue: TokenIssue, _ claims: [AppClaim], _ app: App, _ call: AppCall)
    -> [(String, JSONClaim)]
  {
    let now = clock.now()
    var members: [(String, JSONClaim)] = [
      ("iss", .text(issuer(call))), ("sub", .text(subject(of: grant, app))), ("aud", .text(app.id)),
      ("azp", .text(app.id)), ("iat", Self.number(now)), ("exp", Self.number(now + app.lifetimes.idToken)),
    ]
    members += Self.signInMembers(grant)
    if issue.isFirst, let nonce = grant.signIn.nonce { members.append(("nonce", .text(nonce))) }
    if let sid = grant.sid { members.append(("sid", .text(sid))) }
    return members
  }

  private static func signInMembers(_ grant: AppGrant) -> [(String, JSONClaim)] {
    let known: [(String, JSONClaim)] = [
      ("auth_time", number(grant.signIn.authTime)), ("acr", .text(AppSignIn.acr(grant.signIn.aal))),
    ]
    // No value of RFC 8176 says that another site has authenticated the user.
    let amr = grant.signIn.amr
    return amr.isEmpty ? known : known + [("amr", .list(amr.map(JSONClaim.text)))]
  }

  private func subject(of grant: AppGrant, _ app: App) -> String {
    grant.account.map { app.subject(of: $0, keys: keys) } ?? app.id
  }

  /// The claims other than `sub`, which ID tokens state among their first.
  private static func own(_ claims: [AppClaim]) -> [(String, JSONClaim)] {
    claims.filter { $0.name != "sub" }.map { ($0.name, $0.value) }
  }

  static func number(_ moment: Timestamp) -> JSONClaim { .number(Double(moment.seconds)) }

  /// The JSON of an object, in the order of its members.
  static func json(_ members: [(String, JSONClaim)]) -> [UInt8] {
    var object = JSONObjectText()
    for (name, value) in members { object.add(name, value) }
    return object.closed
  }

  /// A logout token (OpenID Connect Back-Channel Logout 1.0 section 2.4). It never has a `nonce`, so that it cannot be
  /// taken for an ID token.
  func logoutToken(for notice: AppNotice, _ app: App, issuer: String) async throws -> String {
    let now = clock.now()
    var members: [(String, JSONClaim)] = [
      ("iss", .text(issuer)), ("sub", .text(app.subject(of: notice.account, keys: keys))), ("aud", .text(app.id)),
      ("iat", Self.number(now)), ("exp", Self.number(now + .seconds(120))),
      ("jti", .text(Base64URL.encode(random.bytes(16)))),
      ("events", .object(["http://schemas.openid.net/event/backchannel-logout": .object([:])])),
    ]
    if let sid = notice.sid { members.append(("sid", .text(sid))) }
    return try await signing.signer(app.signing, at: now).sign(Self.json(members), type: JWTType.logoutToken)
  }
}

/// The `typ` of our JWTs.
package enum JWTType {
  package static let idToken = "JWT"
  /// RFC 9068.
  package static let accessToken = "at+jwt"
  package static let logoutToken = "logout+jwt"
}
