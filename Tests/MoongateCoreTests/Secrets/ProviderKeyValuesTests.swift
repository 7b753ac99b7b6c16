import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// The key-value store that is granted to providers.
@Suite struct ProviderKeyValuesTests {
  private let clock = ManualClock()
  private let store: any Store
  private let keys: KeyRing
  private let log = CapturedLog()

  init() throws {
    store = try SQLiteStore.memory()
    keys = try KeyRing(master: [UInt8](repeating: 7, count: 32))
  }

  private func values(of provider: ProviderName = "push", by keys: KeyRing? = nil) -> ProviderKeyValues {
    ProviderKeyValues(of: provider, in: store, keys: keys ?? self.keys, clock: clock, logger: log.logger)
  }

  @Test func gatewayStoreAndMemoryStoreBehaveAlike() async throws {
    let memory = MemoryKeyValueStore(clock: StepClock { [clock] in clock.now().milliseconds })
    for store in [values(), memory] as [any KeyValueStore] {
      #expect(try await store.value(for: "a") == nil)
      try await store.set([1], for: "a", expiresIn: .seconds(10))
      #expect(try await store.setOnce([2], for: "a", expiresIn: .seconds(10)) == false)
      #expect(try await store.value(for: "a") == [1])
      #expect(try await store.take("a") == [1])
      #expect(try await store.take("a") == nil)
      #expect(try await store.setOnce([3], for: "a", expiresIn: .seconds(1)))
      try await store.set([4], for: "b", expiresIn: .seconds(10))
      try await store.remove("b")
      try await store.remove("b")
      #expect(try await store.value(for: "b") == nil)
      clock.advance(by: .seconds(1))
      #expect(try await store.value(for: "a") == nil)
      #expect(try await store.setOnce([3], for: "a", expiresIn: .seconds(30 * 86_400)))
      await #expect(throws: KeyValueFault.invalidKey(bytes: 0)) { try await store.value(for: "") }
      await #expect(throws: KeyValueFault.invalidKey(bytes: 258)) {
        try await store.take(String(repeating: "é", count: 129))
      }
      await #expect(throws: KeyValueFault.valueTooLong(bytes: 16_385)) {
        try await store.set([UInt8](repeating: 0, count: 16_385), for: "c", expiresIn: .seconds(1))
      }
      await #expect(throws: KeyValueFault.invalidLifetime(.milliseconds(999))) {
        try await store.set([], for: "c", expiresIn: .milliseconds(999))
      }
      await #expect(throws: KeyValueFault.invalidLifetime(.seconds(2_592_001))) {
        try await store.setOnce([], for: "c", expiresIn: .seconds(2_592_001))
      }
    }
  }

  /// Attack: the handle of another provider's pending approval.
  @Test func valuesOfOtherProvidersAreInaccessible() async throws {
    try await values().set([1], for: "handle", expiresIn: .seconds(60))
    let other = values(of: "other")
    #expect(try await other.value(for: "handle") == nil)
    #expect(try await other.take("handle") == nil)
    #expect(try await other.setOnce([2], for: "handle", expiresIn: .seconds(60)))
    try await other.remove("handle")
    #expect(try await values().value(for: "handle") == [1])
  }

  /// Attack: somebody who reads the database learns handles; somebody who writes to it replaces one approval with
  /// another.
  @Test func databaseRevealsNothingAndChangesAreDetected() async throws {
    try await values().set(Array("approved".utf8), for: "handle-of-mallory", expiresIn: .seconds(60))
    let row = try #require(try await store.providerValues(after: nil, limit: 1).first)
    let text = String(decoding: row.sealed + row.place.key, as: UTF8.self)
    #expect(!text.contains("handle") && !text.contains("approved"))
    let victim = SealedProviderValue.place(of: "handle-of-asha", for: "push", by: keys)
    try await store.replaceProviderValue(
      row, by: ProviderValue(place: victim, sealed: row.sealed, expiresAt: row.expiresAt), at: clock.now())
    await #expect(throws: KeyValueFault.unavailable) { try await values().value(for: "handle-of-asha") }
    #expect(log.lines.contains { $0.contains("a value cannot be opened") })
  }

  @Test func fullProviderStoreThrows() async throws {
    for number in 0..<KeyValueLimits.entries {
      let place = SealedProviderValue.place(of: "\(number)", for: "push", by: keys)
      _ = try await store.putProviderValue(
        ProviderValue(place: place, sealed: [1], expiresAt: clock.now() + .seconds(60)), ProviderValueRule(),
        at: clock.now())
    }
    await #expect(throws: KeyValueFault.full) { try await values().set([1], for: "one more", expiresIn: .seconds(60)) }
    try await values().set([1], for: "0", expiresIn: .seconds(60))
    try await values(of: "other").set([1], for: "one more", expiresIn: .seconds(60))
    clock.advance(by: .seconds(60))
    try await values().set([1], for: "one more", expiresIn: .seconds(60))
  }

  @Test func valuesStayReadableAfterKeyRotation() async throws {
    let one = try MasterKeys(only: [UInt8](repeating: 7, count: 32))
    let both = try #require(try one.adding([UInt8](repeating: 8, count: 32)).rotated())
    let ring = KeyRing(both)
    try await values().set([1], for: "before", expiresIn: .seconds(60))
    // A rotation: existing values are found, and new ones are sealed with the new key.
    #expect(try await values(by: ring).value(for: "before") == [1])
    try await values(by: ring).set([2], for: "after", expiresIn: .seconds(60))
    // The oldest key, which names the places of values, is retired.
    let left = KeyRing(try #require(both.without(keys.currentName)))
    #expect(try await values(by: left).value(for: "before") == nil)
    try await KeyUsage.moveValues(from: ring, to: left, in: store, at: clock.now())
    try await KeyUsage.moveValues(from: ring, to: left, in: store, at: clock.now())
    #expect(try await values(by: left).value(for: "before") == [1])
    #expect(try await values(by: left).take("after") == [2])
    #expect(try await store.providerValues(after: nil, limit: 10).count == 1)
    clock.advance(by: .seconds(60))
    #expect(try await values(by: left).value(for: "before") == nil, "a move makes nothing live longer")
  }

  @Test func aKeyThatIsNotTheOldestIsRetiredWithoutANewPlace() async throws {
    let one = try MasterKeys(only: [UInt8](repeating: 7, count: 32))
    let second = try #require(try one.adding([UInt8](repeating: 8, count: 32)).rotated())
    let third = try #require(try second.adding([UInt8](repeating: 9, count: 32)).rotated())
    try await values(by: KeyRing(second)).set([2], for: "a", expiresIn: .seconds(60))
    let left = KeyRing(try #require(third.without(KeyRing(second).currentName)))
    try await KeyUsage.moveValues(from: KeyRing(third), to: left, in: store, at: clock.now())
    #expect(try await values(by: left).value(for: "a") == [2])
  }
}
