import Logging
import Synchronization

/// Collects events that belong to no transaction (mostly refusals) and writes them in batches.
///
/// Bounded: if the store cannot keep up, the oldest waiting events are dropped and counted. Requests never wait.
package final class AuditTrail: Sendable {
  private struct State {
    var waiting: [AuditEvent] = []
    /// Batches that are being written.
    var writing: [Int: [AuditEvent]] = [:]
    var batches = 0
    var dropped = 0
    /// Refusals since the start, by code.
    var refusals: [String: Int] = [:]
    var folds = RefusalFolds()

    /// The event if it waits or is being written.
    func unwritten(_ id: DecisionID) -> AuditEvent? {
      waiting.last { $0.id == id } ?? writing.values.lazy.compactMap { $0.last { $0.id == id } }.first
    }

    /// If too many events wait, drops the oldest ones that are not security events first.
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

  /// About 3 KiB each in memory.
  private static let most = 10_000
  private static let interval: Duration = .milliseconds(200)

  private let store: any AuditStore
  private let logger: Logger
  private let foldsFloods: Bool
  private let signIns: SignInMetrics?
  /// Whose databases tell where addresses are.
  private let generations: ActiveGeneration?
  private let state = Mutex(State())

  /// - Parameters:
  ///   - foldsFloods: whether to combine a flood of refusals into one event. False if every decision is needed, as in
  ///     policy cases.
  ///   - signIns: counts each refusal.
  ///   - generations: whose databases (`geo`) tell where addresses are; nil to leave that out.
  package init(
    store: any AuditStore, logger: Logger, foldsFloods: Bool = true, signIns: SignInMetrics? = nil,
    generations: ActiveGeneration? = nil
  ) {
    self.generations = generations
    self.signIns = signIns
    self.store = store
    self.logger = logger
    self.foldsFloods = foldsFloods
  }

  /// Records an event without waiting.
  /// - Returns: the ID under which the event can be found: its own, or that of the flood of refusals that it belongs
  ///   to.
  @discardableResult
  package func record(_ event: AuditEvent) -> DecisionID {
    let event = event.located(by: generations?.current.gateway.places)
    if event.kind == .refused { signIns?.note(refused: event) }
    return state.withLock { state in
      guard event.kind.quota == .refusals else {
        state.add(event)
        return event.id
      }
      if event.kind == .refused, let code = event.code { state.refusals[code, default: 0] += 1 }
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

  /// Writes the counts of floods with the next batch: of floods whose minute is over, or of all if no time is given.
  package func writeFloodCounts(at moment: Timestamp? = nil) {
    state.withLock { state in
      for ended in moment.map({ state.folds.end(before: $0) }) ?? state.folds.end() { state.add(ended) }
    }
  }

  /// The number of refused requests since the start, by the refusal's code. The codes are a closed set plus the
  /// policies' own reasons.
  package var refusals: [String: Int] { state.withLock { $0.refusals } }

  /// The latest events, newest first, including those that are not written yet.
  package func events(limit: Int) async throws(StoreFault) -> [AuditEvent] {
    try await counted { () async throws(StoreFault) in try await store.events(limit: limit) }
  }

  /// The events that match a filter, newest first, including those that are not written yet.
  /// - Parameter store: the store of the audit trail.
  package func events(
    matching filter: AuditFilter, limit: Int, in store: any AuditSearch
  ) async throws(StoreFault) -> [AuditEvent] {
    try await counted { () async throws(StoreFault) in try await store.events(matching: filter, limit: limit) }
  }

  /// Reads events from the store, after it has all that wait, and gives them the current counts of their floods, which
  /// the store gets when their minute is over.
  private func counted(_ read: () async throws(StoreFault) -> [AuditEvent]) async throws(StoreFault) -> [AuditEvent] {
    try await flush()
    // The minute of a flood may end while the store is read.
    let before = state.withLock { $0.folds }
    let events = try await read()
    return state.withLock { state in
      events.map { event in
        guard event.count != nil else { return event }
        let known = [event, before.fold(event.id), state.folds.fold(event.id), state.unwritten(event.id)]
        return known.compactMap(\.self).max { ($0.count ?? 0) < ($1.count ?? 0) } ?? event
      }
    }
  }

  /// The event with this ID, written or not. Clients may ask as soon as they have the ID, even while the event is being
  /// written.
  package func event(_ id: DecisionID) async throws(StoreFault) -> AuditEvent? {
    let known = state.withLock { state in
      state.folds.fold(id) ?? state.unwritten(id)
    }
    if let known { return known }
    return try await store.event(id)
  }

  /// Writes the waiting events. If that fails, they wait for the next attempt.
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

  /// Writes batches until the task is cancelled, and a last batch then.
  package func run(clock: any GatewayClock) async {
    var wasFailing = false
    while !Task.isCancelled {
      writeFloodCounts(at: clock.now())
      do {
        try await flush()
        wasFailing = false
      } catch {
        if !wasFailing { logger.error("audit events cannot be written", metadata: ["fault": "\(error)"]) }
        wasFailing = true
      }
      try? await Task.sleep(for: Self.interval)
    }
    writeFloodCounts()
    try? await flush()
  }
}
