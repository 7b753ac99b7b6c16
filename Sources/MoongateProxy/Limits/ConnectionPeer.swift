import MoongateCore
import NIOCore

/// The client of a connection: the peer of its socket, or the client that a PROXY protocol header states.
package struct ConnectionPeer: Sendable, Hashable {
  package let address: ClientAddress
  /// Whether its forwarding headers and forward-auth questions count if `trusted_proxies` contains the address.
  ///
  /// Attack: a proxy passes on the bytes of a client that has no IP address, such as one of a Unix socket. The address
  /// is then the proxy's, which is trusted, but the client wrote the `X-Forwarded-For`.
  package let mayForward: Bool

  package init(_ address: ClientAddress, mayForward: Bool = true) {
    self.address = address
    self.mayForward = mayForward
  }

  /// The peer of a channel. Without an address, it is `unspecified`.
  package init(_ channel: any Channel) {
    self.init(channel.remoteAddress.flatMap { ClientAddress($0) } ?? .unspecified)
  }
}

extension ClientAddress {
  /// The address of a socket; nil if it has none, such as a Unix socket.
  package init?(_ address: SocketAddress) {
    guard let text = address.ipAddress, let parsed = IPAddressText.parse(text.prefix { $0 != "%" }.utf8.map { $0 })
    else { return nil }
    self = parsed
  }
}
