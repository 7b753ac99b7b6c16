import Synchronization

/// Whether event loops may use cached sessions and tokens without asking the store.
///
/// Attack: during an upgrade, two processes use one store. A user signs out on a connection to one process, and a
/// stolen token is used on a connection to the other before it learns of the sign-out. Therefore no cache is used while
/// both processes serve.
final class CacheTrust: Sendable {
  private let isWithdrawn = Atomic<Bool>(false)

  var isGiven: Bool { !isWithdrawn.load(ordering: .acquiring) }

  func set(_ isGiven: Bool) { isWithdrawn.store(!isGiven, ordering: .releasing) }
}
