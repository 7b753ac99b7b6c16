import Hummingbird
import Logging
import MoongateCore
import NIOCore

/// The context of a request: its connection.
package struct ConnectionContext: InitializableFromSource, Sendable {
  /// The peer's address; nil if the connection is already closed, and in tests without one.
  let peer: ClientAddress?
  let logger: Logger

  package init(source: ApplicationRequestContextSource) {
    peer = source.channel.remoteAddress.flatMap(ClientAddress.init(socket:))
    logger = source.logger
  }
}

extension ClientAddress {
  /// The address of a socket; nil if it is not an IP address.
  init?(socket: SocketAddress) {
    guard let address = socket.ipAddress.flatMap({ IPAddressText.parse(Array($0.utf8)) }) else { return nil }
    self = address
  }
}
