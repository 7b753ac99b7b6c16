import MoongateCore
import Synchronization

/// A per-process estimate of the number of flows without any proof per client address, so that the store need not count
/// them each time one is stored.
final class FlowOrigins: Sendable {
  /// After this many flows of an address they are counted in any case: other gateways also store some, and users
  /// complete theirs.
  private static let stretch = 128
  /// The maximum number of addresses.
  private static let most = 10_000

  private let counts = Mutex<[String: (count: Int, stored: Int)]>([:])

  /// Records a stored flow.
  /// - Returns: whether the address's flows must be counted.
  func isDue(_ origin: String) -> Bool {
    counts.withLock { counts in
      if counts.count >= Self.most, counts[origin] == nil { counts = [:] }
      counts[origin, default: (0, 0)].count += 1
      counts[origin, default: (0, 0)].stored += 1
      guard let known = counts[origin] else { return true }
      return known.count > FlowBound.perAddress || known.stored >= Self.stretch
    }
  }

  /// Records the result of counting.
  func know(_ origin: String, count: Int) { counts.withLock { $0[origin] = (count, 0) } }
}
