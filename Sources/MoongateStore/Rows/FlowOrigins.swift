import MoongateCore
import Synchronization

/// How many flows in which nobody has proved anything each client address has, as far as this process knows: by it the
/// store need not count them whenever one is stored.
final class FlowOrigins: Sendable {
  /// After so many flows of an address they are counted in any case: other gateways store some too, and people finish
  /// theirs.
  private static let stretch = 128
  /// Of so many addresses it is remembered.
  private static let most = 10_000

  private let counts = Mutex<[String: (count: Int, stored: Int)]>([:])

  /// One more was stored.
  /// - Returns: whether they are to be counted.
  func isDue(_ origin: String) -> Bool {
    counts.withLock { counts in
      if counts.count >= Self.most, counts[origin] == nil { counts = [:] }
      counts[origin, default: (0, 0)].count += 1
      counts[origin, default: (0, 0)].stored += 1
      guard let known = counts[origin] else { return true }
      return known.count > FlowBound.perAddress || known.stored >= Self.stretch
    }
  }

  /// They have been counted.
  func know(_ origin: String, count: Int) { counts.withLock { $0[origin] = (count, 0) } }
}
