import MoongateCore
import MoongateStore
import MoongateTesting
import Synchronization
import Testing

/// Subscriptions that tell the log which events of the audit trail are stored.
@Suite struct RecordedEventsTests {
  /// Regression: each notification cost more stack than the one before, until it overflowed.
  @Test func notificationsUseConstantStack() {
    let recorded = SQLStoreMemory().recorded
    let heard = Atomic<Int>(0)
    recorded.subscribe { heard.add($0.count, ordering: .relaxed) }
    let event = AuditEvent(id: DecisionID(text: "dc_1"), at: ManualClock().now(), kind: .refused)
    for _ in 0..<200_000 { recorded.notify([event]) }
    #expect(heard.load(ordering: .relaxed) == 200_000)
  }
}
