import Synchronization

/// Limits how many operations run at the same time.
final class ConcurrencyLimit: Sendable {
  private let most: Int
  private let taken = Atomic<Int>(0)

  init(_ most: Int) { self.most = most }

  /// Takes a permit.
  /// - Returns: false if the limit is reached. After true, the caller must call `leave`.
  func enter() -> Bool {
    let (before, _) = taken.add(1, ordering: .relaxed)
    if before < most { return true }
    leave()
    return false
  }

  func leave() { taken.subtract(1, ordering: .releasing) }
}

/// Runs deliveries after the response was written (`ResponseEnd`), as `conceal` requires. Bounded: if too many are
/// running, a new delivery fails.
final class BackgroundDeliveries: Sendable {
  private struct State {
    var running = 0
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private static let most = 1_000
  private let state = Mutex(State())

  /// Waits until no delivery is running.
  ///
  /// Within a request, its deliveries begin now: they would wait for a response that waits for them. Operators reload a
  /// configuration by such a request, and its cases read messages.
  func end() async {
    ResponseEnd.current?.reach()
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let isIdle = state.withLock { state in
        if state.running > 0 { state.waiting.append(continuation) }
        return state.running == 0
      }
      if isIdle { continuation.resume() }
    }
  }

  /// - Returns: false if too many deliveries are running.
  func start(_ delivery: @escaping @Sendable () async -> Void) -> Bool {
    let isRoom = state.withLock { state in
      guard state.running < Self.most else { return false }
      state.running += 1
      return true
    }
    guard isRoom else { return false }
    Task { [end = ResponseEnd.current] in
      await end?.wait()
      await delivery()
      leave()
    }
    return true
  }

  private func leave() {
    let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
      state.running -= 1
      guard state.running == 0 else { return [] }
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }
}
