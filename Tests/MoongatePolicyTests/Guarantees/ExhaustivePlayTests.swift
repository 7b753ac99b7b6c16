import EmailCode
import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import PIN
import Password
import PhoneOTP
import Testing

@testable import MoongatePolicy

/// The prover against the real engine: what it says of random configurations is what happens when each of them is played to every end.
///
/// `make prove` plays ten thousand; PROOF_CONFIGURATIONS says how many, PROOF_SEED where to begin.
@Suite struct ExhaustivePlayTests {
  static let count = ProcessInfo.processInfo.environment["PROOF_CONFIGURATIONS"].flatMap(Int.init) ?? 25
  static let first = ProcessInfo.processInfo.environment["PROOF_SEED"].flatMap(Int.init) ?? 1

  private static let providers: [any Provider] = [PhoneOTP(), EmailCode(), PIN(), Password(), BelievedGoogle()]

  @Test func proverAgreesWithEveryWayThatThereIs() async throws {
    let registry = try ProviderRegistry(Self.providers)
    var held = 0
    var refused = 0
    for seed in Self.first..<Self.first + Self.count {
      let configuration = RandomConfiguration.make(seed: UInt64(seed))
      let folder = try ScratchFolder()
      for (name, text) in configuration.files { try folder.write(text, to: name) }
      let wanted = Self.providers.map(\.descriptor).filter { configuration.providers.contains($0.name.rawValue) }
      let generation: any PolicyGeneration
      switch ConfigurationLoader(providers: wanted, environment: [:]).load(folder: folder.path) {
      case .success(let loaded): generation = loaded
      // A flow of which every step may be skipped.
      case .failure: continue
      }
      let problems = try #require(GuaranteeProver(generation, providers: registry)).problems()
      let begun = try await ExhaustivePlay(configuration, generation, providers: registry).play()
      for guarantee in generation.guarantees {
        guard case .sessions(let facts) = guarantee.scope else { continue }
        let broken = begun.first { session in
          session.world.fits(facts, isNewAccount: session.isNewAccount)
            && !guarantee.demand.isMet(Array(session.passed), age: { _ in .zero })
        }
        let problem = problems.first { $0.location.line == guarantee.location.line }
        if broken == nil { held += 1 } else { refused += 1 }
        if (broken == nil) != (problem == nil) {
          Issue.record(
            """
            seed \(seed), guarantees.lua:\(guarantee.location.line): the prover says \(problem?.message ?? "it holds"); played: \
            \(broken.map { "\($0)" } ?? "it holds")
            \(configuration.files.sorted { $0.key < $1.key }.map { "-- \($0.key)\n\($0.value)" }.joined(separator: "\n"))
            """)
        }
      }
    }
    // A generator that made only one of the two would prove nothing.
    #expect(held > Self.count / 2 && refused > Self.count / 2, "\(held) held, \(refused) refused")
  }
}
