import MoongateCore
import Synchronization

/// A cache of the flows that this process stored last, with their JSON: if the same JSON is read back, it need not be
/// decoded. A flow that another process has stored since has different JSON. `Store.recentFlow` reads nothing; its
/// callers check the version.
final class DecodedFlows: Sendable {
  private struct State {
    var flows: [TokenHash: (encoded: [UInt8], record: FlowRecord)] = [:]
    /// In the order of insertion. A ring buffer once it is full.
    var order: [TokenHash] = []
    var oldest = 0
  }

  /// About 2 KiB each.
  private static let most = 1024

  private let state = Mutex(State())

  /// The flow as it is remembered. It may have been stored again since, by this process too.
  func record(_ id: TokenHash) -> FlowRecord? { state.withLock { $0.flows[id]?.record } }

  func record(of encoded: [UInt8], _ id: TokenHash) -> FlowRecord? {
    guard let kept = state.withLock({ $0.flows[id] }), kept.encoded == encoded else { return nil }
    return kept.record
  }

  func keep(_ record: FlowRecord, encoded: [UInt8]) {
    state.withLock { state in
      guard state.flows.updateValue((encoded, record), forKey: record.id) == nil else { return }
      guard state.order.count == Self.most else { return state.order.append(record.id) }
      state.flows[state.order[state.oldest]] = nil
      state.order[state.oldest] = record.id
      state.oldest = (state.oldest + 1) % Self.most
    }
  }
}
