import Foundation
import Logging
import MoongateCore
import MoongatePolicy
import MoongateProxy
import ServiceLifecycle
import UnixSignals

/// Switches the gateway atomically to another generation: after a file change, SIGHUP, or a request to the admin
/// listener.
actor ConfigurationReload {
  /// Attempts of 100 ms, ten seconds in total.
  private static let looksForRoom = 100
  let folder: ConfigurationFolder
  let generations: ActiveGeneration
  private let tls: ServerTLS?
  let programs: ProviderProcessManager?
  private let gate: ReloadGate?
  let shadowing: Shadowing?
  /// The promotion of a candidate from another folder, with the state of the active folder at that time.
  var promotion: Promotion?
  var watching: Task<Void, Never>?
  /// The settings that the listeners, store and key were created from.
  private let started: GatewaySettings
  let clock: any GatewayClock
  private let random: any RandomSource
  private let audit: AuditTrail
  private let notifier: ServiceNotifier
  let logger: Logger
  /// The latest reload. Reloads run one at a time: two at once could switch back to the older folder.
  private var newest: Task<RefusedConfiguration?, Never>?

  /// More than five parameters: one for each service.
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

  /// Loads the current state of the folder.
  /// - Parameter isForced: whether to skip the gate (`gate` in gateway.lua).
  /// - Returns: nil if the generation is active; otherwise the reason for the refusal.
  @discardableResult func reload(isForced: Bool = false) async -> RefusedConfiguration? {
    await inTurn { await self.switchOver(isForced) }
  }

  /// Runs the work after all previous work. A cancelled caller does not wait for it: a candidate is judged with low
  /// priority, and on a busy machine a gateway that ends would wait for it until it is killed.
  /// - Returns: a refusal if the caller was cancelled.
  func inTurn(_ work: @escaping @Sendable () async -> RefusedConfiguration?) async -> RefusedConfiguration? {
    let before = newest
    let (results, result) = AsyncStream.makeStream(of: RefusedConfiguration?.self)
    newest = Task { () -> RefusedConfiguration? in
      _ = await before?.value
      let refused = await work()
      result.yield(refused)
      result.finish()
      return refused
    }
    for await refused in results { return refused }
    let ending = ConfigurationProblem(
      location: SourceLocation(file: folder.path, line: 0), path: "",
      message: "not loaded: the gateway is ending, or nobody waits for the result any more")
    return RefusedConfiguration(id: nil, problems: [ending], isFolderMissing: false)
  }

  private func switchOver(_ isForced: Bool) async -> RefusedConfiguration? {
    guard await hasRoom() else {
      let problem = ConfigurationProblem(
        location: SourceLocation(file: folder.path, line: 0), path: "",
        message:
          "not loaded: open requests still use \(ActiveGeneration.maxLive) generations; reload again when they have ended"
      )
      return refuse(RefusedConfiguration(id: nil, problems: [problem], isFolderMissing: false))
    }
    // If a program has changed after a restart, reload even if the folder is the same.
    let isWhole = programs?.areWhole(in: generations.current) ?? true
    let current = generations.current
    let active = current.id
    let loaded = await folder.load(unless: isWhole ? active : nil)
    switch loaded {
    case .success(let generation)
    where generation.id == active && generation.secretFiles == current.secretFiles && isWhole:
      if generations.status.refused?.id != nil {
        logger.notice("change reverted; generation \(active.prefix(8)) stays active")
      }
      settle()
      return finish()
    case .success(let generation) where !isForced && promotion?.replaced.contains(generation.id) ?? false:
      logger.notice(
        "the promoted generation \(active.prefix(8)) stays active: the folder still has the replaced files")
      return finish()
    case .success(let generation):
      let refused = await activate(generation, isForced)
      if refused == nil { promotion = nil }
      return refused
    case .failure(let refused): return refuse(refused)
    }
  }

  /// Switches to a candidate that has passed every check except the gate.
  /// - Parameter more: further settings that stay in effect only until the next start.
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
    // Flows of the previous generation keep its programs; new flows do not use them.
    programs?.keep(only: generation)
    audit.record(AuditEvent(id: DecisionID(from: random), at: now, kind: .generationActive, detail: detail))
    var metadata: Logger.Metadata = ["before": "\(before.id.prefix(8))"]
    let secrets = generation.secretFiles.filter { before.secretFiles[$0.key] != $0.value }.keys.sorted()
    if generation.id == before.id, !secrets.isEmpty {
      metadata["changed"] = .array(secrets.map { .string($0) })
    }
    logger.notice("generation \(generation.id.prefix(8)) is active", metadata: metadata)
    for warning in generation.warnings { logger.warning("\(warning)") }
    for change in changes { logger.warning("\(change)") }
    return finish()
  }

  /// Ends a promotion once the active folder contains the promoted files.
  private func settle() {
    guard promotion != nil else { return }
    promotion = nil
    generations.note(restartNeeded: generations.current.gateway.changesThatNeedRestart(since: started))
  }

  /// Loads the certificate. An unusable pair is reported like a refused candidate, and the current one stays in use.
  private func finish() -> RefusedConfiguration? {
    if let problem = certificateProblem() {
      return refuse(RefusedConfiguration(id: nil, problems: [problem], isFolderMissing: false))
    }
    generations.clearRefused()
    notifier.status(status)
    return nil
  }

  /// The status text for the service manager: the active generation, and whether a candidate was refused.
  var status: String {
    let serving = ServiceNotifier.serving(generations.current.id)
    guard let refused = generations.status.refused else { return serving }
    return "\(serving); the current files are refused (problems: \(refused.problems.count)); see the log"
  }

  private func certificateProblem() -> ConfigurationProblem? {
    let settings = generations.current.gateway
    guard let tls, let files = settings.tls, let problem = tls.reload(files) else { return nil }
    return ConfigurationProblem(
      location: settings.locations["tls"] ?? SourceLocation(file: "gateway.lua", line: 0), path: "tls",
      message: "\(problem) New connections use the previous one.")
  }

  /// Whether the certificate or key file has changed since it was read.
  var certificateHasChanged: Bool {
    guard let tls, let files = generations.current.gateway.tls else { return false }
    return tls.hasChanged(files)
  }

  /// Reloads the certificate and key together with the folder.
  func reloadCertificate() async {
    logger.notice("the certificate changed; reloading it")
    await reload()
  }

  /// Reports the refused candidate in the log, the events and `GET /policy`.
  private func refuse(_ refused: RefusedConfiguration) -> RefusedConfiguration {
    let now = clock.now()
    let active = generations.current.id
    let known = generations.status.refused
    generations.refuse(ActiveGeneration.RefusedCandidate(id: refused.id, at: now, problems: refused.problems))
    let count = "\(refused.problems.count) problem\(refused.problems.count == 1 ? "" : "s")"
    notifier.status(status)
    // Do not repeat the problems of an unchanged folder.
    guard known?.problems != refused.problems else {
      logger.error("generation \(active.prefix(8)) stays active; the candidate is still refused (\(count))")
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

  /// Waits until another generation fits into memory.
  /// Attack: slow requests that start under different generations would keep all of them in memory.
  private func hasRoom() async -> Bool {
    for _ in 0..<Self.looksForRoom where generations.live >= ActiveGeneration.maxLive {
      do { try await Task.sleep(for: .milliseconds(100)) } catch { return false }
    }
    return generations.live < ActiveGeneration.maxLive
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

/// Reloads on SIGHUP.
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
        logger.notice("SIGHUP: reloading the configuration")
        await reload.reload()
        notifier.ready(await reload.status)
      }
    }
  }
}
