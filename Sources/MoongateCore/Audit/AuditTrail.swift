import Logging
import Synchronization

/// Collects events that belong to no transaction (refusals, mostly) and writes them in batches.
///
/// Bounded: when the store cannot keep up, the oldest of what waits is dropped and counted, never the request held up.
package final class AuditTrail: Sendable {
  private struct State {
    var waiting: [AuditEvent] = []
    var dropped = 0
    /// Since the start, by code.
    var refusals: [String: Int] = [:]
  }

  /// Some 3 KiB each on the way to the store.
  private static let most = 10_000
  private static let interval: Duration = .milliseconds(200)

  private let store: any AuditStore
  private let logger: Logger
  private let state = Mutex(State())

  package init(store: any AuditStore, logger: Logger) {
    self.store = store
    self.logger = logger
  }

  /// Never waits.
  package func record(_ event: AuditEvent) {
    state.withLock { state in
      if state.waiting.count >= Self.most {
        state.waiting.removeFirst(Self.most / 10)
        state.dropped += Self.most / 10
      }
      state.waiting.append(event)
      if event.kind == .refused, let code = event.code { state.refusals[code, default: 0] += 1 }
    }
  }

  /// How many requests have been refused since the start, by the refusal's code. The codes are a closed set and the policies' own reasons.
  package var refusals: [String: Int] { state.withLock { $0.refusals } }

  /// Newest first, what is not written yet included.
  package func events(limit: Int) async throws(StoreFault) -> [AuditEvent] {
    try await flush()
    return try await store.events(limit: limit)
  }

  /// The event with this id, written or not.
  package func event(_ id: DecisionID) async throws(StoreFault) -> AuditEvent? {
    if let waiting = state.withLock({ state in state.waiting.last { $0.id == id } }) { return waiting }
    return try await store.event(id)
  }

  /// Writes what waits; puts it back where that fails.
  package func flush() async throws(StoreFault) {
    let (batch, dropped) = state.withLock { state in
      defer {
        state.waiting = []
        state.dropped = 0
      }
      return (state.waiting, state.dropped)
    }
    if dropped > 0 { logger.warning("audit events were dropped", metadata: ["count": "\(dropped)"]) }
    guard !batch.isEmpty else { return }
    do {
      try await store.append(batch)
    } catch {
      state.withLock { state in state.waiting = Array((batch + state.waiting).suffix(Self.most)) }
      throw error
    }
  }

  /// Writes batches until the task is cancelled, and a last one then.
  package func run() async {
    var wasFailing = false
    while !Task.isCancelled {
      do {
        try await flush()
        wasFailing = false
      } catch {
        if !wasFailing { logger.error("audit events cannot be written", metadata: ["fault": "\(error)"]) }
        wasFailing = true
      }
      try? await Task.sleep(for: Self.interval)
    }
    try? await flush()
  }
}
