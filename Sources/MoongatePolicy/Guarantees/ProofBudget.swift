/// Bounds the work of proving one generation's guarantees, so that a configuration of any size loads at once or is
/// refused with a sentence.
final class ProofBudget {
  /// More work than the bound allows.
  struct Exhausted: Error {}

  /// How many situations the proofs of one generation may look at: states of flows, calls of functions, and states of
  /// path patterns. It is a count and not a time, so that every machine proves the same.
  static let most = 100_000

  private var left: Int

  init(_ most: Int = ProofBudget.most) { left = most }

  func spend() throws(Exhausted) {
    guard left > 0 else { throw Exhausted() }
    left -= 1
  }
}
