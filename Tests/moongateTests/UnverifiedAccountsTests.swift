import Logging
import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateGateway

/// Accounts without a verified identifier are removed after `unverified_lifetime` (accounts.lua).
@Suite struct UnverifiedAccountsTests {
  @Test func unverifiedAccountsAreRemovedOnceTheirLifetimeHasPassed() async throws {
    let clock = ManualClock()
    let store = try SQLiteStore(path: ":memory:", keyFingerprint: [1])
    let generation = TestGeneration(gateway: .test(), flows: [], policies: [])
    let loop = UnverifiedAccountsLoop(
      store: store, generations: ActiveGeneration(generation, at: clock.now()), clock: clock, random: SystemRandom(),
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    let address = Identifier(kind: .email, value: "asha@example.com", display: "asha@example.com")
    let phone = Identifier(kind: .phone, value: "+919999999999", display: "+91 99999 99999")
    for (id, held) in [
      ("ac_1", HeldIdentifier(identifier: address, verifiedAt: nil)),
      ("ac_2", HeldIdentifier(identifier: phone, verifiedAt: clock.now())),
    ] {
      let account = Account(id: id, createdAt: clock.now(), lastSeenAt: clock.now(), identifiers: [held])
      _ = try await store.apply([.createAccount(account)], at: clock.now())
    }
    clock.advance(by: AccountRules.standard.unverifiedLifetime - .seconds(1))
    #expect(await loop.step() == false)
    #expect(try await store.accounts(after: nil, limit: 10).count == 2)
    clock.advance(by: .seconds(1))
    _ = await loop.step()
    #expect(try await store.accounts(after: nil, limit: 10).map(\.id) == ["ac_2"])
    let told = try await store.events(limit: 10)
    #expect(told.count == 1 && told[0].kind == .accountDeleted && told[0].detail["count"] == "1")
    _ = await loop.step()
    #expect(try await store.events(limit: 10).count == 1, "no event if nothing was deleted")
    try store.close()
  }
}
