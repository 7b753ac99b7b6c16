import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

/// Which key protects which values, and which of them can be moved to another key.
@Suite struct KeyUsageTests {
  private let old: KeyRing
  private let ring: KeyRing
  private let store: any Store
  private let now = ManualClock.start

  init() throws {
    let one = try MasterKeys(only: [UInt8](repeating: 7, count: 32))
    old = KeyRing(one)
    ring = KeyRing(try #require(try one.adding([UInt8](repeating: 8, count: 32)).rotated()))
    store = try SQLiteStore.memory()
  }

  private func keep(_ account: String, _ records: [(ProviderName, [UInt8], KeyRing)]) async throws {
    var changes: [Change] = [.createAccount(Account(id: account, createdAt: now, lastSeenAt: now))]
    for (provider, record, keys) in records {
      changes.append(
        .putProviderRecord(account: account, provider, sealed: try keys.seal(record, for: "\(provider) \(account)")))
    }
    guard case .applied = try await store.apply(changes, at: now) else {
      Issue.record("not stored")
      return
    }
  }

  private func hash(_ keys: KeyRing) throws -> [UInt8] {
    Array(try SecretHashing(keys: keys, random: SeededRandom(), cost: .cheap).hash(Array("123456".utf8)).utf8)
  }

  @Test func recordsAreCountedAndMoved() async throws {
    let stranger = try KeyRing(master: [UInt8](repeating: 9, count: 32))
    try await keep("ac_1", [("pin", hash(old), old), ("totp", Array("secret".utf8), old)])
    try await keep("ac_2", [("pin", hash(ring), ring), ("totp", Array("other".utf8), ring)])
    try await keep("ac_3", [("pin", hash(stranger), stranger)])
    // More than one page of accounts.
    for number in 10..<260 { try await keep("ac_x\(number)", [("totp", [1], old)]) }

    let before = try await KeyUsage(of: store, by: ring)
    #expect(before.sealed == [old.currentName: 252, ring.currentName: 2])
    #expect(before.peppered == [old.currentName: ["pin": 1], ring.currentName: ["pin": 1]])
    #expect(before.foreign == 1)

    // Everything that can be moved without a secret is moved; a hash waits for its owner.
    let moved = try await KeyUsage.move(from: old.currentName, in: store, by: ring, dropping: false, at: now)
    #expect(moved.sealed == [old.currentName: 1, ring.currentName: 253])
    #expect(moved.peppered == before.peppered)
    let sealed = try #require(try await store.providerRecord(of: "ac_1", for: "totp"))
    #expect(try ring.opening(sealed, for: "totp ac_1") == (Array("secret".utf8), ring.currentName))

    let dropped = try await KeyUsage.move(from: old.currentName, in: store, by: ring, dropping: true, at: now)
    #expect(dropped.sealed == [ring.currentName: 253])
    #expect(dropped.peppered == [ring.currentName: ["pin": 1]])
    #expect(try await store.account("ac_1")?.credentials == ["totp"])
    #expect(dropped.foreign == 1, "records under an unknown key are never removed")
  }
}
