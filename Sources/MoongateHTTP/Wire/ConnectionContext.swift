import Hummingbird
import Logging
import MoongateCore
import MoongateProxy
import NIOCore

/// The context of a request: its connection.
package struct ConnectionContext: InitializableFromSource, Sendable {
  /// The client whose connection this task serves.
  ///
  /// Attack: a client closes its connection at once. The channel then has no address, so no limit per address would
  /// count the client's requests.
  @TaskLocal static var client: ConnectionPeer?

  /// The peer. It has no address in tests without one, and if a connection to the admin listener is already closed.
  let peer: ConnectionPeer
  let logger: Logger

  package init(source: ApplicationRequestContextSource) {
    peer = Self.client ?? ConnectionPeer(source.channel)
    logger = source.logger
  }
}
