import Foundation
import Logging
import MoongateCore
import MoongateExec
import MoongatePolicy
import MoongateSDK
import Synchronization

/// The programs behind the entries `exec { … }` of gateway.lua: what they are lent, and which of them run.
final class ProviderProcessManager: ProgramStarter {
  private let programs: Programs
  private let files = Mutex<[String]>([])
  private let names = Mutex<Set<String>>([])

  init(logger: Logger) {
    programs = Programs(readers: Providers.readers, logger: logger, jitter: { Double.random(in: 0..<1) })
  }

  /// For tools, which tell problems themselves: of what programs say only errors are worth a line.
  static func forTools() -> ProviderProcessManager { ProviderProcessManager(logger: toolLogger) }

  /// Programs without a configuration, to be tried out.
  /// - Parameter listener: is told what they say and do.
  static func programsForTools(listener: @escaping @Sendable (ReceivedNotification) -> Void) -> Programs {
    // What they do wrong is told by the suite's findings.
    let silent = Logger(label: "exec") { _ in SwiftLogNoOpLogHandler() }
    return Programs(
      readers: Providers.readers, logger: silent, listener: listener, jitter: { Double.random(in: 0..<1) })
  }

  private static var toolLogger: Logger { Logger(label: "exec") { label in LineLog(label: label, level: .error) } }

  /// What a loader needs.
  func loading() -> ProgramLoading {
    ProgramLoading(starter: self) { [self] named in files.withLock { $0 = named } }
  }

  /// What the loader of a candidate needs that is only looked at: its files are not watched.
  func lookingOn() -> ProgramLoading { ProgramLoading(starter: self) { _ in } }

  /// The files that the folder's entries named when it was read last.
  var watched: [String] { files.withLock { $0 } }

  /// The names of all that were started.
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

  /// Whether the generation's programs are what they were when it was loaded.
  func areWhole(in generation: any PolicyGeneration) -> Bool { programs.areWhole(Self.own(generation)) }

  /// Lets all end that the generation does not use, when those who use them still are done.
  func keep(only generation: any PolicyGeneration) { programs.keep(only: Self.own(generation)) }

  /// The generation's providers themselves, also of those that have a title of their own.
  private static func own(_ generation: any PolicyGeneration) -> [any Provider] {
    (generation.registry?.all ?? []).map { ($0 as? any StandInProvider)?.represented ?? $0 }
  }

  /// Ends all of them, and waits for it: at most a few seconds.
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
  /// Nothing of the gateway's own environment but where programs are found: its secrets lie there.
  static var leastEnvironment: [String: String] {
    ["PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"]
  }

  init(_ entry: ProgramEntry) {
    var environment = Self.leastEnvironment
    environment.merge(entry.environment.mapValues { $0.reveal() }) { _, own in own }
    self.init(
      name: entry.name.rawValue, path: entry.path, arguments: entry.arguments, environment: environment,
      folder: entry.folder,
      timeout: entry.timeout, digest: entry.digest)
  }
}
