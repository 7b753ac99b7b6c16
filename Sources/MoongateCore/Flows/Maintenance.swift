import Logging
import MoongateSDK
import Synchronization

/// Runs the maintenance of providers. A lease in the store ensures that only one gateway of an installation runs a
/// provider's maintenance at a time.
///
/// A run is cancelled at its time limit. Its lease lasts a little longer, so that another gateway can take over when a
/// gateway dies. A run that continues in spite of that cannot write under a lease that another gateway holds, and this
/// gateway does not start a second run beside it.
package final class Maintenance: Sendable {
  /// The time limit of a run.
  package static let limit: Duration = .seconds(60)
  /// How long a cancelled run has to end before another gateway may start one.
  static let grace: Duration = .seconds(30)
  /// The delay before a retry if the store fails.
  private static let pause: Duration = .seconds(30)

  /// How a run ends: by itself, at its time limit, or because the gateway shuts down.
  private enum RunEnd: Sendable {
    case done
    case failed(String)
    case late
    case stopped
  }

  private struct State {
    /// When each provider's next run is due, as far as this gateway knows.
    var next: [ProviderName: Timestamp] = [:]
    /// The runs on this gateway, including cancelled ones that have not ended.
    var running: Set<ProviderName> = []
  }

  private let engine: FlowEngine
  private let holder: String
  private let jitter: @Sendable () -> Double
  private let sleep: @Sendable (Duration) async -> Void
  private let state = Mutex(State())

  /// - Parameters:
  ///   - holder: the name of this gateway.
  ///   - jitter: a random number in 0..<1, so that providers with the same interval do not all run at once.
  ///   - sleep: waits for the time limit of a run, or until it is cancelled.
  package init(
    _ engine: FlowEngine, holder: String, jitter: @escaping @Sendable () -> Double,
    sleep: @escaping @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) }
  ) {
    self.engine = engine
    self.holder = holder
    self.jitter = jitter
    self.sleep = sleep
  }

  /// Runs all maintenance that is due, and returns when every run has ended or was cancelled.
  package func step() async {
    let generation = engine.generations.current
    let now = engine.clock.now()
    let registry = generation.registry ?? engine.providers
    await withTaskGroup(of: Void.self) { group in
      for provider in registry.all {
        let descriptor = provider.descriptor
        guard let interval = descriptor.maintenanceInterval, generation.policies[descriptor.name] != nil else {
          continue
        }
        let isDue = state.withLock {
          $0.next[descriptor.name].map { $0 <= now } ?? true && $0.running.insert(descriptor.name).inserted
        }
        if isDue { group.addTask { await self.run(provider, every: interval, in: generation, at: now) } }
      }
    }
  }

  private func run(
    _ provider: any Provider, every interval: Duration, in generation: any PolicyGeneration, at now: Timestamp
  ) async {
    let name = provider.descriptor.name
    let lease: Lease
    do {
      switch try await engine.store.acquireLease("maintain \(name)", by: holder, for: Self.limit + Self.grace, at: now)
      {
      case .held(let held): lease = held
      case .notBefore(let moment): return ended(name, next: moment)
      }
    } catch {
      engine.logger.warning(
        "the maintenance of a provider cannot begin", metadata: ["provider": "\(name)", "fault": "\(error)"])
      return ended(name, next: now + Self.pause)
    }
    let hasEnded = await maintain(provider, under: lease, generation)
    let end = engine.clock.now()
    // Vary the interval by up to a tenth.
    let due = end + interval * (0.9 + 0.2 * jitter())
    do {
      // If the run has not ended, its lease stays until it expires.
      if hasEnded { try await engine.store.releaseLease(lease, dueAt: due, at: end) }
    } catch {
      engine.logger.warning(
        "the maintenance lease of a provider could not be released",
        metadata: ["provider": "\(name)", "fault": "\(error)"])
    }
    if hasEnded { ended(name, next: due) }
  }

  private func ended(_ name: ProviderName, next: Timestamp) {
    state.withLock { state in
      state.next[name] = next
      state.running.remove(name)
    }
  }

  /// - Returns: false if the run was cancelled and has not ended.
  private func maintain(_ provider: any Provider, under lease: Lease, _ generation: any PolicyGeneration) async -> Bool
  {
    let name = provider.descriptor.name
    let start = ContinuousClock.now
    let run = FirstOutcome<RunEnd>()
    let tools = engine.maintenanceTools(for: provider, under: lease, generation)
    let work = Task {
      do {
        try await provider.maintain(with: tools)
        run.end(.done)
      } catch {
        run.end(.failed("\(error)"))
      }
    }
    let timer = Task { [sleep] in
      await sleep(Self.limit)
      run.end(.late)
    }
    let outcome = await withTaskCancellationHandler {
      await run.value
    } onCancel: {
      run.end(.stopped)
    }
    timer.cancel()
    switch outcome {
    case .done: engine.providerMetrics.record(.maintain, of: name, .maintained, since: start)
    case .failed(let fault):
      engine.providerMetrics.record(.maintain, of: name, .fault, since: start)
      let redaction = engine.calls.redaction(of: name, nil, [], engine.maintenanceRequest(generation))
      engine.logger.error(
        "the maintenance of a provider failed", metadata: ["provider": "\(name)", "fault": "\(redaction(fault))"])
    // The gateway is shutting down. Its lease expires and another gateway continues.
    case .stopped:
      work.cancel()
      return false
    case .late:
      work.cancel()
      engine.providerMetrics.record(.maintain, of: name, .fault, since: start)
      engine.logger.error(
        "the maintenance of a provider exceeded its time limit and is cancelled",
        metadata: ["provider": "\(name)", "limit": "\(Self.limit)"])
      // A run that ignores cancellation blocks further runs of this provider here until it has ended.
      Task { [self, clock = engine.clock] in
        await work.value
        ended(name, next: clock.now())
      }
      return false
    }
    return true
  }
}

extension FlowEngine {
  /// A request context without a client, for maintenance.
  func maintenanceRequest(_ generation: any PolicyGeneration) -> RequestContext {
    let client = ClientContext(
      decision: DecisionID(from: random), address: .unspecified, userAgent: nil, browser: nil, session: nil)
    return RequestContext(client: client, now: clock.now(), generation: generation)
  }

  /// The tools that a provider receives for its maintenance.
  func maintenanceTools(for provider: any Provider, under lease: Lease, _ generation: any PolicyGeneration) -> StepTools
  {
    let name = provider.descriptor.name
    let request = maintenanceRequest(generation)
    var tools = calls.tools(for: provider, calls.redaction(of: name, nil, [], request), request)
    tools.sessions = calls.siteSessions(of: name, request)
    tools.store = ProviderKeyValues(of: name, in: store, keys: keys, clock: clock, logger: logger, under: lease)
    return tools
  }
}
