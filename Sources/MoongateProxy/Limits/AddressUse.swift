import MoongateCore
import NIOCore
import Synchronization

/// The open connections and recent requests of one client address, shared by all event loops.
///
/// Only connections of the same client share its lock, and a request takes it only if a limit is set.
final class AddressUse: Sendable {
  /// `per_ip.requests` counts the requests of a second.
  private static let slotLength = UInt64(1_000_000_000 / SlidingWindow.parts)

  private struct State {
    var connections = 0
    var requests = SlidingWindow()
  }

  private let state = Mutex(State())

  /// Counts a new connection until `disconnect`, even above the limit.
  /// - Returns: whether it is within the limit; nil means no limit.
  func connect(limit: Int?) -> Bool {
    state.withLock { state in
      state.connections += 1
      return limit.map { state.connections <= $0 } ?? true
    }
  }

  func disconnect() { state.withLock { $0.connections -= 1 } }

  /// Counts a request if it is within the limit per second.
  func ask(limit: Int, at now: NIODeadline) -> Bool {
    let slot = Int64(now.uptimeNanoseconds / Self.slotLength)
    return state.withLock { $0.requests.take(limit: limit, slot: slot) }
  }

  /// Whether the state can be discarded.
  func isIdle(at now: NIODeadline) -> Bool {
    let slot = Int64(now.uptimeNanoseconds / Self.slotLength)
    return state.withLock { $0.connections == 0 && $0.requests.isIdle(in: slot) }
  }
}

/// What a client address counts as: an IPv4 address, or the /64 of an IPv6 address.
struct AddressKey: Hashable {
  private let word: UInt64
  private let isV6: Bool

  init(_ address: ClientAddress) {
    let bytes = address.bytes
    isV6 = bytes.count == 16
    word = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }
}

/// All client addresses with open connections or recent requests. IPv6 addresses are grouped by /64.
///
/// The size is bounded by the number of connections and by the requests of two seconds: idle entries are removed as the
/// table grows.
final class AddressTable: Sendable {
  private final class Shard: Sendable {
    struct State {
      var uses: [AddressKey: AddressUse] = [:]
      var sweepAt = 256
    }

    let state = Mutex(State())
  }

  private let shards = (0..<16).map { _ in Shard() }

  /// Counts a new connection.
  /// - Returns: the counter for its requests and `disconnect`, and whether the connection is within the limit.
  func connect(_ address: ClientAddress, limit: Int?, at now: NIODeadline) -> (use: AddressUse, isWithin: Bool) {
    // Hold the shard's lock, so that the entry cannot be removed in between.
    withCounters(of: address, at: now) { ($0, $0.connect(limit: limit)) }
  }

  /// Counts a request that came through a proxy.
  func ask(_ address: ClientAddress, limit: Int, at now: NIODeadline) -> Bool {
    withCounters(of: address, at: now) { $0.ask(limit: limit, at: now) }
  }

  /// The number of addresses in the table.
  var count: Int { shards.reduce(0) { sum, shard in sum + shard.state.withLock { $0.uses.count } } }

  private func withCounters<Result>(of address: ClientAddress, at now: NIODeadline, _ body: (AddressUse) -> Result)
    -> Result
  {
    let key = AddressKey(address)
    return shards[key.hashValue & 15].state.withLock { state in
      if let known = state.uses[key] { return body(known) }
      if state.uses.count >= state.sweepAt {
        state.uses = state.uses.filter { !$0.value.isIdle(at: now) }
        state.sweepAt = max(256, state.uses.count * 2)
      }
      let made = AddressUse()
      state.uses[key] = made
      return body(made)
    }
  }
}
