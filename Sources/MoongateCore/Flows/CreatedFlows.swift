import Synchronization

/// Which flows an address has created in a store that gateways share, so that who creates flows without end makes room by their own oldest.
/// Each gateway counts what was created by it.
final class CreatedFlows: Sendable {
  private struct State {
    /// Each address's flows, oldest first.
    var order: [[UInt8]: [TokenHash]] = [:]
    var count = 0
  }

  private let most: Int
  private let mostPerAddress: Int
  private let state = Mutex(State())

  init(most: Int = 50_000, mostPerAddress: Int = 1_000) {
    self.most = most
    self.mostPerAddress = mostPerAddress
  }

  /// - Parameter address: whose flow it is (`ClientAddress.countingKey`).
  /// - Returns: the oldest of the address's, where there are too many: to be removed, unless it was begun.
  func put(_ id: TokenHash, from address: [UInt8]) -> TokenHash? {
    state.withLock { state in
      if state.count >= most {
        // What is forgotten here ends by its age.
        state = State()
      }
      var own = state.order.removeValue(forKey: address) ?? []
      own.append(id)
      state.count += 1
      defer { state.order[address] = own }
      guard own.count > mostPerAddress else { return nil }
      state.count -= 1
      return own.removeFirst()
    }
  }
}
