/// Limits the work of proving the guarantees of one generation, so that a configuration of any size loads quickly or is
/// refused with a message.
final class ProofBudget {
  /// The budget is exhausted.
  struct Exhausted: Error {}

  /// The maximum number of situations for one generation: states of flows, calls of functions, and states of path
  /// patterns. A count instead of a time gives the same result on every machine.
  static let most = 100_000

  private var left: Int

  init(_ most: Int = ProofBudget.most) { left = most }

  func spend() throws(Exhausted) {
    guard left > 0 else { throw Exhausted() }
    left -= 1
  }
}
