import Hummingbird
import Logging
import MoongateCore
import MoongateProxy
import NIOCore

/// The context of a request: its connection.
package struct ConnectionContext: InitializableFromSource, Sendable {
  /// The address of the client whose connection this task serves.
  ///
  /// Attack: a client that closes its connection at once takes its address from the channel, and no limit per address
  /// counts its requests.
  @TaskLocal static var client: ClientAddress?

  /// The peer's address; nil in tests without one.
  let peer: ClientAddress?
  let logger: Logger

  package init(source: ApplicationRequestContextSource) {
    peer = Self.client ?? source.channel.remoteAddress.flatMap { ClientAddress($0) }
    logger = source.logger
  }
}
