import MoongateCore
import NIOCore
import Synchronization

/// The open connections and recent requests of one client address, shared by all event loops.
///
/// Only connections of the same client share its lock, and a request takes it only if a limit is set.
final class AddressUse: Sendable {
  /// Requests are counted in slots of 50 ms. The current slot and the twenty before it cover at least one second, so
  /// that no one-second interval contains more requests than the limit.
  private static let slotLength: UInt64 = 50_000_000
  private static let slots: Int64 = 21

  private struct State {
    var connections = 0
    var requests = InlineArray<21, UInt32>(repeating: 0)
    var total = 0
    /// The current slot on the monotonic clock.
    var newest: Int64 = 0

    mutating func advance(to slot: Int64) {
      // Event loops read the clock at slightly different times. A late request counts in the newest slot.
      guard slot > newest else { return }
      for past in max(newest + 1, slot - AddressUse.slots + 1)...slot {
        let index = Int(past % AddressUse.slots)
        total -= Int(requests[index])
        requests[index] = 0
      }
      newest = slot
    }
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
    return state.withLock { state in
      state.advance(to: slot)
      guard state.total < limit else { return false }
      state.total += 1
      state.requests[Int(state.newest % Self.slots)] += 1
      return true
    }
  }

  /// Whether the state can be discarded.
  func isIdle(at now: NIODeadline) -> Bool {
    let slot = Int64(now.uptimeNanoseconds / Self.slotLength)
    return state.withLock { $0.connections == 0 && slot - $0.newest >= Self.slots }
  }
}

/// All client addresses with open connections or recent requests. IPv6 addresses are grouped by /64.
///
/// The size is bounded by the number of connections and by the requests of two seconds: idle entries are removed as the
/// table grows.
final class AddressTable: Sendable {
  private struct Key: Hashable {
    let word: UInt64
    let isV6: Bool

    init(_ address: ClientAddress) {
      let bytes = address.bytes
      isV6 = bytes.count == 16
      word = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
  }

  private final class Shard: Sendable {
    struct State {
      var uses: [Key: AddressUse] = [:]
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
    let key = Key(address)
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
