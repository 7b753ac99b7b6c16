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

  private struct Places: ClientPlaces {
    func place(of address: ClientAddress) -> ClientPlace { ClientPlace(country: "IN", asn: 64_500) }
  }

  /// Events of transactions, of batches and of the trail are all stored with the place of their address.
  @Test func storedEventsSayWhereTheirAddressIs() async throws {
    let (store, clock) = (try SQLiteStore.memory(), ManualClock())
    var settings = GatewaySettings.test()
    settings.places = Places()
    let generations = ActiveGeneration(TestGeneration(gateway: settings, flows: [], policies: []), at: clock.now())
    let heard = Mutex<[String?]>([])
    store.memory.recorded.subscribe { events in heard.withLock { $0 += events.map(\.country) } }
    func event(_ id: String) -> AuditEvent {
      AuditEvent(id: DecisionID(text: id), at: clock.now(), kind: .locked, address: "192.0.2.7")
    }
    try await store.append([event("dc_1")])
    store.memory.places.use(generations)
    try await store.append([event("dc_2")])
    _ = try await store.apply([.audit(event("dc_3"))], at: clock.now())
    let trail = AuditTrail(store: store, logger: CapturedLog().logger, generations: generations)
    trail.record(event("dc_4"))
    let waiting = try await trail.event(DecisionID(text: "dc_4"))
    #expect(waiting?.country == "IN")
    let found = try await trail.events(limit: 10).reversed().map { [$0.country, $0.asn.map(String.init)] }
    #expect(found == [[nil, nil], ["IN", "64500"], ["IN", "64500"], ["IN", "64500"]])
    let told = heard.withLock { $0 }
    #expect(told == [nil, "IN", "IN", "IN"])
  }
}
