import MoongateCore
import NIOCore

/// The state of the credentials of a request. Large values of rare cases are indirect.
enum CredentialFinding {
  /// The request has no valid credentials.
  case anonymous
  /// A live session, which may belong to another root domain.
  case session(CachedSession)
  /// An access token, with the client's address.
  case token(CachedSession, from: ClientAddress)
  indirect case needsLookup(CredentialLookup)
  /// The store is unavailable, so the session is unknown.
  case storeIsSilent
  /// An access token that is refused.
  indirect case refused(RequestRefusal)
}

extension Authorizer {
  private static let invalidToken = "This token is not valid here. It may have expired or been revoked."

  /// Finds the access token of the request if the route accepts tokens, and the session otherwise.
  func find(
    _ credentials: Credentials, of request: AccessRequest, on route: RoutePlan, _ time: AccessTime,
    _ found: SessionCache.LookupResult?
  ) -> CredentialFinding {
    if let accepted = route.rule.tokens,
      let finding = findToken(credentials, of: request, accepted, time, found)
    {
      return finding
    }
    guard let token = credentials.token else { return .anonymous }
    let key = SessionKey(hashing: request.head.bytes.readableBytesUInt8Span, token)
    switch time.storeIsFresh ? found ?? sessions.known(key, now: time.now) : .unavailable {
    case .live(let session): return .session(session)
    case .none: return .anonymous
    case .unavailable, .locked: return .storeIsSilent
    case .unknown: return .needsLookup(.session(key))
    }
  }

  /// - Parameter accepted: the tokens that the route accepts.
  /// - Returns: nil if the request has no access token.
  private func findToken(
    _ credentials: Credentials, of request: AccessRequest, _ accepted: RouteTokens, _ time: AccessTime,
    _ found: SessionCache.LookupResult?
  ) -> CredentialFinding? {
    let text: [UInt8]
    let isToken: Bool
    switch credentials.program {
    case nil, .otherPassword: return nil
    case .malformedBasic(let reason):
      // A user's session may come with Basic credentials for the service.
      guard credentials.cookies == 0 else { return nil }
      return .refused(
        RequestRefusal(
          .badRequest, reason: "Basic cannot be read: \(reason)",
          sentence: "The Authorization header cannot be read as Basic: \(reason)."))
    case .token(let token): (text, isToken) = (token, true)
    case .malformedToken(let other): (text, isToken) = (other, false)
    }
    // Attack: a token in addition to another user's cookie. It would be unclear which of them applies.
    if credentials.cookies > 0 {
      return .refused(RequestRefusal(.badRequest, reason: "a token beside a session's cookie"))
    }
    let key = SessionKey(hashing: text)
    let address = request.origin.address
    switch time.storeIsFresh ? found ?? tokens.known(key, from: address, now: time.now) : .unavailable {
    case .live(let session): return admit(session, accepted, from: address, time.now)
    case .none: return .refused(Self.wrongToken)
    case .locked(let until):
      var refusal = RequestRefusal(.tooManyAttempts, reason: "too many wrong tokens from this address")
      refusal.retryAfter = max(.seconds(1), until - time.now)
      return .refused(refusal)
    case .unavailable: return .refused(RequestRefusal(.storeUnavailable, reason: "the store does not answer"))
    case .unknown:
      let secret = isToken ? SecretText(String(decoding: text, as: UTF8.self)) : nil
      return .needsLookup(.token(key, secret: secret, from: address))
    }
  }

  private static var wrongToken: RequestRefusal {
    RequestRefusal(
      .unauthenticated, reason: "no such token, or it has expired or was revoked", sentence: invalidToken)
  }

  private func admit(
    _ session: CachedSession, _ accepted: RouteTokens, from address: ClientAddress, _ now: Timestamp
  ) -> CredentialFinding {
    guard let token = session.snapshot.token, session.isLive(at: now) else { return .refused(Self.wrongToken) }
    let account = session.snapshot.account.id
    guard token.admits(address) else {
      // Attack: a stolen token that is bound to networks is tried from elsewhere. The response does not tell that the
      // token exists.
      return .refused(
        RequestRefusal(
          .unauthenticated, reason: "token \(token.id) is bound to other networks", sentence: Self.invalidToken,
          account: account))
    }
    guard accepted.admits(token) else {
      return .refused(
        RequestRefusal(
          .denied, reason: "the route's `tokens` does not name token \(token.id)",
          sentence: "This token may not be used here.", account: account))
    }
    return .token(session, from: address)
  }
}
