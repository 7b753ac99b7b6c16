import Synchronization

/// Flows that were created and not begun yet. They cost no write and are bounded (`FlowBound`): who creates flows without end drops their own oldest,
/// not other people's.
final class PendingFlows: Sendable {
  private struct Entry {
    var record: FlowRecord
    let address: [UInt8]
    let bytes: Int
  }

  private struct State {
    var flows: [TokenHash: Entry] = [:]
    var bytes = 0
    /// Each address's flows, oldest first.
    var order: [[UInt8]: [TokenHash]] = [:]
    /// All flows, oldest first; those taken out since are skipped.
    var age: [TokenHash] = []

    mutating func remove(_ id: TokenHash) { if let gone = flows.removeValue(forKey: id) { bytes -= gone.bytes } }
  }

  private let mostPerAddress: Int
  private let state = Mutex(State())

  init(mostPerAddress: Int = FlowBound.perAddress) { self.mostPerAddress = mostPerAddress }

  /// - Parameters:
  ///   - address: whose flow it is (`ClientAddress.countingKey`).
  ///   - bound: of all flows here.
  func put(_ record: FlowRecord, from address: [UInt8], at now: Timestamp, within bound: FlowBound = FlowBound()) {
    state.withLock { state in
      if state.flows[record.id] == nil {
        state.order[address, default: []].append(record.id)
        state.age.append(record.id)
      }
      state.remove(record.id)
      let entry = Entry(record: record, address: address, bytes: record.bytesInMemory)
      state.flows[record.id] = entry
      state.bytes += entry.bytes
      if let own = state.order[address], own.count > mostPerAddress {
        state.remove(own[0])
        state.order[address] = Array(own.dropFirst())
      }
      let isFull = !bound.holds(count: state.flows.count, bytes: state.bytes)
      if isFull || state.age.count > bound.count + bound.count / 4 { sweep(&state, within: bound, at: now) }
    }
  }

  /// Changes a flow that waits here; one that was taken out meanwhile stays out.
  func update(_ record: FlowRecord) { state.withLock { $0.flows[record.id]?.record = record } }

  /// Binds a flow that waits here to a browser. Of two browsers at once the first one has it.
  /// - Returns: the flow as it is bound; nil where it does not wait here.
  func bind(_ id: TokenHash, to browser: TokenHash) -> FlowRecord? {
    state.withLock { state in
      guard var record = state.flows[id]?.record else { return nil }
      guard record.browser == nil || record.browser == browser, record.browser != nil || record.isUntouched else { return record }
      if record.browser == nil { record.bind(to: browser) }
      state.flows[id]?.record = record
      return record
    }
  }

  func find(_ id: TokenHash) -> FlowRecord? { state.withLock { $0.flows[id]?.record } }

  func remove(_ id: TokenHash) { state.withLock { $0.remove(id) } }

  /// Forgets what was taken out and what has died; then, where that is not enough, the oldest of whoever has the most.
  private func sweep(_ state: inout State, within bound: FlowBound, at now: Timestamp) {
    let dead = { (record: FlowRecord) in now >= record.expiresAt + (record.expiresAt - record.createdAt) }
    for (id, entry) in state.flows where dead(entry.record) { state.remove(id) }
    let alive = state.age.compactMap { id in state.flows[id].map { (id: id, entry: $0) } }
    if !bound.holds(count: state.flows.count, bytes: state.bytes) {
      for index in bound.swept.surplus(of: alive.map { ($0.entry.address, $0.entry.bytes) }) { state.remove(alive[index].id) }
    }
    state.age = state.age.filter { state.flows[$0] != nil }
    state.order = state.order.compactMapValues { own in
      let left = own.filter { state.flows[$0] != nil }
      return left.isEmpty ? nil : left
    }
  }
}

extension FlowRecord {
  /// What the record takes in memory, estimated: what a client may make long, and a kibibyte for the rest.
  fileprivate var bytesInMemory: Int {
    let client = (returnTo?.utf8.count ?? 0) + (app?.address.utf8.count ?? 0)
    return 1_024 + client + steps.count * 128 + codes.values.reduce(0) { $0 + $1.message.utf8.count }
  }
}
