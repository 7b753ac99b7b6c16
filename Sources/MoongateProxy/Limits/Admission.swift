import MoongateCore

/// A connection's place among those that there may be: in all, and of its client's address. Taken when it is accepted
/// and given back when it ends, once. Belongs to the connection's event loop.
///
/// Attack: connections that never end their TLS handshake. They have a place like any other, so they are bounded like
/// any other.
final class Admission {
  /// What the connection's requests count by; nil for trusted proxies.
  let addressUse: AddressUse?
  private let proxy: Proxy
  private var isOver = false

  fileprivate init(_ proxy: Proxy, addressUse: AddressUse?) {
    self.proxy = proxy
    self.addressUse = addressUse
  }

  func end() {
    guard !isOver else { return }
    isOver = true
    proxy.connectionClosed()
    addressUse?.disconnect()
  }
}

extension ProxyLoop {
  /// Takes a place for a connection.
  /// - Returns: nil where there may be no more of them: it is to be closed.
  func admit(_ peer: ClientAddress) -> Admission? {
    let plan = currentPlan()
    let limits = plan.settings.connectionLimits
    let isWithin = proxy.connectionOpened(limit: limits.connections)
    var use: AddressUse?
    var isWithinAddress = true
    if isWithin, peer != .unspecified, !ForwardedClient.trusts(peer, plan.trustedProxies) {
      (use, isWithinAddress) = proxy.addresses.connect(peer, limit: limits.connectionsPerAddress, at: now)
    }
    let admission = Admission(proxy, addressUse: use)
    if isWithin, isWithinAddress { return admission }
    admission.end()
    numbers.refusedConnections += 1
    return nil
  }
}
