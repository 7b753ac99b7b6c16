import Hummingbird
import Logging
import MoongateCore
import NIOCore

/// What is known of a request before it is looked at: whom the connection is with.
package struct ConnectionContext: InitializableFromSource, Sendable {
  /// The peer's address; nil where the connection is gone already, and in tests without one.
  let peer: ClientAddress?
  let logger: Logger

  package init(source: ApplicationRequestContextSource) {
    peer = source.channel.remoteAddress.flatMap(ClientAddress.init(socket:))
    logger = source.logger
  }
}

extension ClientAddress {
  /// The address of a socket; nil for one that is no internet address.
  init?(socket: SocketAddress) {
    guard let address = socket.ipAddress.flatMap({ IPAddressText.parse(Array($0.utf8)) }) else { return nil }
    self = address
  }
}
