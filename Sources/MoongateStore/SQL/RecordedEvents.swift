import MoongateCore
import Synchronization

/// Tells this process which lines of the audit trail it has stored: whatever wrote them, and only those that are there.
package final class RecordedEvents: Sendable {
  // A list, though there is one: Swift wraps a closure that a lock holds by itself once more at each reading, and calls
  // then take ever longer until the stack overflows.
  private let listeners = Mutex<[@Sendable ([AuditEvent]) -> Void]>([])

  /// - Parameter listener: called with each batch, on any thread.
  package func subscribe(_ listener: @escaping @Sendable ([AuditEvent]) -> Void) {
    listeners.withLock { $0.append(listener) }
  }

  package func tell(_ events: [AuditEvent]) {
    guard !events.isEmpty else { return }
    for listener in listeners.withLock({ $0 }) { listener(events) }
  }
}
