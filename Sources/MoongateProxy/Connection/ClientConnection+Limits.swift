import MoongateCore
import NIOCore

/// The limits per client address (`limits.per_ip` of gateway.lua).
///
/// A trusted proxy is not a client: its connections are not limited, and its requests count for the address in
/// `X-Forwarded-For`.
extension ClientConnection {
  /// Counts a request, after `readFacts`.
  /// - Returns: whether it is within the limit.
  func isWithinRequestLimit() -> Bool {
    let plan = loop.currentPlan()
    guard let limit = plan.requestsPerSecondPerAddress else { return true }
    if let addressUse { return addressUse.ask(limit: limit, at: loop.now) }
    let client = state.exchange.client ?? peer
    guard client != .unspecified, !ForwardedClient.trusts(client, plan.trustedProxies) else { return true }
    return loop.shared.addresses.ask(client, limit: limit, at: loop.now)
  }

  /// Whether the peer is a trusted proxy, whose `X-Forwarded-…` headers are used.
  func isTrusted(_ plan: GenerationPlan) -> Bool {
    if plan.trustedProxies.isEmpty || !known.mayForward { return false }
    if let trust = known.trust, trust.version == plan.version { return trust.isTrusted }
    let isTrusted = ForwardedClient.trusts(peer, plan.trustedProxies)
    known.trust = (plan.version, isTrusted)
    return isTrusted
  }
}
