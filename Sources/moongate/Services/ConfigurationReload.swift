import Foundation
import Logging
import MoongateCore
import MoongatePolicy
import MoongateProxy
import ServiceLifecycle
import UnixSignals

/// Switches the gateway to another generation, whole or not at all: by a change of files, by SIGHUP, by the admin
/// listener.
actor ConfigurationReload {
  /// Ten seconds' worth.
  private static let looksForRoom = 100
  let folder: ConfigurationFolder
  let generations: ActiveGeneration
  private let tls: ServerTLS?
  let programs: ProviderProcessManager?
  private let gate: ReloadGate?
  let shadowing: Shadowing?
  /// What the folder held when another one's configuration was made active in its place, and where that came from.
  var promotion: Promotion?
  var watching: Task<Void, Never>?
  /// What listeners, store and key were made from.
  private let started: GatewaySettings
  let clock: any GatewayClock
  private let random: any RandomSource
  private let audit: AuditTrail
  private let notifier: ServiceNotifier
  let logger: Logger
  /// The newest of the reloads, which wait for each other: two at once could switch back to the older folder.
  private var newest: Task<RefusedConfiguration?, Never>?

  init(
    folder: ConfigurationFolder, generations: ActiveGeneration, tls: ServerTLS? = nil,
    programs: ProviderProcessManager? = nil,
    gate: ReloadGate? = nil, shadowing: Shadowing? = nil, clock: any GatewayClock,
    random: any RandomSource, audit: AuditTrail, notifier: ServiceNotifier = .none, logger: Logger
  ) {
    self.folder = folder
    self.generations = generations
    self.tls = tls
    self.programs = programs
    self.gate = gate
    self.shadowing = shadowing
    self.clock = clock
    self.random = random
    self.audit = audit
    self.notifier = notifier
    self.logger = logger
    started = generations.current.gateway
  }

  /// Reads the folder as it is now.
  /// - Parameter isForced: whether the gate (`gate` in gateway.lua) is passed over.
  /// - Returns: nil where its generation is active; else why not.
  @discardableResult func reload(isForced: Bool = false) async -> RefusedConfiguration? {
    await inTurn { await self.switchOver(isForced) }
  }

  /// Does one thing after the other.
  func inTurn(_ work: @escaping @Sendable () async -> RefusedConfiguration?) async -> RefusedConfiguration? {
    let before = newest
    let task = Task { () -> RefusedConfiguration? in
      _ = await before?.value
      return await work()
    }
    newest = task
    return await task.value
  }

  private func switchOver(_ isForced: Bool) async -> RefusedConfiguration? {
    guard await hasRoom() else {
      let problem = ConfigurationProblem(
        location: SourceLocation(file: folder.path, line: 0), path: "",
        message:
          "not read: requests under way still use \(ActiveGeneration.mostLive) generations; reload again when they have ended"
      )
      return refuse(RefusedConfiguration(id: nil, problems: [problem], isFolderMissing: false))
    }
    // A program that came back as another is replaced by a reload, though the folder is the same.
    let isWhole = programs?.areWhole(in: generations.current) ?? true
    let active = generations.current.id
    let loaded = await folder.load(unless: isWhole ? active : nil)
    switch loaded {
    case .success(let generation) where generation.id == active && isWhole:
      if generations.status.refused?.id != nil {
        logger.notice("generation \(active.prefix(8)) is what the folder holds again")
      }
      settle()
      return finish()
    case .success(let generation) where !isForced && promotion?.replaced.contains(generation.id) ?? false:
      logger.notice(
        "generation \(active.prefix(8)) kept, which was promoted: the folder holds what it took the place of")
      return finish()
    case .success(let generation):
      let refused = await activate(generation, isForced)
      if refused == nil { promotion = nil }
      return refused
    case .failure(let refused): return refuse(refused)
    }
  }

  /// Switches to a candidate that passed every check but the gate.
  /// - Parameter more: what else holds only until the process is started again.
  func activate(_ generation: any PolicyGeneration, _ isForced: Bool, more: [ConfigurationProblem] = []) async
    -> RefusedConfiguration?
  {
    let before = generations.current
    var detail = ["generation": generation.id, "before": before.id]
    switch await gate?.answer(to: generation, in: before, isForced: isForced) {
    case .shut(let problem):
      programs?.keep(only: before)
      return refuse(RefusedConfiguration(id: generation.id, problems: [problem], isFolderMissing: false))
    case .open(let note?):
      detail["gate"] = note
      logger.notice("gate: \(note)")
    case .open(nil), nil: break
    }
    let now = clock.now()
    let changes = generation.gateway.changesThatNeedRestart(since: started) + more
    generations.activate(generation, at: now, restartNeeded: changes)
    // Who began under the one before goes on with its programs; nobody new does.
    programs?.keep(only: generation)
    audit.record(AuditEvent(id: DecisionID(from: random), at: now, kind: .generationActive, detail: detail))
    logger.notice("generation \(generation.id.prefix(8)) is active", metadata: ["before": "\(before.id.prefix(8))"])
    for warning in generation.warnings { logger.warning("\(warning)") }
    for change in changes { logger.warning("\(change)") }
    return finish()
  }

  /// The folder holds what is active: a promoted configuration has its files in place.
  private func settle() {
    guard promotion != nil else { return }
    promotion = nil
    generations.note(restartNeeded: generations.current.gateway.changesThatNeedRestart(since: started))
  }

  /// The folder is good; its certificate may not be. A pair that cannot be used is told like a refused candidate, and
  /// the one in use goes on.
  private func finish() -> RefusedConfiguration? {
    if let problem = certificateProblem() {
      return refuse(RefusedConfiguration(id: nil, problems: [problem], isFolderMissing: false))
    }
    generations.clearRefused()
    notifier.status(status)
    return nil
  }

  /// What the service manager shows: the generation that serves, and whether a candidate was refused.
  var status: String {
    let serving = Readiness.status(generations.current.id)
    guard let refused = generations.status.refused else { return serving }
    return "\(serving); the configuration as it is now is refused (problems: \(refused.problems.count)): see the log"
  }

  private func certificateProblem() -> ConfigurationProblem? {
    let settings = generations.current.gateway
    guard let tls, let files = settings.tls, let problem = tls.reload(files) else { return nil }
    return ConfigurationProblem(
      location: settings.locations["tls"] ?? SourceLocation(file: "gateway.lua", line: 0), path: "tls",
      message: "\(problem) New connections get the one before.")
  }

  /// Whether the certificate or its key changed since they were read.
  var certificateHasChanged: Bool {
    guard let tls, let files = generations.current.gateway.tls else { return false }
    return tls.hasChanged(files)
  }

  /// Reads certificate and key again; the folder too, whose state is told with theirs.
  func reloadCertificate() async {
    logger.notice("the certificate changed: reading it again")
    await reload()
  }

  /// Shows the refused candidate wherever an operator looks: the log, the events, `GET /policy`.
  private func refuse(_ refused: RefusedConfiguration) -> RefusedConfiguration {
    let now = clock.now()
    let active = generations.current.id
    let known = generations.status.refused
    generations.refuse(ActiveGeneration.RefusedCandidate(id: refused.id, at: now, problems: refused.problems))
    let count = "\(refused.problems.count) problem\(refused.problems.count == 1 ? "" : "s")"
    notifier.status(status)
    // What is wrong with a folder that is as bad as it was a moment ago is told already.
    guard known?.problems != refused.problems else {
      logger.error("generation \(active.prefix(8)) kept; the candidate is refused as before (\(count))")
      return refused
    }
    audit.record(
      AuditEvent(
        id: DecisionID(from: random), at: now, kind: .generationRefused,
        detail: [
          "candidate": refused.id ?? "", "problems": refused.problems.map(\.description).joined(separator: "\n"),
        ]))
    for problem in refused.problems { logger.error("\(problem)") }
    logger.error(
      "generation \(active.prefix(8)) kept; candidate \(refused.id?.prefix(8) ?? "unreadable") refused (\(count))")
    return refused
  }

  /// Waits until one generation more may be in memory.
  /// Attack: slow requests, each begun under another generation, would keep all of them.
  private func hasRoom() async -> Bool {
    for _ in 0..<Self.looksForRoom where generations.live >= ActiveGeneration.mostLive {
      do { try await Task.sleep(for: .milliseconds(100)) } catch { return false }
    }
    return generations.live < ActiveGeneration.mostLive
  }
}

/// Reloads when a file changes.
struct FileReload: Service {
  let reload: ConfigurationReload
  let watcher: ConfigurationWatcher

  func run() async throws {
    await cancelWhenGracefulShutdown { await watcher.run { await reload.reload() } }
  }
}

/// Reloads at SIGHUP, as daemons do.
struct SignalReload: Service {
  let reload: ConfigurationReload
  let accessLog: AccessLog?
  let notifier: ServiceNotifier
  let logger: Logger

  func run() async throws {
    await cancelWhenGracefulShutdown {
      for await _ in await UnixSignalsSequence(trapping: .sighup) {
        notifier.reloading()
        accessLog?.reopen()
        logger.notice("SIGHUP: reading the configuration again")
        await reload.reload()
        notifier.ready(await reload.status)
      }
    }
  }
}
