import Synchronization

/// Flows that were created and not begun yet. They cost no write and are bounded: who creates flows without end drops
/// their own oldest, not other people's.
final class PendingFlows: Sendable {
  private struct State {
    var flows: [TokenHash: FlowRecord] = [:]
    /// Each address's flows, oldest first.
    var order: [[UInt8]: [TokenHash]] = [:]
    /// All flows, oldest first; those taken out since are skipped.
    var age: [TokenHash] = []
  }

  private let most: Int
  private let mostPerAddress: Int
  private let state = Mutex(State())

  init(most: Int = 50_000, mostPerAddress: Int = 1_000) {
    self.most = most
    self.mostPerAddress = mostPerAddress
  }

  /// - Parameter address: whose flow it is (`ClientAddress.countingKey`).
  func put(_ record: FlowRecord, from address: [UInt8], at now: Timestamp) {
    state.withLock { state in
      if state.flows[record.id] == nil {
        state.order[address, default: []].append(record.id)
        state.age.append(record.id)
      }
      state.flows[record.id] = record
      if let own = state.order[address], own.count > mostPerAddress {
        state.flows[own[0]] = nil
        state.order[address] = Array(own.dropFirst())
      }
      if state.age.count > most + most / 4 || state.flows.count > most { sweep(&state, at: now) }
    }
  }

  /// Changes a flow that waits here; one that was taken out meanwhile stays out.
  func update(_ record: FlowRecord) { state.withLock { state in if state.flows[record.id] != nil { state.flows[record.id] = record } } }

  /// Binds a flow that waits here to a browser. Of two browsers at once the first one has it.
  /// - Returns: the flow as it is bound; nil where it does not wait here.
  func bind(_ id: TokenHash, to browser: TokenHash) -> FlowRecord? {
    state.withLock { state in
      guard var record = state.flows[id] else { return nil }
      if record.browser == nil { record.browser = browser }
      state.flows[id] = record
      return record
    }
  }

  func find(_ id: TokenHash) -> FlowRecord? { state.withLock { $0.flows[id] } }

  func remove(_ id: TokenHash) { _ = state.withLock { $0.flows.removeValue(forKey: id) } }

  /// Forgets what was taken out and what has died; then, where that is not enough, the oldest tenth.
  private func sweep(_ state: inout State, at now: Timestamp) {
    let dead = { (record: FlowRecord) in now >= record.expiresAt + (record.expiresAt - record.createdAt) }
    state.flows = state.flows.filter { !dead($0.value) }
    var alive = state.age.filter { state.flows[$0] != nil }
    if alive.count > most - most / 10 {
      for id in alive.prefix(alive.count - (most - most / 10)) { state.flows[id] = nil }
      alive.removeFirst(alive.count - (most - most / 10))
    }
    state.age = alive
    state.order = state.order.compactMapValues { own in
      let left = own.filter { state.flows[$0] != nil }
      return left.isEmpty ? nil : left
    }
  }
}
