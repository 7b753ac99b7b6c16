import MoongateCore
import MoongateSDK
import Synchronization

/// Keeps messages in memory instead of sending them, for the demo and for tests. The admin listener shows them.
///
/// The messages contain codes in plain text, so they are never written to disk, and the oldest are dropped.
package final class Outbox: Messenger {
  /// The maximum number of messages.
  package static let capacity = 10_000

  /// A message in the format of `GET /outbox`.
  package struct Entry: Sendable {
    /// Counts from 1 since the start of the process.
    package let id: Int
    package let at: Timestamp
    package let message: Message
  }

  private struct State {
    /// A ring buffer: the entry with the id n is at index n mod capacity.
    var ring: [Entry] = []
    var count = 0
  }

  private let clock: any GatewayClock
  private let state = Mutex(State())

  package init(clock: any GatewayClock) { self.clock = clock }

  /// Stores the message. Never fails.
  package func send(_ message: Message) async throws(DeliveryFault) {
    let now = clock.now()
    state.withLock { state in
      let entry = Entry(id: state.count + 1, at: now, message: message)
      if state.ring.count < Self.capacity {
        state.ring.append(entry)
      } else {
        state.ring[state.count % Self.capacity] = entry
      }
      state.count += 1
    }
  }

  /// Takes over the messages of another process, before the first message of this one.
  /// - Parameter messages: the messages, oldest first.
  package func restore(_ messages: [(at: Timestamp, message: Message)]) {
    state.withLock { state in
      guard state.count == 0 else { return }
      for (at, message) in messages.suffix(Self.capacity) {
        state.count += 1
        state.ring.append(Entry(id: state.count, at: at, message: message))
      }
    }
  }

  /// The messages, newest first.
  package var entries: [Entry] {
    state.withLock { state in
      let next = state.count % Self.capacity
      guard state.ring.count == Self.capacity else { return state.ring.reversed() }
      return (state.ring[next...] + state.ring[..<next]).reversed()
    }
  }
}
