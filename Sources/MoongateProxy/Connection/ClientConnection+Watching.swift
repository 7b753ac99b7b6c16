import MoongateCore
import NIOCore

/// What a shadow is told of requests (`moongate policy shadow`).
extension ClientConnection {
  /// Leaves the request for a candidate that looks on. Without one it costs a look at a flag; with one it never waits,
  /// and what is too much is dropped.
  /// - Parameter session: of who asks, alive.
  func watch(_ session: CachedSession?, _ request: () -> RequestFactsSource) {
    guard let shadow = loop.proxy.dependencies.shadow, shadow.isOn, shadow.hasRoom() else { return }
    let request = request()
    // So that whoever looks into the difference finds the request: a refusal is recorded by this name, and the access
    // log has it.
    let decision = DecisionID(from: loop.proxy.dependencies.random)
    exchange.decision = decision
    let facts = RequestFacts(
      method: request.method(), host: request.origin.host.name, path: request.path(), query: request.query() ?? "")
    shadow.take(
      WatchedRequest(
        facts: facts, address: request.origin.address, userAgent: request.userAgent(), session: session?.snapshot),
      decision,
      at: loop.time(at: loop.now).now)
  }
}
