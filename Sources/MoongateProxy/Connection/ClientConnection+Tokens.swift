import MoongateCore
import NIOCore

/// Tokens of programs, on routes that take them.
extension ClientConnection {
  /// What a request's token came to.
  enum TokenFinding {
    case found(CachedSession)
    /// The request brings no token.
    case absent
    /// The store has to be asked.
    case unknown(SessionKey, SessionCache.Lookup)
    case refused(TokenRefusal)
  }

  /// Why a token is refused.
  struct TokenRefusal {
    let code: RefusalCode
    /// For the client.
    let sentence: String?
    /// For the operator.
    let reason: String
    var account: String?
    var retryAfter: Duration?

    static let wrong = TokenRefusal(
      code: .unauthenticated, sentence: "This token is not valid here. It may have expired or been revoked.",
      reason: "no such token, or it has expired or was revoked")
  }

  /// - Parameter answer: the store's, where this is the second time.
  func findToken(
    _ credentials: Credentials, on route: RoutePlan, from address: ClientAddress,
    _ time: (now: Timestamp, storeIsFresh: Bool),
    _ answer: SessionCache.Answer?
  ) -> TokenFinding {
    let text: [UInt8]
    let isToken: Bool
    switch credentials.program {
    case nil, .otherPassword: return .absent
    case .malformedBasic(let reason):
      // A person's session may come with a Basic that is the service's own.
      guard credentials.cookies == 0 else { return .absent }
      return .refused(
        TokenRefusal(
          code: .badRequest, sentence: "The Authorization header cannot be read as Basic: \(reason).",
          reason: "Basic cannot be read: \(reason)"))
    case .token(let token): (text, isToken) = (token, true)
    case .malformedToken(let other): (text, isToken) = (other, false)
    }
    // Attack: a token beside somebody else's cookie. Nobody can say which of the two was meant.
    if credentials.cookies > 0 {
      return .refused(TokenRefusal(code: .badRequest, sentence: nil, reason: "a token beside a session's cookie"))
    }
    let key = SessionKey(hashing: text)
    let known = time.storeIsFresh ? answer ?? loop.tokens.known(key, from: address, now: time.now) : .unavailable
    switch known {
    case .live(let session): return admit(session, on: route, from: address, time.now)
    case .none: return .refused(.wrong)
    case .locked(let until):
      return .refused(
        TokenRefusal(
          code: .tooManyAttempts, sentence: nil, reason: "too many wrong tokens from this address",
          retryAfter: max(.seconds(1), until - time.now)))
    case .unavailable:
      return .refused(TokenRefusal(code: .storeUnavailable, sentence: nil, reason: "the store does not answer"))
    case .unknown:
      let secret = isToken ? SecretText(String(decoding: text, as: UTF8.self)) : nil
      return .unknown(key, loop.tokens.lookup(of: secret, from: address))
    }
  }

  private func admit(_ session: CachedSession, on route: RoutePlan, from address: ClientAddress, _ now: Timestamp)
    -> TokenFinding
  {
    guard let token = session.snapshot.token else { return .refused(.wrong) }
    guard session.isLive(at: now) else { return .refused(.wrong) }
    guard token.admits(address) else {
      // Attack: who has found a token that is bound to networks learns nothing of it from elsewhere.
      return .refused(
        TokenRefusal(
          code: .unauthenticated, sentence: TokenRefusal.wrong.sentence,
          reason: "token \(token.id) is bound to other networks",
          account: session.snapshot.account.id))
    }
    guard route.route.tokens?.admits(token) ?? false else {
      return .refused(
        TokenRefusal(
          code: .denied, sentence: "This token may not be used here.",
          reason: "the route's `tokens` does not name token \(token.id)",
          account: session.snapshot.account.id))
    }
    return .found(session)
  }

  /// Notes that the request's session or token was used.
  func noteUse(_ session: CachedSession, from address: ClientAddress, _ now: Timestamp) {
    guard let token = session.snapshot.token else { return loop.sessions.used(session, now: now) }
    loop.tokens.used(session, token, from: address, now: now)
  }

  func refuse(_ refusal: TokenRefusal, _ detail: [String: String]) {
    refuse(
      refusal.code, detail: detail.merging(["reason": refusal.reason]) { mine, _ in mine }, account: refusal.account,
      retryAfter: refusal.retryAfter,
      sentence: refusal.sentence)
  }
}
