import Synchronization

/// Tells this process which sessions it has just ended or changed, before the caller of `Store.apply` continues.
///
/// Attack: a copied token is used in the moment after its owner signed out. `SessionWatch` learns of changes within a
/// second, but the owner was answered already. What this process changed itself, its caches forget before it answers;
/// other processes follow by `SessionWatch`.
package final class CommittedSessionChanges: Sendable {
  private let subscribers = Mutex<[@Sendable (SessionChanges) async -> Void]>([])

  package init() {}

  /// Calls back after each transaction that ended or changed sessions or accounts.
  /// - Parameter callback: returns once nothing in its cache predates the change.
  package func subscribe(_ callback: @escaping @Sendable (SessionChanges) async -> Void) {
    subscribers.withLock { $0.append(callback) }
  }

  /// Returns when all subscribers have.
  package func tell(_ changes: SessionChanges) async {
    guard !changes.tokens.isEmpty || !changes.accounts.isEmpty else { return }
    for subscriber in subscribers.withLock({ $0 }) { await subscriber(changes) }
  }
}
