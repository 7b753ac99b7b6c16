import Logging
import Synchronization

/// Collects events that belong to no transaction (refusals, mostly) and writes them in batches.
///
/// Bounded: when the store cannot keep up, the oldest of what waits is dropped and counted, never the request held up.
package final class AuditTrail: Sendable {
  private struct State {
    var waiting: [AuditEvent] = []
    /// Batches that the store has been given and has not kept yet.
    var writing: [Int: [AuditEvent]] = [:]
    var batches = 0
    var dropped = 0
    /// Since the start, by code.
    var refusals: [String: Int] = [:]
    var folds = RefusalFolds()

    /// What is of no security event goes first where there is too much.
    mutating func add(_ event: AuditEvent) {
      if waiting.count >= AuditTrail.most {
        let surplus = AuditTrail.most / 10
        var left = surplus
        waiting.removeAll { waiting in
          guard left > 0, waiting.kind.quota != .security else { return false }
          left -= 1
          return true
        }
        waiting.removeFirst(left)
        dropped += surplus
      }
      waiting.append(event)
    }
  }

  /// Some 3 KiB each on the way to the store.
  private static let most = 10_000
  private static let interval: Duration = .milliseconds(200)

  private let store: any AuditStore
  private let logger: Logger
  private let foldsFloods: Bool
  private let signIns: SignInMetrics?
  private let state = Mutex(State())

  /// - Parameters:
  ///   - foldsFloods: whether a flood of refusals becomes one event; false where every decision is looked at, as in
  ///     policy cases.
  ///   - signIns: counts refusals, one by one.
  package init(store: any AuditStore, logger: Logger, foldsFloods: Bool = true, signIns: SignInMetrics? = nil) {
    self.signIns = signIns
    self.store = store
    self.logger = logger
    self.foldsFloods = foldsFloods
  }

  /// Never waits.
  /// - Returns: the id under which the event is found: its own, or that of the flood of refusals that it counts in.
  @discardableResult
  package func record(_ event: AuditEvent) -> DecisionID {
    if event.kind == .refused { signIns?.note(refused: event) }
    return state.withLock { state in
      guard event.kind == .refused else {
        state.add(event)
        return event.id
      }
      if let code = event.code { state.refusals[code, default: 0] += 1 }
      guard foldsFloods else {
        state.add(event)
        return event.id
      }
      for ended in state.folds.end(before: event.at) { state.add(ended) }
      switch state.folds.take(event) {
      case .single: state.add(event)
      case .opened(let fold): state.add(fold)
      case .counted(let id): return id
      }
      return event.id
    }
  }

  /// Counts of floods whose minute is over, and of all of them at the end, are written with the next batch.
  package func endFloods(at moment: Timestamp? = nil) {
    state.withLock { state in
      for ended in moment.map({ state.folds.end(before: $0) }) ?? state.folds.end() { state.add(ended) }
    }
  }

  /// How many requests have been refused since the start, by the refusal's code. The codes are a closed set and the
  /// policies' own reasons.
  package var refusals: [String: Int] { state.withLock { $0.refusals } }

  /// Newest first, what is not written yet included.
  package func events(limit: Int) async throws(StoreFault) -> [AuditEvent] {
    try await flush()
    let events = try await store.events(limit: limit)
    return state.withLock { state in events.map { $0.count == nil ? $0 : state.folds.fold($0.id) ?? $0 } }
  }

  /// The events that a filter asks for, newest first, what is not written yet included.
  /// - Parameter store: the one that the trail is in.
  package func events(
    matching filter: AuditFilter, limit: Int, in store: any AuditSearch
  ) async throws(StoreFault) -> [AuditEvent] {
    try await flush()
    let events = try await store.events(matching: filter, limit: limit)
    return state.withLock { state in events.map { $0.count == nil ? $0 : state.folds.fold($0.id) ?? $0 } }
  }

  /// The event with this id, written or not: a client may ask as soon as it has the id, also while the store is at it.
  package func event(_ id: DecisionID) async throws(StoreFault) -> AuditEvent? {
    let known = state.withLock { state in
      state.folds.fold(id) ?? state.waiting.last { $0.id == id }
        ?? state.writing.values.lazy.compactMap { $0.last { $0.id == id } }.first
    }
    if let known { return known }
    return try await store.event(id)
  }

  /// Writes what waits; puts it back where that fails.
  package func flush() async throws(StoreFault) {
    let (batch, number, dropped) = state.withLock { state in
      let (batch, dropped) = (state.waiting, state.dropped)
      (state.waiting, state.dropped) = ([], 0)
      state.batches += 1
      if !batch.isEmpty { state.writing[state.batches] = batch }
      return (batch, state.batches, dropped)
    }
    if dropped > 0 { logger.warning("audit events were dropped", metadata: ["count": "\(dropped)"]) }
    guard !batch.isEmpty else { return }
    do {
      try await store.append(batch)
      state.withLock { $0.writing[number] = nil }
    } catch {
      state.withLock { state in
        state.writing[number] = nil
        state.waiting = Array((batch + state.waiting).suffix(Self.most))
      }
      throw error
    }
  }

  /// Writes batches until the task is cancelled, and a last one then.
  package func run(clock: any GatewayClock) async {
    var wasFailing = false
    while !Task.isCancelled {
      endFloods(at: clock.now())
      do {
        try await flush()
        wasFailing = false
      } catch {
        if !wasFailing { logger.error("audit events cannot be written", metadata: ["fault": "\(error)"]) }
        wasFailing = true
      }
      try? await Task.sleep(for: Self.interval)
    }
    endFloods()
    try? await flush()
  }
}
