import Synchronization

/// The places for secrets that wait to be hashed, and how many of them each client address has.
///
/// Attack: one address that has secrets hashed without end takes every place, and nobody else's PIN is compared. An
/// address has a quarter of the places at most (an IPv6 one by its /64), and one at least.
final class HashingShares: Sendable {
  /// What came of asking for a place.
  enum Entry: Equatable {
    /// `leave` must follow.
    case entered
    /// The address has its share.
    case overShare
    /// All places are taken.
    case full
  }

  private struct State {
    var taken = 0
    var places: [[UInt8]: Int] = [:]
    /// How many requests of an address wait until one of its places is free.
    var waiting: [[UInt8]: Int] = [:]
  }

  private let most: Int
  /// The most places of one address.
  let share: Int
  private let state = Mutex(State())

  /// - Parameter most: 1 or more.
  init(most: Int) {
    self.most = most
    share = max(1, most / 4)
  }

  /// How many places are taken, and how many there are.
  var use: (taken: Int, most: Int) { (state.withLock { $0.taken }, most) }

  var hasRoom: Bool { state.withLock { $0.taken < most } }

  func enter(_ address: [UInt8]) -> Entry {
    state.withLock { state in
      guard state.taken < most else { return .full }
      guard state.places[address, default: 0] < share else { return .overShare }
      state.taken += 1
      state.places[address, default: 0] += 1
      return .entered
    }
  }

  func leave(_ address: [UInt8]) {
    state.withLock { state in
      state.taken -= 1
      state.places[address] = state.places[address].flatMap { $0 > 1 ? $0 - 1 : nil }
    }
  }

  /// Four times the share may wait for it, so that what waits is bounded like the places themselves.
  /// - Returns: false where too many of the address wait already; else `stopWaiting` must follow.
  func startWaiting(_ address: [UInt8]) -> Bool {
    state.withLock { state in
      guard state.waiting[address, default: 0] < share * 4 else { return false }
      state.waiting[address, default: 0] += 1
      return true
    }
  }

  func stopWaiting(_ address: [UInt8]) {
    state.withLock { state in state.waiting[address] = state.waiting[address].flatMap { $0 > 1 ? $0 - 1 : nil } }
  }
}
