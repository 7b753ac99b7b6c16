import Foundation
import Logging
import MoongateCore
import MoongateExec
import MoongatePolicy
import MoongateProgram
import MoongateSDK
import Synchronization

/// Manages the provider programs of `exec { … }` entries in gateway.lua: their environment and lifecycle.
final class ProviderProcessManager: ProgramStarter {
  private let programs: Programs
  private let files = Mutex<[String]>([])
  private let names = Mutex<Set<String>>([])

  /// - Parameter readers: the parsers for each kind of identifier, for programs that ask for an identifier.
  init(readers: [IdentifierKind: any CodeProvider], logger: Logger) {
    programs = Programs(readers: readers, logger: logger, jitter: { Double.random(in: 0..<1) })
  }

  /// The program loading for a configuration loader.
  func loading() -> ProgramLoading {
    ProgramLoading(starter: self) { [self] named in files.withLock { $0 = named } }
  }

  /// The program loading for a candidate that is only evaluated. Its files are not watched.
  func unwatchedLoading() -> ProgramLoading { ProgramLoading(starter: self) { _ in } }

  /// The files that gateway.lua of the last loaded folder names: programs, secrets and others.
  var watched: [String] { files.withLock { $0 } }

  /// The names of all programs that were started.
  var started: [String] { names.withLock { $0.sorted() } }

  func introduce(_ entries: [ProgramEntry]) -> [Result<any CandidateProgram, ProgramRefusal>] {
    names.withLock { $0.formUnion(entries.map(\.name.rawValue)) }
    return introduced(entries)
  }

  private func introduced(_ entries: [ProgramEntry]) -> [Result<any CandidateProgram, ProgramRefusal>] {
    programs.introduce(entries.map(ProgramSpecification.init)).map { result in
      switch result {
      case .success(let introduced): .success(Candidate(introduced: introduced, programs: programs))
      case .failure(let problem): .failure(ProgramRefusal(sentences: problem.sentences))
      }
    }
  }

  /// Whether the programs of the generation are still the same as when it was loaded.
  func areWhole(in generation: any PolicyGeneration) -> Bool { programs.areWhole(Self.own(generation)) }

  /// Stops all programs that the generation does not use, once their last users are done.
  func keep(only generation: any PolicyGeneration) { programs.keep(only: Self.own(generation)) }

  /// The providers of the generation, unwrapped if an entry has its own title.
  private static func own(_ generation: any PolicyGeneration) -> [any Provider] {
    (generation.registry?.all ?? []).map { ($0 as? any ProviderWrapper)?.represented ?? $0 }
  }

  /// Stops all programs and waits for them, at most a few seconds.
  func end() async {
    await DedicatedThread.run(at: nil) { programs.end() }
  }

  private struct Candidate: CandidateProgram {
    let introduced: IntroducedProgram
    let programs: Programs

    var descriptor: ProviderDescriptor { introduced.descriptor }

    func accept(_ settings: ProviderSettings) throws(ProgramRefusal) -> any Provider {
      let values = settings.values.merging(settings.texts.mapValues { .text($0) }) { first, _ in first }
      do throws(ProgramProblem) {
        return try programs.configure(introduced, values: values, secrets: settings.secrets.mapValues { $0.reveal() })
      } catch {
        throw ProgramRefusal(sentences: error.sentences)
      }
    }
  }
}

extension ProgramSpecification {
  init(_ entry: ProgramEntry) {
    var environment = Self.leastEnvironment
    environment.merge(entry.environment.mapValues { $0.reveal() }) { _, own in own }
    self.init(
      name: entry.name.rawValue, path: entry.path, arguments: entry.arguments, environment: environment,
      folder: entry.folder,
      timeout: entry.timeout, digest: entry.digest)
  }
}
