import MoongateCore
import NIOCore
import Synchronization

/// What one client address has open and has asked for lately, by all event loops together.
///
/// Its lock is shared only between the connections of one client, and is taken per request only where a limit is set.
final class AddressUse: Sendable {
  /// Requests are counted in slots of 50 ms. The slot at hand and the twenty before it reach back a second or a little
  /// more, so that no second, wherever it begins, holds more requests than the limit.
  private static let slotLength: UInt64 = 50_000_000
  private static let slots: Int64 = 21

  private struct State {
    var connections = 0
    var requests = InlineArray<21, UInt32>(repeating: 0)
    var total = 0
    /// The slot at hand, counted on the steady clock.
    var newest: Int64 = 0

    mutating func advance(to slot: Int64) {
      // Event loops look at the clock at slightly different moments: who comes late counts in the newest slot.
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

  /// Counts a connection in.
  /// - Returns: whether it is within the limit; nil: there is none. Counted either way, until `disconnect`.
  func connect(limit: Int?) -> Bool {
    state.withLock { state in
      state.connections += 1
      return limit.map { state.connections <= $0 } ?? true
    }
  }

  func disconnect() { state.withLock { $0.connections -= 1 } }

  /// Counts a request in where it is within the limit, per second; a refused one is not counted.
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

  /// Whether nothing would be lost if it were forgotten.
  func isIdle(at now: NIODeadline) -> Bool {
    let slot = Int64(now.uptimeNanoseconds / Self.slotLength)
    return state.withLock { $0.connections == 0 && slot - $0.newest >= Self.slots }
  }
}

/// All client addresses that have something open or asked a moment ago. An IPv6 address counts by its /64.
///
/// Bounded by the connections there may be and by the requests of two seconds: what is idle is swept out as it grows.
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

  /// Counts a connection in.
  /// - Returns: what to count its requests by and to `disconnect`, within the limit or not, and whether it is.
  func connect(_ address: ClientAddress, limit: Int?, at now: NIODeadline) -> (use: AddressUse, isWithin: Bool) {
    // Under the shard's lock, so that it cannot be swept out in between.
    withUse(of: address, at: now) { ($0, $0.connect(limit: limit)) }
  }

  /// Counts a request in that came through a proxy.
  func ask(_ address: ClientAddress, limit: Int, at now: NIODeadline) -> Bool {
    withUse(of: address, at: now) { $0.ask(limit: limit, at: now) }
  }

  /// How many addresses are kept.
  var count: Int { shards.reduce(0) { sum, shard in sum + shard.state.withLock { $0.uses.count } } }

  private func withUse<Result>(of address: ClientAddress, at now: NIODeadline, _ body: (AddressUse) -> Result) -> Result
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
