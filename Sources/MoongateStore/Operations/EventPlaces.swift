import MoongateCore
import Synchronization

/// Tells where the addresses of audit events are, when they are stored. All writers of a process share it.
package final class EventPlaces: Sendable {
  private let generations = Mutex<ActiveGeneration?>(nil)

  /// - Parameter generations: the configurations whose databases (`geo`) are used from now on.
  package func use(_ generations: ActiveGeneration) { self.generations.withLock { $0 = generations } }

  private var places: (any ClientPlaces)? { generations.withLock { $0 }?.current.gateway.places }

  func located(_ events: [AuditEvent]) -> [AuditEvent] {
    guard let places else { return events }
    return events.map { $0.located(by: places) }
  }

  func located(_ changes: [Change]) -> [Change] {
    guard let places else { return changes }
    return changes.map { change -> Change in
      if case .audit(let event) = change { .audit(event.located(by: places)) } else { change }
    }
  }
}
