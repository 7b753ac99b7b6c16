import Foundation
import Logging
import MoongateSDK
import Synchronization

/// The programs that run, each for as long as a generation uses it.
///
/// A candidate's programs start aside: what runs for the active generation is not touched, and is taken over by the
/// candidate where nothing of its entry changed. A candidate that is refused lets its own go again.
package final class Programs: Sendable {
  private struct Weak {
    weak var program: Program?
    /// What it was configured by.
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
  ///   - readers: how the gateway itself reads each kind of identifier.
  ///   - listener: is told what the programs say and do that stands in a log otherwise, unredacted: for whoever tries
  ///     one out.
  ///   - jitter: in 0..<1, so that restarts are never at one moment.
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

  /// Starts the programs, all at once, and asks each what it is. Blocks for as long as a handshake may take.
  /// - Returns: in the order of the specifications: what each declares, ready for its settings, or sentences on why
  ///   not.
  package func introduce(_ specifications: [ProgramSpecification]) -> [Result<IntroducedProgram, ProgramProblem>] {
    let started = specifications.map { specification in
      (specification, find(specification) ?? start(specification))
    }
    return started.map { specification, program in
      switch program.introduced() {
      case .failure(let fault): return .failure(ProgramProblem(sentences: ["\(fault)"]))
      case .success(let introduction):
        guard let name = ProviderName(rawValue: specification.name) else {
          return .failure(ProgramProblem(sentences: ["is no name of a provider: lower-case letters, digits and _"]))
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

  /// Gives an introduced program its settings. Blocks for as long as a handshake may take.
  /// - Throws: why it does not take them.
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
    // What runs with other settings goes on with those until nobody uses it.
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

  /// Whether none of these providers' programs is gone for good, or came back as another than it was loaded as.
  package func areWhole(_ providers: [any Provider]) -> Bool {
    !providers.contains { ($0 as? any ProgramBacked)?.program.isSpent ?? false }
  }

  /// Lets all programs end that these providers do not use: when those who use them still are done.
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

  /// Ends all of them. Blocks until they have ended, at most for two farewells.
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

/// A program that has said what it is.
package struct IntroducedProgram: Sendable {
  let program: Program
  let introduction: Introduction
  /// What it declares, as a provider in Swift would.
  package let descriptor: ProviderDescriptor
  /// The library for programs that it uses, as it says; nil where it says nothing.
  package var library: String? { introduction.library }

  func provider(_ program: Program, readers: [IdentifierKind: any CodeProvider]) -> any Provider {
    let reader = introduction.identifier.flatMap { readers[$0.kind] }
    if introduction.shape == .code, let reader {
      return ExecCodeProvider(descriptor: descriptor, program: program, reader: reader)
    }
    return ExecFullProvider(descriptor: descriptor, program: program, reader: reader)
  }
}

/// A provider that a program stands behind.
protocol ProgramBacked: Provider {
  var program: Program { get }
}

extension ExecCodeProvider: ProgramBacked {}
extension ExecFullProvider: ProgramBacked {}
