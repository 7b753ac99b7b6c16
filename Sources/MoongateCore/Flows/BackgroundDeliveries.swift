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

  var isEmpty: Bool { taken.load(ordering: .acquiring) == 0 }

  func leave() { taken.subtract(1, ordering: .releasing) }
}

/// Runs deliveries after the response was written (`ResponseEnd`), as `conceal` requires. Bounded: if too many are
/// running, a new delivery fails.
struct BackgroundDeliveries: Sendable {
  private let places = ConcurrencyLimit(1_000)

  /// Waits until no delivery is running.
  func end() async { while !places.isEmpty { await Task.yield() } }

  /// - Returns: false if too many deliveries are running.
  func start(_ delivery: @escaping @Sendable () async -> Void) -> Bool {
    guard places.enter() else { return false }
    Task { [end = ResponseEnd.current] in
      await end?.wait()
      await delivery()
      places.leave()
    }
    return true
  }
}
