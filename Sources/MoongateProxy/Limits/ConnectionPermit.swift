import MoongateCore

/// The permit of one connection within the total limit and the limit per address. It is acquired on accept and released
/// once at the end. Confined to the connection's event loop.
///
/// Attack: connections that never complete their TLS handshake. They need a permit too, so their number is bounded.
final class ConnectionPermit {
  /// The counter for the connection's requests; nil for trusted proxies.
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
  /// Acquires a permit for a connection.
  /// - Returns: nil if a limit is reached; the connection must then be closed.
  func admit(_ peer: ClientAddress) -> ConnectionPermit? {
    let plan = currentPlan()
    let limits = plan.settings.connectionLimits
    let isWithin = proxy.connectionOpened(limit: limits.connections)
    var use: AddressUse?
    var isWithinAddress = true
    if isWithin, peer != .unspecified, !ForwardedClient.trusts(peer, plan.trustedProxies) {
      (use, isWithinAddress) = proxy.addresses.connect(peer, limit: limits.connectionsPerAddress, at: now)
    }
    let permit = ConnectionPermit(proxy, addressUse: use)
    if isWithin, isWithinAddress { return permit }
    permit.end()
    metrics.refusedConnections += 1
    return nil
  }
}
