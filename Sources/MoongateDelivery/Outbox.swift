import MoongateCore
import MoongateSDK
import Synchronization

/// Messages that nobody carries away: kept in memory for the demo and for tests, shown on the admin listener.
///
/// Their codes are in the clear here and nowhere else, so it is in memory only and forgets the oldest.
package final class Outbox: Messenger {
  /// How many are kept.
  package static let capacity = 10_000

  /// One message as `GET /outbox` shows it.
  package struct Entry: Sendable {
    /// Counts from 1 since the start of the process.
    package let id: Int
    package let at: Timestamp
    package let message: Message
  }

  private struct State {
    /// A ring: the entry with the id n stands at n mod capacity.
    var ring: [Entry] = []
    var count = 0
  }

  private let clock: any GatewayClock
  private let state = Mutex(State())

  package init(clock: any GatewayClock) { self.clock = clock }

  /// Never fails.
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

  /// Takes over what another process kept, before anything is sent here.
  /// - Parameter messages: oldest first.
  package func restore(_ messages: [(at: Timestamp, message: Message)]) {
    state.withLock { state in
      guard state.count == 0 else { return }
      for (at, message) in messages.suffix(Self.capacity) {
        state.count += 1
        state.ring.append(Entry(id: state.count, at: at, message: message))
      }
    }
  }

  /// What is kept, newest first.
  package var entries: [Entry] {
    state.withLock { state in
      let next = state.count % Self.capacity
      guard state.ring.count == Self.capacity else { return state.ring.reversed() }
      return (state.ring[next...] + state.ring[..<next]).reversed()
    }
  }
}
