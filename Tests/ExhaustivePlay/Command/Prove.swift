import ExhaustivePlay
import Foundation

/// `make prove`: plays random configurations exhaustively and compares the results with the prover.
///
/// `prove [COUNT [FIRST SEED]]`; exits with 1 if prover and play disagree.
@main struct Prove {
  static func main() async throws {
    let arguments = CommandLine.arguments.dropFirst().compactMap(Int.init)
    let count = arguments.first ?? 10_000
    let first = arguments.dropFirst().first ?? 1
    guard arguments.count == CommandLine.arguments.count - 1, count > 0, first >= 0 else {
      FileHandle.standardError.write(Data("Usage: prove [COUNT [FIRST SEED]], both whole numbers.\n".utf8))
      exit(2)
    }
    var sum = Comparison()
    var done = 0
    try await withThrowingTaskGroup(of: Comparison.self) { group in
      var seeds = (first..<first + count).makeIterator()
      for _ in 0..<ProcessInfo.processInfo.activeProcessorCount {
        if let seed = seeds.next() {
          group.addTask { try await Comparison(seed: seed, admits: seed.isMultiple(of: 2)) }
        }
      }
      while let part = try await group.next() {
        if let seed = seeds.next() {
          group.addTask { try await Comparison(seed: seed, admits: seed.isMultiple(of: 2)) }
        }
        sum += part
        done += 1
        part.disagreements.forEach(say)
        if done % 250 == 0 || done == count {
          say(
            """
            \(done) of \(count) configurations: \(sum.held) guarantees held, \(sum.broken) broken, \(sum.undecided) take too much work to prove, \
            \(sum.disagreements.count) disagreements
            """)
        }
      }
    }
    exit(sum.disagreements.isEmpty ? 0 : 1)
  }

  /// Not buffered, even into a file: a run takes an hour and may be stopped early.
  private static func say(_ line: String) { FileHandle.standardOutput.write(Data("\(line)\n".utf8)) }
}
