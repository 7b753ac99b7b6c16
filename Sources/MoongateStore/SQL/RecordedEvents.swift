import MoongateCore
import Synchronization

/// Tells this process which lines of the audit trail it has stored: whatever wrote them, and only those that are there.
package final class RecordedEvents: Sendable {
  private let listener = Mutex<(@Sendable ([AuditEvent]) -> Void)?>(nil)

  /// - Parameter listener: called with each batch, on any thread; takes the place of the one before.
  package func subscribe(_ listener: @escaping @Sendable ([AuditEvent]) -> Void) { self.listener.withLock { $0 = listener } }

  func tell(_ events: [AuditEvent]) {
    guard !events.isEmpty, let listener = listener.withLock({ $0 }) else { return }
    listener(events)
  }
}
