import Synchronization

/// So many may be in here at once, and no more.
final class ConcurrencyLimit: Sendable {
  private let most: Int
  private let taken = Atomic<Int>(0)

  init(_ most: Int) { self.most = most }

  /// - Returns: false where it is full; else `leave` must follow.
  func enter() -> Bool {
    let (before, _) = taken.add(1, ordering: .relaxed)
    if before < most { return true }
    leave()
    return false
  }

  var isEmpty: Bool { taken.load(ordering: .acquiring) == 0 }

  func leave() { taken.subtract(1, ordering: .releasing) }
}

/// Deliveries that go on after the answer, as `conceal` wants it. Bounded: a delivery that finds no place is a failed
/// one.
struct BackgroundDeliveries: Sendable {
  private let places = ConcurrencyLimit(1_000)

  /// Waits until none is under way.
  func end() async { while !places.isEmpty { await Task.yield() } }

  /// - Returns: false where too many are under way.
  func start(_ delivery: @escaping @Sendable () async -> Void) -> Bool {
    guard places.enter() else { return false }
    Task {
      await delivery()
      places.leave()
    }
    return true
  }
}
