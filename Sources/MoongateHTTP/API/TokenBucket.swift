import MoongateCore
import Synchronization

/// A token bucket for events or requests from one address.
///
/// Attack: a script fills the audit trail, so that the record of its real actions is evicted.
struct TokenBucket: Sendable, Equatable {
  private let most: Double
  private let perSecond: Double
  private(set) var left: Double
  private(set) var since: Timestamp

  init(most: Double, perSecond: Double, at now: Timestamp) {
    self.most = most
    self.perSecond = perSecond
    left = most
    since = now
  }

  /// Whether the bucket is full.
  func isFull(at now: Timestamp) -> Bool { grown(at: now) >= most }

  /// - Returns: how long to wait if there are not enough tokens.
  mutating func take(_ count: Int, at now: Timestamp) -> Duration? {
    left = grown(at: now)
    since = max(since, now)
    let missing = Double(max(1, count)) - left
    guard missing > 0 else {
      left -= Double(max(1, count))
      return nil
    }
    return .milliseconds(Int64((missing / perSecond * 1000).rounded(.up)))
  }

  private func grown(at now: Timestamp) -> Double {
    min(most, left + max(0, Double((now - since).wholeMilliseconds)) / 1000 * perSecond)
  }
}

/// The token buckets of all addresses. Their number is bounded; when it is reached, new addresses have to wait.
package final class EventAllowances: Sendable {
  private static let maxAddresses = 20_000

  private let most: Double
  private let perSecond: Double
  private let known = Mutex<[[UInt8]: TokenBucket]>([:])

  /// - Parameters:
  /// - most: the capacity of a bucket.
  /// - perSecond: the refill rate.
  package init(most: Double = 200, perSecond: Double = 2) {
    self.most = most
    self.perSecond = perSecond
  }

  /// - Returns: how long to wait until a token is left. Takes none.
  func wait(_ address: [UInt8], at now: Timestamp) -> Duration? {
    known.withLock { known in
      guard var bucket = known[address] else { return nil }
      return bucket.take(1, at: now)
    }
  }

  /// - Returns: how long to wait if there are not enough tokens.
  package func take(_ count: Int, from address: [UInt8], at now: Timestamp) -> Duration? {
    known.withLock { known in
      if known[address] == nil, known.count >= Self.maxAddresses {
        known = known.filter { !$0.value.isFull(at: now) }
        guard known.count < Self.maxAddresses else { return .seconds(60) }
      }
      return known[address, default: TokenBucket(most: most, perSecond: perSecond, at: now)].take(count, at: now)
    }
  }
}
