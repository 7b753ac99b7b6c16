import MoongateCore
import Synchronization

/// The flows that this process stored last, beside the JSON that each became: who reads that very JSON back need not
/// decode it. What another process has stored meanwhile is other JSON.
final class DecodedFlows: Sendable {
  private struct State {
    var flows: [TokenHash: (encoded: [UInt8], record: FlowRecord)] = [:]
    /// In the order in which they came; a ring once it is full.
    var order: [TokenHash] = []
    var oldest = 0
  }

  /// About 2 KiB each.
  private static let most = 1024

  private let state = Mutex(State())

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
