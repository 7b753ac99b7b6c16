import Logging
import MoongateCore

/// Responses of services that see another path or Host than the client.
extension ClientConnection {
  /// The changes of the response's head; nil if the route changes nothing.
  func answerChanges(_ service: ServiceExchange, from target: UpstreamTarget) -> AnswerChanges? {
    guard let rewriting = service.route.rewriting, let client = service.client else { return nil }
    let (loop, route) = (loop, service.route)
    return AnswerChanges(rewriting: rewriting, client: client.host, isSecure: client.isSecure) { change, path in
      let entry = LoggedOutsideAddress(
        field: change.rawValue, upstream: target.upstream.description, base: route.rule.rewrite.base)
      loop.shared.outsideAddresses.report(
        entry, ["route": "\(loop.metrics.label(route.metricsIndex))", "path": "\(path)"])
    }
  }
}
