import Synchronization

/// Tells this process's caches which sessions it has just ended or changed, before `Store.apply` returns.
///
/// Attack: a copied token is used in the moment after its owner signed out. `SessionWatch` sees changes within a
/// second, but the owner has already received the response. Caches of this process therefore drop changed entries
/// before the response; other processes follow by `SessionWatch`.
package final class CommittedSessionChanges: Sendable {
  private let subscribers = Mutex<[@Sendable (SessionChanges) async -> Void]>([])

  package init() {}

  /// Registers a callback for each transaction that ended or changed sessions or accounts.
  /// - Parameter callback: returns once its cache holds nothing older than the change.
  package func subscribe(_ callback: @escaping @Sendable (SessionChanges) async -> Void) {
    subscribers.withLock { $0.append(callback) }
  }

  /// Returns once all subscribers have returned.
  package func notify(_ changes: SessionChanges) async {
    guard !changes.tokens.isEmpty || !changes.accounts.isEmpty else { return }
    for subscriber in subscribers.withLock({ $0 }) { await subscriber(changes) }
  }
}
