import MoongateCore
import NIOCore

/// Bounds on one client address (`limits.per_ip` of gateway.lua).
///
/// A trusted proxy is no client: its connections are not bounded, and its requests count for the address that it names.
extension ClientConnection {
  /// Counts a request in.
  func mayAsk(_ head: RequestHead) -> Bool {
    let plan = loop.currentPlan()
    guard let limit = plan.requestsPerSecondPerAddress else { return true }
    if let addressUse { return addressUse.ask(limit: limit, at: loop.now) }
    let client = clientAddress(head, plan)
    guard client != .unspecified, !ForwardedClient.trusts(client, plan.trustedProxies) else { return true }
    return loop.proxy.addresses.ask(client, limit: limit, at: loop.now)
  }

  /// Whether the peer may say whom it speaks for.
  func isTrusted(_ plan: GenerationPlan) -> Bool {
    if plan.trustedProxies.isEmpty { return false }
    if let trust = known.trust, trust.version == plan.version { return trust.isTrusted }
    let isTrusted = ForwardedClient.trusts(peer, plan.trustedProxies)
    known.trust = (plan.version, isTrusted)
    return isTrusted
  }

  /// The client's address, as far as the peer may be believed.
  func clientAddress(_ head: RequestHead, _ plan: GenerationPlan) -> ClientAddress {
    guard head.first(.forwardedFor) != nil, isTrusted(plan) else { return peer }
    let list = head.fields.filter { $0.kind == .forwardedFor }.map { head.text($0.value) }
    return ForwardedClient(
      peer: peer, trusted: plan.trustedProxies, isSecure: false, host: nil, forwardedFor: list, forwardedProto: [],
      forwardedHost: []
    ).address
  }
}
