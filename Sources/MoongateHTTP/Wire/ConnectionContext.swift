import Hummingbird
import Logging
import MoongateCore
import MoongateProxy
import NIOCore

/// The context of a request: its connection.
package struct ConnectionContext: InitializableFromSource, Sendable {
  /// The address of the client whose connection this task serves.
  ///
  /// Attack: a client closes its connection at once. The channel then has no address, so no limit per address would
  /// count the client's requests.
  @TaskLocal static var client: ClientAddress?

  /// The peer's address; nil in tests without one, and if a connection to the admin listener is already closed.
  let peer: ClientAddress?
  let logger: Logger

  package init(source: ApplicationRequestContextSource) {
    peer = Self.client ?? source.channel.remoteAddress.flatMap { ClientAddress($0) }
    logger = source.logger
  }
}
