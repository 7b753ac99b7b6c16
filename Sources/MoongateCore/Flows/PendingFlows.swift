import Synchronization

/// Flows that were created but not begun. They are kept in memory, need no write, and are bounded (`FlowBound`). A
/// client that creates too many flows loses its own oldest ones, not those of others.
final class PendingFlows: Sendable {
  private struct Entry {
    var record: FlowRecord
    let address: [UInt8]
    let bytes: Int
  }

  private struct State {
    var flows: [TokenHash: Entry] = [:]
    var bytes = 0
    /// The flows of each address, oldest first.
    var order: [[UInt8]: [TokenHash]] = [:]
    /// All flows, oldest first. Flows that were removed since are skipped.
    var age: [TokenHash] = []
    var sharing: Sharing
    /// How many requests are using each flow.
    var inUse: [TokenHash: Int] = [:]

    mutating func remove(_ id: TokenHash) { if let gone = flows.removeValue(forKey: id) { bytes -= gone.bytes } }
  }

  /// Whether another process may begin flows that this one creates.
  private enum Sharing {
    /// No: flows are kept in memory.
    case own
    /// Flows are being stored; these requests wait until that is done.
    case moving([CheckedContinuation<Void, Never>])
    /// Yes: flows are stored on creation.
    case shared
  }

  /// How many flows are stored in one transaction.
  private static let batch = 200

  private let mostPerAddress: Int
  private let isAlwaysShared: Bool
  private let state: Mutex<State>

  /// - Parameter isShared: whether flows are never kept in memory.
  init(mostPerAddress: Int = FlowBound.perAddress, isShared: Bool = false) {
    self.mostPerAddress = mostPerAddress
    isAlwaysShared = isShared
    state = Mutex(State(sharing: isShared ? .shared : .own))
  }

  /// Adds a flow.
  /// - Parameters:
  ///   - address: the address that the flow is counted for (`ClientAddress.countingKey`).
  ///   - bound: the bound on all flows in memory.
  /// - Returns: false if flows are shared. The caller must then store the flow.
  @discardableResult
  func put(_ record: FlowRecord, from address: [UInt8], at now: Timestamp, within bound: FlowBound = FlowBound())
    -> Bool
  {
    state.withLock { state in
      guard case .own = state.sharing else { return false }
      if state.flows[record.id] == nil {
        state.order[address, default: []].append(record.id)
        state.age.append(record.id)
      }
      state.remove(record.id)
      let entry = Entry(record: record, address: address, bytes: record.bytesInMemory)
      state.flows[record.id] = entry
      state.bytes += entry.bytes
      // The list changes in place: a copy for each flow of a busy address would cost more than the rest.
      if state.order[address, default: []].count > mostPerAddress,
        let oldest = state.order[address]?.removeFirst()
      {
        state.remove(oldest)
      }
      let isFull = !bound.holds(count: state.flows.count, bytes: state.bytes)
      if isFull || state.age.count > bound.count + bound.count / 4 { sweep(&state, within: bound, at: now) }
      return true
    }
  }

  // MARK: Sharing

  /// Call when a request begins to use a flow. Waits while flows are being stored.
  func enter(_ id: TokenHash) async {
    while true {
      let isMoving = state.withLock { state in
        if case .moving = state.sharing { return true }
        state.inUse[id, default: 0] += 1
        return false
      }
      guard isMoving else { return }
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          guard case .moving(let waiting) = state.sharing else { return true }
          state.sharing = .moving(waiting + [continuation])
          return false
        }
        if isOver { continuation.resume() }
      }
    }
  }

  /// Call when the request has ended.
  /// - Returns: the flow if it is still in memory and must be stored, because flows are shared now.
  func leave(_ id: TokenHash) -> FlowRecord? {
    state.withLock { state in
      let left = state.inUse[id, default: 1] - 1
      state.inUse[id] = left > 0 ? left : nil
      guard left <= 0, case .shared = state.sharing else { return nil }
      return state.flows[id]?.record
    }
  }

  /// Stores all flows in memory, and from now on new flows on creation, so that another process may begin them. A flow
  /// that a request is using is stored when the request ends (`leave`).
  ///
  /// Attack: a request that began with a flow in memory overwrites what another process has made of the flow since. A
  /// flow must never be in both places.
  /// - Parameter store: stores a batch of flows.
  /// - Throws: the error of `store`. Flows that were not stored stay in memory.
  func share<Fault: Error>(_ store: ([FlowRecord]) async throws(Fault) -> Void) async throws(Fault) {
    guard !isAlwaysShared else { return }
    let ids = state.withLock { state in
      state.sharing = .moving([])
      return state.flows.keys.filter { state.inUse[$0] == nil }
    }
    do throws(Fault) {
      var rest = ids[...]
      while !rest.isEmpty {
        let batch = rest.prefix(Self.batch)
        rest = rest.dropFirst(batch.count)
        let records = state.withLock { state in batch.compactMap { state.flows[$0]?.record } }
        try await store(records)
        state.withLock { state in for record in records { state.remove(record.id) } }
      }
    } catch {
      end(.own)
      throw error
    }
    end(.shared)
  }

  /// Keeps new flows in memory again until they begin.
  func stopSharing() { if !isAlwaysShared { end(.own) } }

  private func end(_ sharing: Sharing) {
    let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
      defer { state.sharing = sharing }
      guard case .moving(let waiting) = state.sharing else { return [] }
      return waiting
    }
    for continuation in waiting { continuation.resume() }
  }

  /// Updates a flow in memory. A flow that was removed in the meantime stays removed.
  func update(_ record: FlowRecord) { state.withLock { $0.flows[record.id]?.record = record } }

  /// Binds a flow in memory to a browser. If two browsers open it at once, the first one gets it.
  /// - Returns: the flow with its binding; nil if it is not in memory.
  func bind(_ id: TokenHash, to browser: TokenHash) -> FlowRecord? {
    state.withLock { state in
      guard var record = state.flows[id]?.record else { return nil }
      if record.browser == nil { record.browser = browser }
      state.flows[id]?.record = record
      return record
    }
  }

  func find(_ id: TokenHash) -> FlowRecord? { state.withLock { $0.flows[id]?.record } }

  func remove(_ id: TokenHash) { state.withLock { $0.remove(id) } }

  /// Removes expired flows. If that is not enough, removes the oldest flows of the address with the most.
  private func sweep(_ state: inout State, within bound: FlowBound, at now: Timestamp) {
    let dead = { (record: FlowRecord) in now >= record.expiresAt + (record.expiresAt - record.createdAt) }
    for (id, entry) in state.flows where dead(entry.record) { state.remove(id) }
    let alive = state.age.compactMap { id in state.flows[id].map { (id: id, entry: $0) } }
    if !bound.holds(count: state.flows.count, bytes: state.bytes) {
      let members = alive.map { flow in
        FlowBound.Member(
          origin: flow.entry.address, network: flow.entry.record.network, isOpened: flow.entry.record.browser != nil,
          bytes: flow.entry.bytes)
      }
      for index in bound.swept.surplus(of: members) {
        state.remove(alive[index].id)
      }
    }
    state.age = state.age.filter { state.flows[$0] != nil }
    state.order = state.order.compactMapValues { own in
      let left = own.filter { state.flows[$0] != nil }
      return left.isEmpty ? nil : left
    }
  }
}

extension FlowRecord {
  /// The estimated memory use of a record in bytes: the parts that a client can make long, and what was measured for
  /// the rest, with the entries that refer to it.
  fileprivate var bytesInMemory: Int {
    let client = (returnTo?.utf8.count ?? 0) + (grant?.redirect.utf8.count ?? 0)
    return 2_560 + client + steps.count * 128 + codes.values.reduce(0) { $0 + $1.message.utf8.count }
  }
}
