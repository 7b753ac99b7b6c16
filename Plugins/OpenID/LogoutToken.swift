import MoongateSDK

// Signing out at the issuer, in both directions.

/// The issuer says that a user has signed out there (OpenID Connect Back-Channel Logout 1.0): a POST of a signed token
/// to `/auth/hook/NAME`.
extension OpenID: WebhookReceiver {
  public func receive(_ webhook: WebhookRequest, with tools: StepTools) async throws -> WebhookAnswer {
    guard let fields = PercentEncoding.fields(in: webhook.body), let text = fields["logout_token"] else {
      return .refused(.malformed)
    }
    do {
      let client = try Client(tools.settings, entry)
      let token = try await verified(text, client, tools)
      // A token that was refused by our own fault must be accepted when the issuer sends it again, so it counts as used
      // only after the sessions have ended.
      guard try await tools.store.value(for: token.key) == nil else { throw AnswerRefusal(.jti, "used before") }
      let count =
        switch token.ended {
        case .user(let value, let session):
          try await tools.sessions.end(
            of: Identifier(kind: .federated, value: value, display: value), siteSession: session)
        case .session(let session): try await tools.sessions.end(siteSession: session)
        }
      try await tools.store.set([1], for: token.key, expiresIn: .seconds(LogoutToken.memory))
      tools.log.info("the issuer has signed a user out", ["sessions": "\(count)"])
      return .accepted()
    } catch let refusal as AnswerRefusal {
      tools.log.refusal("logout token: \(refusal.text)")
      return .refused(.malformed)
    }
  }

  private func verified(_ text: String, _ client: Client, _ tools: StepTools) async throws -> LogoutToken {
    let token = try IDToken(text, algorithms: client.algorithms, atMost: IDToken.longest)
    let now = tools.clock.now
    guard let key = try await directory.key(token, of: client.issuer, by: tools.web, at: now) else {
      throw AnswerRefusal(.kid, token.keyID ?? "missing")
    }
    let metadata = try await directory.metadata(of: client.issuer, by: tools.web, at: now)
    return try LogoutToken(try await token.members(signedBy: key), client, metadata, now: now)
  }
}

extension OpenID: SignOutLeading {
  /// The issuer's address for signing out (OpenID Connect RP-Initiated Logout 1.0 section 2). The issuer knows the user
  /// by its own cookie, and asks before it signs out.
  public func signOutAddress(returningTo address: String, with tools: StepTools) async throws -> String? {
    guard entry != .oauth, tools.settings.text("sign_out") == SignOutRule.there.rawValue else { return nil }
    let client = try Client(tools.settings, entry)
    let metadata = try await directory.metadata(of: client.issuer, by: tools.web, at: tools.clock.now)
    guard let end = metadata.endSession else { return nil }
    return end + (end.contains("?") ? "&" : "?")
      + PercentEncoding.form([("client_id", client.id), ("post_logout_redirect_uri", address)])
  }
}

extension OpenID: SignOutEmbedding {
  public func embeddedSignOut(issuer: String, session: String, settings: StepSettings) -> EmbeddedSignOut? {
    guard entry != .oauth, let preset = Preset.chosen(by: settings, entry),
      let origin = SiteAddress.origin(of: Issuer(settings, preset).address)
    else { return nil }
    return EmbeddedSignOut(siteSession: SiteClaims.session(session, at: issuer), origin: origin)
  }
}

/// A verified logout token.
struct LogoutToken {
  /// How old a token may be, and how far the clocks may differ, in seconds.
  private static let oldest: Double = 300
  private static let leeway: Double = 60
  /// How long a token is remembered, in seconds: longer than it is accepted.
  static let memory = 600

  private static let event = "http://schemas.openid.net/event/backchannel-logout"

  /// What has ended at the issuer.
  enum Ended {
    /// The sessions of an identity, as `OpenID` proves it.
    /// - Parameter session: nil: all of them.
    case user(String, session: String?)
    /// One session, whoever's it is.
    case session(String)
  }

  let ended: Ended
  /// Identifies the token in the store.
  let key: String

  /// Section 2.6.
  /// - Parameter now: milliseconds since the Unix epoch.
  init(_ claims: [String: JSONClaim], _ client: Client, _ metadata: IssuerMetadata, now: Int64) throws(AnswerRefusal) {
    func wrong(_ reason: AnswerRefusal.Reason) -> AnswerRefusal {
      AnswerRefusal(reason, claims[reason.rawValue]?.shown ?? "missing")
    }
    guard metadata.issued(claims) else { throw wrong(.iss) }
    guard let audiences = claims["aud"].flatMap({ $0.text.map { [$0] } ?? $0.texts }), audiences.contains(client.id),
      audiences.allSatisfy({ $0 == client.id || client.audiences.contains($0) })
    else { throw wrong(.aud) }
    let now = Double(now) / 1000
    guard let issuedAt = claims["iat"]?.number, issuedAt <= now + Self.leeway, issuedAt >= now - Self.oldest else {
      throw wrong(.iat)
    }
    if let expiresAt = claims["exp"] {
      guard let expiresAt = expiresAt.number, now < expiresAt + Self.leeway else { throw wrong(.exp) }
    }
    // Attack: an ID token, which any app of the user has, is sent as a logout token. It has no event, and a nonce.
    guard claims["events"]?.members?[Self.event]?.members != nil else { throw AnswerRefusal(.events) }
    guard claims["nonce"] == nil else { throw AnswerRefusal(.nonce, "present") }
    guard let id = claims["jti"]?.text, (1...200).contains(id.utf8.count) else { throw AnswerRefusal(.jti) }
    ended = try Self.ended(claims, at: metadata.name(in: claims))
    key = "logout \(id)"
  }

  /// Section 2.4: `sub`, `sid` or both.
  private static func ended(_ claims: [String: JSONClaim], at issuer: String) throws(AnswerRefusal) -> Ended {
    let session: String?
    switch claims["sid"] {
    case nil: session = nil
    case .text(let id)? where !id.isEmpty: session = SiteClaims.session(id, at: issuer)
    default: throw AnswerRefusal(.token, "sid")
    }
    if claims["sub"] == nil, let session { return .session(session) }
    guard let subject = claims["sub"]?.text, IDTokenExpectation.isSubject(subject) else { throw AnswerRefusal(.sub) }
    return .user("\(issuer) \(subject)", session: session)
  }
}
