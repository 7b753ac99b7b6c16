import MoongateCore
import NIOCore

/// Redirect loops between a service and sign-in (`RedirectLoopDetector`).
extension ClientConnection {
  /// Explains the loop instead of redirecting once more.
  /// - Parameters:
  ///   - detail: the request, for the operator.
  ///   - page: the gateway page that shows the explanation; nil if the response itself contains it.
  func refuse(_ loop: RedirectLoop, about detail: [String: String], page: String? = nil) {
    let told = ["reason": loop.cause, "told": loop.sentence]
    var refusal = RequestRefusal(.unauthenticated, detail: told).about(detail)
    refusal.sentence = loop.sentence
    guard let page else { return refuse(refusal) }
    redirect(to: "\(page)?decision=\(record(.unauthenticated, detail: refusal.detail).text)", status: 401)
  }

  /// Records the first requests of a session after its sign-in.
  func recordArrival(_ session: CachedSession, _ request: AccessRequest, _ now: Timestamp) {
    let redirectLoops = loop.shared.redirectLoops
    guard !redirectLoops.isEmpty, now - session.snapshot.session.authenticatedAt < .seconds(60) else { return }
    redirectLoops.recordSignedInArrival(request.origin.address, at: request.target)
  }

  /// Records that a gateway page redirects the client to a service.
  func recordDeparture(to location: String) {
    guard let client = state.exchange.client, let place = RedirectLoopDetector.place(location) else { return }
    loop.shared.redirectLoops.expect(client, at: place, now: loop.time(at: loop.now).now)
  }
}
