import Synchronization

/// Counts the permits for hashing, in total and per client address.
///
/// Attack: one address that has secrets hashed without end takes every permit, and no other user's PIN is compared. An
/// address (for IPv6, its /64) therefore gets at most a quarter of the permits, and at least one.
final class HashingShares: Sendable {
  /// The result of asking for a permit.
  enum Entry: Equatable {
    /// Granted. `leave` must follow.
    case entered
    /// The address has used up its share.
    case overShare
    /// All permits are taken.
    case full
  }

  private struct State {
    var taken = 0
    var permits: [[UInt8]: Int] = [:]
    /// How many requests of each address wait for one of its permits.
    var waiting: [[UInt8]: Int] = [:]
  }

  private let most: Int
  /// The maximum number of permits of one address.
  let share: Int
  private let state = Mutex(State())

  /// - Parameter most: the total number of permits, 1 or more.
  init(most: Int) {
    self.most = most
    share = max(1, most / 4)
  }

  /// The numbers of taken permits and of all permits.
  var use: (taken: Int, most: Int) { (state.withLock { $0.taken }, most) }

  var hasRoom: Bool { state.withLock { $0.taken < most } }

  func enter(_ address: [UInt8]) -> Entry {
    state.withLock { state in
      guard state.taken < most else { return .full }
      guard state.permits[address, default: 0] < share else { return .overShare }
      state.taken += 1
      state.permits[address, default: 0] += 1
      return .entered
    }
  }

  func leave(_ address: [UInt8]) {
    state.withLock { state in
      state.taken -= 1
      state.permits[address] = state.permits[address].flatMap { $0 > 1 ? $0 - 1 : nil }
    }
  }

  /// Registers a request that waits for its address's share. At most four times the share may wait, so that waiting
  /// requests are bounded too.
  /// - Returns: false if too many requests of the address already wait. After true, `stopWaiting` must follow.
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
