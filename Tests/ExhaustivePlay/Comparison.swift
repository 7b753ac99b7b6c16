import EmailCode
import MoongateCore
import MoongatePolicy
import MoongateSDK
import MoongateTesting
import PIN
import Password
import PhoneOTP

/// Compares the prover with the real engine for one random configuration: its result for each guarantee, and the result
/// of an exhaustive play.
package struct Comparison: Sendable {
  /// Guarantees that no play violated.
  package private(set) var held = 0
  /// Guarantees that a play violated.
  package private(set) var broken = 0
  /// Guarantees that the prover refuses because the proof exceeds its budget.
  package private(set) var undecided = 0
  /// Disagreements of prover and play: the seed, both results, and the files of the configuration.
  package private(set) var disagreements: [String] = []

  private static let providers: [any Provider] = [PhoneOTP(), EmailCode(), PIN(), Password(), BelievedGoogle()]

  /// The sum of comparisons.
  package init() {}

  package static func += (sum: inout Self, part: Self) {
    sum.held += part.held
    sum.broken += part.broken
    sum.undecided += part.undecided
    sum.disagreements += part.disagreements
  }

  /// Generates, proves and plays the configuration of a seed. Configurations that the loader refuses are not counted.
  /// - Parameter admits: whether accounts.lua has groups, and `admit`.
  package init(seed: Int, admits: Bool = false) async throws {
    let registry = try ProviderRegistry(Self.providers)
    let configuration = RandomConfiguration.make(seed: UInt64(seed), admits: admits)
    let folder = try ScratchFolder()
    for (name, text) in configuration.files { try folder.write(text, to: name) }
    let wanted = Self.providers.filter { configuration.providers.contains($0.descriptor.name.rawValue) }
    let generation: any PolicyGeneration
    switch ConfigurationLoader(providers: wanted, environment: [:]).load(folder: folder.path) {
    case .success(let loaded): generation = loaded
    // A flow with only skippable steps.
    case .failure: return
    }
    guard let prover = GuaranteeProver(generation, providers: registry) else { throw NotProvable(seed: seed) }
    let problems = prover.problems()
    let sessions = try await ExhaustivePlay(configuration, generation, providers: registry).play()
    for guarantee in generation.guarantees {
      guard case .sessions(let facts) = guarantee.scope, let demand = prover.demand(of: guarantee) else { continue }
      let breach = sessions.first { session in
        session.world.fits(facts, isNewAccount: session.isNewAccount, isRecovered: session.isRecovered)
          && !demand.isMet(Array(session.passed), age: { _ in .zero })
      }
      let problem = problems.first { $0.location.line == guarantee.location.line }
      if problem?.message.hasSuffix(GuaranteeProver.undecided) ?? false {
        undecided += 1
        continue
      }
      if breach == nil { held += 1 } else { broken += 1 }
      if (breach == nil) == (problem == nil) { continue }
      disagreements.append(
        """
        seed \(seed)\(admits ? " with admit" : ""), guarantees.lua:\(guarantee.location.line): the prover says \(problem?.message ?? "it holds"); played: \
        \(breach.map { "\($0)" } ?? "it holds")
        \(configuration.files.sorted { $0.key < $1.key }.map { "-- \($0.key)\n\($0.value)" }.joined(separator: "\n"))
        """)
    }
  }

  /// The prover does not accept the configuration of this seed.
  package struct NotProvable: Error {
    package let seed: Int
  }
}
