import Logging
import MoongateSDK
import MoongateStore
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateCore

/// How a flood of refusals is folded in the audit trail.
@Suite struct RefusalFoldsTests {
  private let clock = ManualClock()

  private func refusal(
    _ id: String, code: String = "not_found", address: String = "192.0.2.1", rule: String? = nil,
    provider: ProviderName? = nil
  ) -> AuditEvent {
    AuditEvent(
      id: DecisionID(text: "dc_\(id)"), at: clock.now(), kind: .refused, provider: provider, address: address,
      code: code,
      detail: rule.map { ["rule": $0] } ?? [:])
  }

  private func trail() throws -> (AuditTrail, SQLiteStore) {
    let store = try SQLiteStore(path: ":memory:", keyFingerprint: [1])
    return (AuditTrail(store: store, logger: Logger(label: "test")), store)
  }

  @Test func firstRefusalsAreStoredSinglyAndTheRestFolded() async throws {
    let (trail, _) = try trail()
    for number in 0..<1_000 { trail.record(refusal("\(number)")) }
    let events = try await trail.events(limit: 100)
    #expect(events.count == RefusalFolds.singles + 1)
    #expect(events.filter { $0.count != nil }.map(\.count) == [1_000 - RefusalFolds.singles])
    #expect(trail.refusals["not_found"] == 1_000)
  }

  /// Every client gets a decision id that can be looked up: at once, later, and at another gateway.
  @Test func everyDecisionIdIsFound() async throws {
    let (trail, store) = try trail()
    let ids = (0..<1_000).map { trail.record(refusal("\($0)")) }
    for id in Set(ids) { #expect(try await trail.event(id) != nil) }
    #expect(Set(ids).count == RefusalFolds.singles + 1)
    try await trail.flush()
    for id in Set(ids) { #expect(try await store.event(id) != nil) }
    clock.advance(by: .seconds(60))
    trail.writeFloodCounts(at: clock.now())
    try await trail.flush()
    #expect(try await store.event(ids[999])?.count == 1_000 - RefusalFolds.singles)
    #expect(try await trail.event(ids[999])?.count == 1_000 - RefusalFolds.singles)
  }

  /// The minute of a flood ends between reading the store and counting.
  @Test func aFloodThatEndsDuringAReadKeepsItsCount() async throws {
    let store = InterruptedStore(try SQLiteStore(path: ":memory:", keyFingerprint: [1]))
    let trail = AuditTrail(store: store, logger: Logger(label: "test"))
    for number in 0..<1_000 { trail.record(refusal("\(number)")) }
    try await trail.flush()
    store.afterRead { trail.writeFloodCounts() }
    #expect(try await trail.events(limit: 100).compactMap(\.count) == [1_000 - RefusalFolds.singles])
  }

  /// A client looks its decision up while the batch is being written to the store.
  @Test func anEventIsFoundWhileItIsWritten() async throws {
    let slow = SlowStore()
    let trail = AuditTrail(store: slow, logger: Logger(label: "test"))
    let id = trail.record(refusal("1"))
    let flush = Task { try await trail.flush() }
    await slow.isAsked()
    #expect(try await trail.event(id)?.id == id)
    slow.goOn()
    try await flush.value
    #expect(try await trail.event(id) == nil, "from here on it is the store's to say")
  }

  @Test func kindsAddressesAndMinutesAreDistinguished() async throws {
    let (trail, _) = try trail()
    func flood(_ make: (Int) -> AuditEvent) { for number in 0..<20 { trail.record(make(number)) } }
    flood { refusal("a\($0)") }
    flood { refusal("b\($0)", code: "bad_request") }
    flood { refusal("c\($0)", address: "192.0.2.2") }
    flood { refusal("d\($0)", rule: "limits.send") }
    flood { refusal("e\($0)", provider: EngineTestBench.phone) }
    clock.advance(by: .seconds(60))
    flood { refusal("f\($0)") }
    let folds = try await trail.events(limit: 1_000).filter { $0.count != nil }
    #expect(folds.count == 6 && folds.allSatisfy { $0.count == 10 })
  }

  /// Attack: a flood from every address of one IPv6 network.
  @Test func anIPv6AddressCountsByItsNetwork() async throws {
    let (trail, _) = try trail()
    for number in 0..<100 { trail.record(refusal("\(number)", address: "2001:db8::\(number)")) }
    #expect(try await trail.events(limit: 1_000).count == RefusalFolds.singles + 1)
    trail.record(refusal("other", address: "2001:db8:0:1::1"))
    #expect(try await trail.events(limit: 1_000).count == RefusalFolds.singles + 2)
  }

  /// Attack: somebody who was removed from a group lets an app ask for the claims without end, until the events of all
  /// other users' sign-ins are no longer stored.
  @Test func refusalsOfAppsAreFoldedByTheirRule() async throws {
    let (trail, _) = try trail()
    #expect(AuditEvent.Kind.appRefused.quota == .refusals)
    let rules = ["grafana.require", "wiki.require"]
    for rule in rules {
      let ids = (0..<1_000).map { number in
        trail.record(
          AuditEvent(
            id: DecisionID(text: "dc_\(rule)\(number)"), at: clock.now(), kind: .appRefused, account: "ac_1",
            address: "192.0.2.1", detail: ["app": "app", "reason": "not_in_group", "rule": rule]))
      }
      for id in Set(ids) { #expect(try await trail.event(id)?.kind == .appRefused) }
    }
    let events = try await trail.events(limit: 1_000)
    for rule in rules {
      let own = events.filter { $0.detail["rule"] == rule }
      #expect(own.count == RefusalFolds.singles + 1)
      #expect(own.compactMap(\.count) == [1_000 - RefusalFolds.singles])
    }
    #expect(trail.refusals.isEmpty, "the codes of refusals are a closed set")
  }

  /// Attack: a flood from more addresses than can be tracked.
  @Test func refusalsFromManyAddressesAreBounded() async throws {
    let (trail, store) = try trail()
    for number in 0..<30_000 {
      trail.record(refusal("\(number)", address: "10.\(number >> 16 & 255).\(number >> 8 & 255).\(number & 255)"))
      if number.isMultiple(of: 5_000) { try await trail.flush() }
    }
    try await trail.flush()
    let events = try await store.events(limit: 100_000)
    #expect(events.count(where: { $0.count == nil }) == RefusalFolds.maxSingles)
    #expect(events.count <= RefusalFolds.maxKeys + 1)
  }

  /// Attack: junk requests come faster than the store writes, until queued events are dropped and a sign-in with them.
  @Test func queueKeepsSecurityEvents() async throws {
    let store = try SQLiteStore(path: ":memory:", keyFingerprint: [1])
    let trail = AuditTrail(store: store, logger: Logger(label: "test"), foldsFloods: false)
    trail.record(AuditEvent(id: DecisionID(text: "dc_lock"), at: clock.now(), kind: .locked))
    for number in 0..<50_000 { trail.record(refusal("\(number)")) }
    #expect(try await trail.events(limit: 100_000).last?.kind == .locked)
    #expect(try await trail.event(DecisionID(text: "dc_49999")) != nil)
  }
}

/// A store that keeps nothing and blocks until the test releases it.
private final class SlowStore: AuditStore {
  private let asked = AsyncStream<Void>.makeStream()
  private let gate = AsyncStream<Void>.makeStream()

  /// Returns when the store is given events.
  func isAsked() async { for await _ in asked.stream { return } }

  func goOn() { gate.continuation.finish() }

  func append(_ events: [AuditEvent]) async throws(StoreFault) {
    asked.continuation.yield()
    for await _ in gate.stream {}
  }

  func events(limit: Int) async throws(StoreFault) -> [AuditEvent] { [] }
  func event(_ id: DecisionID) async throws(StoreFault) -> AuditEvent? { nil }
}

/// An audit store that calls a closure after each read.
private final class InterruptedStore: AuditStore {
  private let store: SQLiteStore
  private let after = Mutex<@Sendable () -> Void>({})

  init(_ store: SQLiteStore) { self.store = store }

  func afterRead(_ closure: @escaping @Sendable () -> Void) { after.withLock { $0 = closure } }

  func append(_ events: [AuditEvent]) async throws(StoreFault) { try await store.append(events) }

  func events(limit: Int) async throws(StoreFault) -> [AuditEvent] {
    let events = try await store.events(limit: limit)
    after.withLock(\.self)()
    return events
  }

  func event(_ id: DecisionID) async throws(StoreFault) -> AuditEvent? { try await store.event(id) }
}
