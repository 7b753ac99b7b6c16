import Logging
import MoongateCore
import MoongateDelivery
import Synchronization

/// Sends the audit trail to one sink. Each event is delivered at least once, in commit order.
///
/// Of several gateways on one store, the gateway with the sink's lease sends. It starts only batches that finish before
/// the lease expires, so two gateways never send at once. The position is stored after the sink has accepted a batch:
/// if a gateway is killed in between, the same events are sent again.
///
/// No request waits for the sender. While a sink is down, its events stay in the trail for seven days.
final class AuditSender: Sendable {
  private static let batch = 200
  private static let leaseLength: Duration = .seconds(20)
  /// The time limit for a batch.
  private static let longestBatch: Duration = .seconds(12)
  private static let idlePause: Duration = .milliseconds(500)
  /// The interval at which a gateway without the lease tries to acquire it.
  private static let standbyPause: Duration = .seconds(2)
  private static let longestBackoff: Duration = .seconds(60)
  private static let reportInterval: Duration = .seconds(60)
  /// The interval at which the backlog is measured and the sink is marked as in use.
  private static let lookInterval: Duration = .seconds(15)

  private struct State {
    var lease: Lease?
    var position = AuditPosition.beginning
    var backoff: Duration = .zero
    var lookedAt: Timestamp?
    var reportedAt: Timestamp?
    var unreported = 0
    var sent = 0
    var failures = 0
    var backlog: AuditBacklog?
  }

  private let settings: AuditSinkSettings
  private let sink: any AuditSink
  private let store: any Store
  private let clock: any GatewayClock
  private let holder: String
  private let service: String
  private let logger: Logger
  private let state = Mutex(State())

  /// More than five parameters: one for each field.
  /// - Parameters:
  ///   - holder: identifies this gateway among those of the store.
  ///   - service: the name of the service.
  init(
    _ settings: AuditSinkSettings, sink: any AuditSink, store: any Store, clock: any GatewayClock, holder: String,
    service: String, logger: Logger
  ) {
    self.settings = settings
    self.sink = sink
    self.store = store
    self.clock = clock
    self.holder = holder
    self.service = service
    self.logger = logger
  }

  private var leaseName: String { "audit \(settings.name)" }

  /// Sends until the task is cancelled, then releases the lease.
  func run() async {
    while !Task.isCancelled {
      let pause = await step()
      if pause > .zero { try? await Task.sleep(for: pause) }
    }
    await giveUp()
  }

  /// Sends one batch if this gateway has the lease.
  /// - Returns: the pause before the next step.
  func step() async -> Duration {
    do {
      guard let lease = try await held() else { return Self.standbyPause }
      try await measureBacklog()
      let position = state.withLock { $0.position }
      let events = try await store.events(after: position, limit: Self.batch)
      guard let last = events.last else { return Self.idlePause }
      try await sink.take(events.map { OCSFEvent($0.event, service: service).line }, at: clock.now())
      guard try await store.moveAuditCursor(of: settings.name, to: last.position, under: lease, at: clock.now()) else {
        // Another gateway has the lease and sends these events again.
        state.withLock { $0.lease = nil }
        return Self.standbyPause
      }
      state.withLock { state in
        state.position = last.position
        state.sent += events.count
        state.backoff = .zero
      }
      return events.count == Self.batch ? .zero : Self.idlePause
    } catch {
      return await failed("\(error)")
    }
  }

  /// The lease, if it lasts longer than a batch can take; nil if another gateway has it.
  private func held() async throws(StoreFault) -> Lease? {
    let now = clock.now()
    if let lease = state.withLock({ $0.lease }) {
      if lease.heldUntil - now > Self.longestBatch { return lease }
      let renewed = try await store.renewLease(lease, for: Self.leaseLength, at: now)
      state.withLock { $0.lease = renewed }
      if let renewed { return renewed }
    }
    guard case .held(let lease) = try await store.acquireLease(leaseName, by: holder, for: Self.leaseLength, at: now)
    else {
      state.withLock { $0.backlog = nil }
      return nil
    }
    let position = try await store.auditCursor(of: settings.name, at: now)
    state.withLock { state in (state.lease, state.position, state.lookedAt) = (lease, position, nil) }
    return lease
  }

  /// Measures the backlog and marks the sink as in use, at `lookInterval`.
  private func measureBacklog() async throws(StoreFault) {
    let now = clock.now()
    guard state.withLock({ state in state.lookedAt.map { now - $0 >= Self.lookInterval } ?? true }) else { return }
    // Use the position of the store: SQLite restarts the numbering when the trail is empty.
    let position = try await store.auditCursor(of: settings.name, at: now)
    let backlog = try await store.auditBacklog(after: position)
    state.withLock { state in (state.position, state.backlog, state.lookedAt) = (position, backlog, now) }
  }

  /// Logs the reason once per `reportInterval`, increases the backoff, and releases the lease, because another gateway
  /// may reach the sink.
  private func failed(_ reason: String) async -> Duration {
    let now = clock.now()
    let (backoff, suppressed): (Duration, Int?) = state.withLock { state in
      state.failures += 1
      state.backoff = state.backoff == .zero ? .seconds(1) : min(state.backoff * 2, Self.longestBackoff)
      guard state.reportedAt.map({ now - $0 >= Self.reportInterval }) ?? true else {
        state.unreported += 1
        return (state.backoff, nil)
      }
      defer { (state.reportedAt, state.unreported) = (now, 0) }
      return (state.backoff, state.unreported)
    }
    if let suppressed {
      var metadata: Logger.Metadata = ["sink": "\(settings.name)", "fault": "\(reason)"]
      if suppressed > 0 { metadata["suppressed"] = "\(suppressed)" }
      logger.error("the audit trail cannot be sent; its events are kept for 7 days and sent later", metadata: metadata)
    }
    // Measure the backlog, which grows while the sink is down.
    try? await measureBacklog()
    await giveUp()
    return backoff
  }

  private func giveUp() async {
    guard
      let lease = state.withLock({ state in
        defer { state.lease = nil }
        return state.lease
      })
    else { return }
    let now = clock.now()
    try? await store.releaseLease(lease, dueAt: now, at: now)
  }

  /// The metrics of the sink. Without the backlog if another gateway sends.
  var samples: (sent: Int, failures: Int, backlog: Int?, lag: Double?) {
    let now = clock.now()
    return state.withLock { state in
      (
        state.sent, state.failures, state.backlog?.count,
        state.backlog.map { $0.oldest.map { max(0, Double((now - $0).wholeMilliseconds) / 1000) } ?? 0 }
      )
    }
  }

  /// `file`, `syslog` or `webhook`, and its destination.
  var label: String { settings.name }
}
