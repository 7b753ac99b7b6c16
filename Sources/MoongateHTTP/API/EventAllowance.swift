import MoongateCore
import Synchronization

/// How many events an address may report: so many at once, and so many a second after that.
///
/// Attack: a script that fills the audit trail, so that what it really did is pushed out.
struct EventAllowance: Sendable, Equatable {
  static let most = 200.0
  static let perSecond = 2.0

  private(set) var left = Self.most
  private(set) var since: Timestamp

  init(at now: Timestamp) { since = now }

  /// Whether it is as good as new.
  func isFull(at now: Timestamp) -> Bool { grown(at: now) >= Self.most }

  /// - Returns: how long to wait where there is no room for so many.
  mutating func take(_ count: Int, at now: Timestamp) -> Duration? {
    left = grown(at: now)
    since = max(since, now)
    let missing = Double(max(1, count)) - left
    guard missing > 0 else {
      left -= Double(max(1, count))
      return nil
    }
    return .milliseconds(Int64((missing / Self.perSecond * 1000).rounded(.up)))
  }

  private func grown(at now: Timestamp) -> Double {
    min(Self.most, left + max(0, Double((now - since).wholeMilliseconds)) / 1000 * Self.perSecond)
  }
}

/// The allowances of all addresses; bounded, and where there are too many, new addresses wait.
final class EventAllowances: Sendable {
  private static let most = 20_000

  private let known = Mutex<[[UInt8]: EventAllowance]>([:])

  /// - Returns: how long to wait where there is no room for so many.
  func take(_ count: Int, from address: [UInt8], at now: Timestamp) -> Duration? {
    known.withLock { known in
      if known[address] == nil, known.count >= Self.most {
        known = known.filter { !$0.value.isFull(at: now) }
        guard known.count < Self.most else { return .seconds(60) }
      }
      return known[address, default: EventAllowance(at: now)].take(count, at: now)
    }
  }
}
