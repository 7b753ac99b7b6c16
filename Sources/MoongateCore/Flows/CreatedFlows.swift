import Synchronization

/// Which flows were created last in a store that gateways share, so that who creates flows without end makes room by their own oldest, and all
/// together by the oldest of all. Each gateway counts what was created by it.
final class CreatedFlows: Sendable {
  private struct State {
    /// Each address's flows, oldest first.
    var own: [[UInt8]: [TokenHash]] = [:]
    /// Everybody's; a ring once it is full.
    var all: [(id: TokenHash, address: [UInt8])] = []
    var oldest = 0
  }

  private let most: Int
  private let mostPerAddress: Int
  private let state = Mutex(State())

  init(most: Int = 50_000, mostPerAddress: Int = 1_000) {
    self.most = most
    self.mostPerAddress = mostPerAddress
  }

  /// - Parameter address: whose flow it is (`ClientAddress.countingKey`).
  /// - Returns: those that are too many: to be removed, unless they were begun.
  func put(_ id: TokenHash, from address: [UInt8]) -> [TokenHash] {
    state.withLock { state in
      var surplus: [TokenHash] = []
      if state.all.count < most {
        state.all.append((id, address))
      } else {
        let first = state.all[state.oldest]
        state.all[state.oldest] = (id, address)
        state.oldest = (state.oldest + 1) % most
        // Where it is not the first of its address's, it was surplus before.
        if state.own[first.address]?.first == first.id {
          state.own[first.address]?.removeFirst()
          surplus.append(first.id)
        }
        if state.own[first.address]?.isEmpty ?? false { state.own[first.address] = nil }
      }
      state.own[address, default: []].append(id)
      if let count = state.own[address]?.count, count > mostPerAddress, let first = state.own[address]?.removeFirst() { surplus.append(first) }
      return surplus
    }
  }
}
