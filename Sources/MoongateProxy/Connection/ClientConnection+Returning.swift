import MoongateCore
import NIOCore

/// Browsers that come back from sign-in without their session, again and again (`RedirectLoopDetector`).
extension ClientConnection {
  /// Why a browser goes round, for the operator and for the person.
  struct Round {
    let cause: String
    let sentence: String
  }

  /// Whether this redirect to sign-in would be one round too many, and what is most likely wrong.
  func goesRound(_ request: RequestFactsSource, _ credentials: Credentials, _ plan: GenerationPlan, _ now: Timestamp)
    -> Round?
  {
    let returns = loop.proxy.returns
    guard !returns.isEmpty, returns.bounced(request.origin.address, at: request.place, now: now) else { return nil }
    let cause = cause(request.origin, credentials, plan)
    return Round(
      cause: cause, sentence: "You signed in, and your browser came back without it, three times in a row. \(cause)")
  }

  private func cause(_ origin: RequestOrigin, _ credentials: Credentials, _ plan: GenerationPlan) -> String {
    let home = plan.settings.publicURL
    if credentials.cookies > 1 {
      return
        "It sends two cookies of the same name, one of them set by a neighbouring site: delete the cookies of this site and sign in again."
    }
    if credentials.cookies == 1 {
      let clock = loop.proxy.dependencies.clock.isSuspect ? " The gateway's clock has jumped, which ends sessions." : ""
      return
        "It sends the cookie of a sign-in that has ended or that is not known here: a gateway with another store may answer as well.\(clock)"
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

  /// Tells instead of leading round once more.
  /// - Parameter page: where a page of ours tells it; nil: the answer itself does.
  func refuseRound(_ round: Round, _ detail: [String: String], page: String? = nil) {
    let detail = detail.merging(["reason": round.cause, "told": round.sentence]) { $1 }
    guard let page else { return refuse(.unauthenticated, detail: detail, sentence: round.sentence) }
    redirect(to: "\(page)?decision=\(record(.unauthenticated, detail: detail).text)", status: 401)
  }

  /// A session's first request after its sign-in.
  func noteArrival(_ session: CachedSession, _ request: RequestFactsSource, _ now: Timestamp) {
    guard now - session.snapshot.session.authenticatedAt < .seconds(60) else { return }
    loop.proxy.returns.landed(request.origin.address, at: request.place)
  }

  /// An answer of our own pages that leads the client out of them again.
  func noteDeparture(to location: String) {
    guard let client = exchange.client, let place = RedirectLoopDetector.place(location) else { return }
    loop.proxy.returns.expect(client, at: place, now: loop.time(at: loop.now).now)
  }
}

extension RequestFactsSource {
  /// Path and query.
  fileprivate var place: String { path() + (query().map { "?" + $0 } ?? "") }
}
