import MoongateCore
import Synchronization

/// Announces which audit events this process has stored, for all writers. Called only for stored events.
package final class RecordedEvents: Sendable {
  // An array although there is only one: if a lock holds a closure directly, Swift wraps it again at each access, and
  // calls become slower until the stack overflows.
  private let listeners = Mutex<[@Sendable ([AuditEvent]) -> Void]>([])

  /// - Parameter listener: called with each batch, on any thread.
  package func subscribe(_ listener: @escaping @Sendable ([AuditEvent]) -> Void) {
    listeners.withLock { $0.append(listener) }
  }

  package func notify(_ events: [AuditEvent]) {
    guard !events.isEmpty else { return }
    for listener in listeners.withLock({ $0 }) { listener(events) }
  }
}
