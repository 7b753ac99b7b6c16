import ExhaustivePlay
import Testing

/// Compares the prover with the real engine: its result for random configurations must match an exhaustive play.
///
/// `make prove` compares ten thousand.
@Suite struct ExhaustivePlayTests {
  static let count = 15
  /// Seeds that found mistakes of the prover.
  static let regressions = [488, 1080, 1587, 1683, 2705, 2830, 3040, 3440, 3612, 7058, 7797]

  @Test func proverAgreesWithExhaustivePlay() async throws {
    var sum = Comparison()
    for seed in Array(1...Self.count) + Self.regressions { sum += try await Comparison(seed: seed) }
    for seed in 1...Self.count { sum += try await Comparison(seed: seed, admits: true) }
    for disagreement in sum.disagreements { Issue.record("\(disagreement)") }
    #expect(sum.undecided == 0)
    // A generator that produces only one of the two results would prove nothing.
    #expect(sum.held > Self.count / 2 && sum.broken > Self.count / 2, "\(sum.held) held, \(sum.broken) broken")
  }
}
