import Foundation
import Logging
import MoongateSDK
import Synchronization

/// The running programs, each for as long as a generation uses it.
///
/// The programs of a candidate start separately from those of the active generation. A program whose entry did not
/// change is shared. The new programs of a refused candidate are stopped.
package final class Programs: Sendable {
  private struct Weak {
    weak var program: Program?
    /// The settings that it was configured with.
    let settings: [String: WireSetting]
    let secrets: [String: String]
  }

  private let limits: ProgramLimits
  private let readers: [IdentifierKind: any CodeProvider]
  private let logger: Logger
  private let jitter: @Sendable () -> Double
  private let listener: (@Sendable (ReceivedNotification) -> Void)?
  private let threads = ThreadStarter()
  private let running = Mutex<[ProgramSpecification: [Weak]]>([:])

  /// - Parameters:
  ///   - readers: the gateway's parsers for each kind of identifier.
  ///   - listener: receives the output and violations of the programs unredacted, for tests of a provider.
  ///   - jitter: in 0..<1, so that programs do not restart at the same moment.
  package init(
    limits: ProgramLimits = ProgramLimits(), readers: [IdentifierKind: any CodeProvider], logger: Logger,
    listener: (@Sendable (ReceivedNotification) -> Void)? = nil, jitter: @escaping @Sendable () -> Double
  ) {
    self.listener = listener
    self.limits = limits
    self.readers = readers
    self.logger = logger
    self.jitter = jitter
  }

  /// Starts the programs concurrently and reads their introductions. Blocks until the handshakes have finished.
  /// - Returns: for each specification in order, the introduced program or its problems.
  package func introduce(_ specifications: [ProgramSpecification]) -> [Result<IntroducedProgram, ProgramProblem>] {
    let started = specifications.map { specification in
      (specification, find(specification) ?? start(specification))
    }
    return started.map { specification, program in
      switch program.introduced() {
      case .failure(let fault): return .failure(ProgramProblem(sentences: ["\(fault)"]))
      case .success(let introduction):
        guard let name = ProviderName(rawValue: specification.name) else {
          return .failure(ProgramProblem(sentences: ["is not a provider name: use lower-case letters, digits and _"]))
        }
        do throws(ProgramProblem) {
          let descriptor = try introduction.descriptor(name: name, source: specification.path, readers: readers)
          return .success(IntroducedProgram(program: program, introduction: introduction, descriptor: descriptor))
        } catch {
          return .failure(error)
        }
      }
    }
  }

  private func start(_ specification: ProgramSpecification) -> Program {
    Program(specification, limits: limits, threads: threads, logger: logger, listener: listener, jitter: jitter)
  }

  private func find(_ specification: ProgramSpecification) -> Program? {
    running.withLock { running in running[specification]?.lazy.compactMap(\.program).first { !$0.isSpent } }
  }

  /// Sends the settings to an introduced program. Blocks until it has answered.
  /// - Throws: why the program refuses them.
  package func configure(
    _ introduced: IntroducedProgram, values: [String: SettingValue], secrets: [String: String]
  ) throws(ProgramProblem) -> any Provider {
    let specification = introduced.program.specification
    let settings = values.mapValues(WireSetting.init)
    let sameAsBefore = running.withLock { running in
      running[specification]?.first {
        $0.settings == settings && $0.secrets == secrets && !($0.program?.isSpent ?? true)
      }?.program
    }
    if let sameAsBefore { return introduced.provider(sameAsBefore, readers: readers) }
    // A program that runs with other settings keeps them until it is no longer used.
    let isTaken = find(specification) === introduced.program
    let program = isTaken ? start(specification) : introduced.program
    if isTaken, case .failure(let fault) = program.introduced() { throw ProgramProblem(sentences: ["\(fault)"]) }
    let all = settings.merging(secrets.mapValues { .text($0) }) { _, secret in secret }
    let line = ProgramInbox.Settings { id in
      try JSONLine.encode(Outgoing(id: id, method: .configure, params: Configuration(settings: all)))
    }
    if case .failure(let fault) = program.configure(line, secrets: Array(secrets.values)) {
      throw ProgramProblem(sentences: ["\(fault)"])
    }
    running.withLock { running in
      for key in running.keys { running[key]?.removeAll { $0.program == nil } }
      running = running.filter { !$0.value.isEmpty }
      running[specification, default: []].append(Weak(program: program, settings: settings, secrets: secrets))
    }
    return introduced.provider(program, readers: readers)
  }

  /// Whether the programs of all these providers still run with unchanged introductions.
  package func areWhole(_ providers: [any Provider]) -> Bool {
    !providers.contains { ($0 as? any ProgramBacked)?.program.isSpent ?? false }
  }

  /// Stops all programs that these providers do not use, after their current calls have finished.
  package func keep(only providers: [any Provider]) {
    let kept = providers.compactMap { ($0 as? any ProgramBacked)?.program }
    let left = running.withLock { running -> [Program] in
      var left: [Program] = []
      for (key, entries) in running {
        for entry in entries {
          if let program = entry.program, !kept.contains(where: { $0 === program }) { left.append(program) }
        }
        running[key] = entries.filter { entry in kept.contains { $0 === entry.program } }
      }
      running = running.filter { !$0.value.isEmpty }
      return left
    }
    for program in left { program.retire() }
  }

  /// Stops all programs. Blocks until they have exited, for at most two farewell periods.
  package func end() {
    let all = running.withLock { running in
      defer { running = [:] }
      return running.values.flatMap { $0.compactMap(\.program) }
    }
    let threads = all.map { program in
      let done = OneAnswer<Bool>()
      Thread.detachNewThread {
        program.end()
        done.give(true)
      }
      return done
    }
    for done in threads { _ = done.wait(atMost: limits.farewell * 2 + .seconds(2)) }
  }
}

/// A program after its introduction.
package struct IntroducedProgram: Sendable {
  let program: Program
  let introduction: Introduction
  /// The equivalent provider descriptor.
  package let descriptor: ProviderDescriptor
  /// The client library that the program reports; nil if it reports none.
  package var library: String? { introduction.library }

  func provider(_ program: Program, readers: [IdentifierKind: any CodeProvider]) -> any Provider {
    let reader = introduction.identifier.flatMap { readers[$0.kind] }
    if introduction.shape == .code, let reader {
      return ExecCodeProvider(descriptor: descriptor, program: program, reader: reader)
    }
    return ExecFullProvider(descriptor: descriptor, program: program, reader: reader)
  }
}

/// A provider that is backed by a program.
protocol ProgramBacked: Provider {
  var program: Program { get }
}

extension ExecCodeProvider: ProgramBacked {}
extension ExecFullProvider: ProgramBacked {}
