import MoongateCore

/// The Authorization that the gateway states to services: HTTP Basic, or an access token of an app.
extension Authorizer {
  /// Allows a request, unless the token for its service must be made first.
  func pass(_ grant: AccessGrant, _ request: AccessRequest, _ time: AccessTime) -> AccessDecision.Outcome {
    let identity = grant.route.identity
    if case .none = identity.credential { return .pass(grant) }
    var grant = grant
    if identity.dropsAuthorization(isSignedIn: grant.session != nil) { grant.dropsAuthorization = true }
    guard let session = grant.session else { return .pass(grant) }
    switch identity.credential {
    case .none: break
    case .basic: grant.authorization = session.entitlements(in: plan, at: time.monotonic).authorization(identity)
    case .bearer(let app):
      let address = request.origin.address
      let key = BearerKey(app, version: plan.version, from: address)
      guard let line = session.bearers.line(key, at: time.now) else {
        let client = ClientFacts(
          address: address, userAgent: request.head.userAgent, isNewDevice: false,
          place: plan.settings.place(of: address))
        return .needsLookup(
          .bearer(session, BearerQuestion(app: app, key: key, client: client, route: grant.route.rule)))
      }
      grant.authorization = line
    }
    return .pass(grant)
  }
}
