import MoongateHTTP
import Synchronization

/// A running listener, for upgrades.
final class ListenerHandle: Sendable {
  let gate = AcceptGate()
  private let held = Mutex<ListeningSocket?>(nil)

  /// The listening socket; nil before the listener starts.
  var socket: ListeningSocket? {
    get { held.withLock { $0 } }
    set { held.withLock { $0 = newValue } }
  }
}
