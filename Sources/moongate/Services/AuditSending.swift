import Logging
import MoongateCore
import MoongateDelivery
import MoongateProgram
import MoongateSDK
import ServiceLifecycle
import Synchronization

/// Runs one sender for each sink of the active configuration, each on its own thread, so that a hanging sink delays no
/// other sink and no request.
final class AuditSending: Service {
  private struct Running {
    let sender: AuditSender
    let task: Task<Void, Never>
  }

  private static let look: Duration = .seconds(1)
  /// The position of a sink that no gateway has used for this time is deleted.
  private static let forgetting: Duration = .seconds(3600)

  private let store: any Store
  private let generations: ActiveGeneration
  private let web: any WebClient
  private let clock: any GatewayClock
  private let holder: String
  private let logger: Logger
  private let running = Mutex<[AuditSinkSettings: Running]>([:])

  /// More than five parameters: one for each field.
  /// - Parameter holder: identifies this gateway among those of the store.
  init(
    store: any Store, generations: ActiveGeneration, web: any WebClient, clock: any GatewayClock, holder: String,
    logger: Logger
  ) {
    self.store = store
    self.generations = generations
    self.web = web
    self.clock = clock
    self.holder = holder
    self.logger = logger
  }

  func run() async throws {
    try? await cancelWhenGracefulShutdown {
      var forgottenAt = self.clock.now()
      while !Task.isCancelled {
        await self.follow(self.generations.current.gateway)
        let now = self.clock.now()
        if now - forgottenAt >= Self.forgetting {
          forgottenAt = now
          let names = self.generations.current.gateway.audit.map(\.name)
          try? await self.store.forgetAuditCursors(unusedSince: now - Self.forgetting, except: names, at: now)
        }
        try await Task.sleep(for: Self.look)
      }
    }
    await end(except: [])
  }

  /// Starts senders of new sinks and stops those of removed sinks.
  private func follow(_ gateway: GatewaySettings) async {
    let wanted = Set(gateway.audit)
    await end(except: wanted)
    running.withLock { running in
      for settings in gateway.audit where running[settings] == nil {
        let sender = AuditSender(
          settings, sink: settings.sink(web: web), store: store, clock: clock, holder: holder, service: gateway.service,
          logger: logger)
        running[settings] = Running(
          sender: sender, task: Task { await DedicatedThread.run(at: nil) { await sender.run() } })
      }
    }
  }

  private func end(except wanted: Set<AuditSinkSettings>) async {
    let ended = running.withLock { running in
      let ended = running.filter { !wanted.contains($0.key) }
      for settings in ended.keys { running[settings] = nil }
      return ended.values.map(\.task)
    }
    for task in ended { task.cancel() }
    for task in ended { await task.value }
  }

  /// The metrics of all sinks; empty if none exist.
  var families: [MetricFamily] {
    let all = running.withLock { $0.values.map(\.sender) }.sorted { $0.label < $1.label }
    if all.isEmpty { return [] }
    let samples = all.map { (label: [("sink", $0.label)], values: $0.samples) }
    return [
      MetricFamily(.auditEventsSentTotal, samples.map { MetricFamily.Sample($0.label, Double($0.values.sent)) }),
      MetricFamily(.auditFailuresTotal, samples.map { MetricFamily.Sample($0.label, Double($0.values.failures)) }),
      MetricFamily(
        .auditBacklogEvents,
        samples.compactMap { sample in sample.values.backlog.map { MetricFamily.Sample(sample.label, Double($0)) } }),
      MetricFamily(
        .auditLagSeconds,
        samples.compactMap { sample in sample.values.lag.map { MetricFamily.Sample(sample.label, $0) } }),
    ]
  }
}
