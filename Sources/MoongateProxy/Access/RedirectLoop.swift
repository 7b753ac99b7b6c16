import MoongateCore

/// The explanation for a browser that repeatedly returns from sign-in without its session (`RedirectLoopDetector`).
struct RedirectLoop {
  /// The most likely cause, for the operator and the user.
  let cause: String
  /// The whole explanation for the user.
  let sentence: String

  init(_ cause: String) {
    self.cause = cause
    sentence = "You signed in, and your browser came back without it, three times in a row. \(cause)"
  }
}

extension Authorizer {
  /// Records that a request arrived without a session.
  /// - Returns: the explanation if another redirect to sign-in would continue a loop; nil otherwise.
  func redirectLoop(_ request: AccessRequest, _ credentials: Credentials, _ time: AccessTime) -> RedirectLoop? {
    guard !redirectLoops.isEmpty,
      redirectLoops.bounced(request.origin.address, at: request.target, now: time.now)
    else { return nil }
    return RedirectLoop(cause(request.origin, credentials))
  }

  private func cause(_ origin: RequestOrigin, _ credentials: Credentials) -> String {
    let home = plan.settings.publicURL
    if credentials.cookies > 1 {
      return
        "It sends two cookies of the same name, one of them set by a neighbouring site: delete the cookies of this site and sign in again."
    }
    if credentials.cookies == 1 {
      let jumped = clock.isSuspect ? " The gateway's clock has jumped, which ends sessions." : ""
      return
        "It sends the cookie of a sign-in that has ended or that is not known here: a gateway with another store may answer as well.\(jumped)"
    }
    if home.isSecure, !origin.isSecure {
      return
        "Sign-in is for https, and this page was asked for by http (or the proxy in front does not say X-Forwarded-Proto: https)."
    }
    let domain = plan.settings.furtherDomain(of: origin.host.name) ?? plan.settings.cookieDomain
    let isInDomain = domain.map { origin.host.name == $0 || origin.host.name.hasSuffix("." + $0) } ?? false
    if origin.host.name != home.host, !isInDomain {
      return
        "The sign-in of \(home.host) is not sent to \(origin.host.name): public_url, cookie_domain or domains is not set for this host."
    }
    return "It blocks this site's cookies, or something between it and the gateway removes them."
  }
}
