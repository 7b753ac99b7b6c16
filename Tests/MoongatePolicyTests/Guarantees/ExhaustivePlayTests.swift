import ExhaustivePlay
import Testing

/// The prover against the real engine: what it says of random configurations is what happens when each of them is
/// played to every end.
///
/// `make prove` plays ten thousand.
@Suite struct ExhaustivePlayTests {
  static let count = 25
  /// Seeds that found mistakes of the prover.
  static let regressions = [488, 1080, 1587, 1683, 2705, 2830, 3040, 3440, 3612, 7058, 7797]

  @Test func proverAgreesWithEveryWayThatThereIs() async throws {
    var sum = Comparison()
    for seed in Array(1...Self.count) + Self.regressions { sum += try await Comparison(seed: seed) }
    for disagreement in sum.disagreements { Issue.record("\(disagreement)") }
    #expect(sum.undecided == 0)
    // A generator that made only one of the two would prove nothing.
    #expect(sum.held > Self.count / 2 && sum.broken > Self.count / 2, "\(sum.held) held, \(sum.broken) broken")
  }
}
