import MoongateCore

/// The rates of routes (`rate`). The proxy and forward-auth count requests together.
extension Authorizer {
  /// Counts a request by what is known before its credential is looked up.
  ///
  /// Attack: a flood of requests with session tokens that do not exist, each of which would be looked up in the store.
  /// - Returns: the refusal if the request exceeds the rate of the route.
  func rateRefusal(ofAny request: AccessRequest, on route: RoutePlan, _ time: AccessTime) -> RequestRefusal? {
    guard let counter = route.rate else { return nil }
    switch counter.rate.subject {
    case .ip: return refusal(counter, .address(AddressKey(request.origin.address)), on: route, time)
    case .global: return refusal(counter, .everybody, on: route, time)
    case .account, .token: return nil
    }
  }

  /// Counts a request by its account or token. A request without one, or whose session is not known because the store
  /// is unavailable, counts for its address: otherwise, leaving out the credential would lift the limit.
  /// - Returns: the refusal if the request exceeds the rate of the route.
  func rateRefusal(
    of finding: CredentialFinding, _ request: AccessRequest, on route: RoutePlan, _ time: AccessTime
  ) -> RequestRefusal? {
    guard let counter = route.rate, counter.rate.subject == .account || counter.rate.subject == .token,
      !request.isRateCounted
    else { return nil }
    let session: CachedSession?
    switch finding {
    case .session(let found), .token(let found, _): session = found
    case .anonymous, .storeIsSilent, .refused: session = nil
    case .needsLookup: return nil
    }
    guard let snapshot = session?.snapshot else {
      return refusal(counter, .address(AddressKey(request.origin.address)), on: route, time)
    }
    var subject = RateSubject.account(snapshot.account.id)
    if counter.rate.subject == .token, let token = snapshot.token { subject = .token(token.id) }
    return refusal(counter, subject, on: route, time, account: snapshot.account.id)
  }

  private func refusal(
    _ counter: RouteRateCounter, _ subject: RateSubject, on route: RoutePlan, _ time: AccessTime,
    account: String? = nil
  ) -> RequestRefusal? {
    guard let excess = counter.take(subject, at: time.monotonic) else { return nil }
    var refusal = RequestRefusal(
      .rateLimited,
      detail: [
        "rule": "rate", "at": route.rule.location.description, "per": excess.rate.subject.rawValue,
        "max": String(excess.rate.count), "window": String(excess.rate.window.retryAfterSeconds),
        "retry_after": String(excess.wait.retryAfterSeconds),
      ])
    (refusal.excess, refusal.retryAfter, refusal.account) = (excess, excess.wait, account)
    return refusal
  }
}
