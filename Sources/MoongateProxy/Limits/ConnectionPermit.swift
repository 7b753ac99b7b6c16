import Synchronization

/// The number of open connections of all event loops.
final class ConnectionCount: Sendable {
  private let open = Atomic<Int>(0)

  /// Counts a new connection until `closed`, even above the limit.
  /// - Returns: whether it is within the limit.
  func opened(limit: Int) -> Bool { open.add(1, ordering: .relaxed).newValue <= limit }

  func closed() { open.subtract(1, ordering: .relaxed) }
}

/// The permit of one connection within the total limit and the limit per address. It is acquired on accept
/// (`ProxyLoop.admit`) and released once at the end. Confined to the connection's event loop.
///
/// Attack: connections that never complete their TLS handshake. They need a permit too, so their number is bounded.
final class ConnectionPermit {
  let peer: ConnectionPeer
  /// The counter for the connection's requests; nil for trusted proxies.
  let addressUse: AddressUse?
  private let count: ConnectionCount
  private var isOver = false

  /// - Parameter count: it counts the connection already.
  init(_ count: ConnectionCount, of peer: ConnectionPeer, addressUse: AddressUse?) {
    self.count = count
    self.peer = peer
    self.addressUse = addressUse
  }

  func end() {
    guard !isOver else { return }
    isOver = true
    count.closed()
    addressUse?.disconnect()
  }
}
