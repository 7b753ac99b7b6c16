import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// An operator removes a factor that a user has lost.
@Suite struct FactorResetTests {
  private func owner(_ desk: EngineTestBench, number: String = "911111") async throws -> SessionSnapshot {
    let first = try #require(
      try await desk.session(try await desk.pass("register", EngineTestBench.phone, number, by: desk.client())))
    return try #require(
      try await desk.session(
        try await desk.secret("pin_set", ["new_secret": "1"], by: desk.client(session: first)).get()))
  }

  private func reset(_ desk: EngineTestBench, _ account: String, _ provider: ProviderName = "pin") async throws -> FactorReset
  {
    let outcome = try await desk.engine.resetFactor(
      provider, of: account, by: OperatorIdentity(name: "ravi", tool: "test"), client: desk.client())
    await desk.engine.deliveriesEnd()
    return outcome
  }

  @Test func theRecordTheLocksAndTheSessionsGo() async throws {
    let desk = try await EngineTestBench.full()
    let own = try await owner(desk)
    let other = try await owner(desk, number: "912222")
    for _ in 0..<3 { _ = await desk.secret("pin_unlock", ["secret": "2"], by: desk.client(session: own)) }
    #expect(
      await desk.secret("pin_unlock", ["secret": "1"], by: desk.client(session: own)).refusal?.code == .tooManyAttempts)
    let before = try #require(try await desk.store.account(own.account.id))
    let messages = desk.delivery.notices.count

    #expect(try await reset(desk, own.account.id) == .done)
    let after = try #require(try await desk.store.account(own.account.id))
    #expect(after.credentials.isEmpty && after.identifiers == before.identifiers)
    #expect(after.epoch > before.epoch, "what was proved before is worth nothing")
    #expect(try await desk.store.sessions(of: own.account.id).isEmpty)
    #expect(try await desk.store.sessions(of: other.account.id).count == 1, "another account keeps its own")
    #expect(try await desk.store.account(other.account.id)?.credentials == ["pin"])
    #expect(try await desk.store.locks(at: desk.clock.now()).isEmpty)
    let told = desk.delivery.notices.dropFirst(messages)
    #expect(told.filter { $0.text.contains("turned off") }.map(\.to) == ["+911111"], "\(told)")
    let event = try #require(try await desk.store.events(limit: 20).first { $0.kind == .factorRemoved })
    #expect(
      event.account == own.account.id && event.provider == "pin" && event.detail["by"] == "test"
        && event.detail["operator"] == "ravi")

    // The user sets a new one, which is not locked.
    desk.clock.advance(by: .seconds(1000))
    let again = try #require(
      try await desk.session(try await desk.pass("login", EngineTestBench.phone, "911111", by: desk.client())))
    let set = try #require(
      try await desk.session(
        try await desk.secret("pin_set", ["new_secret": "5"], by: desk.client(session: again)).get()))
    #expect(await desk.secret("pin_unlock", ["secret": "5"], by: desk.client(session: set)).refusal == nil)
  }

  @Test func nothingIsDoneTwice() async throws {
    let desk = try await EngineTestBench.full()
    let own = try await owner(desk)
    #expect(try await reset(desk, own.account.id) == .done)
    let (events, notices) = (try await desk.store.events(limit: 100).count, desk.delivery.notices.count)
    let epoch = try await desk.store.account(own.account.id)?.epoch
    #expect(try await reset(desk, own.account.id) == .none(kept: []))
    #expect(try await reset(desk, own.account.id, "password") == .none(kept: []))
    #expect(try await reset(desk, "ac_nobody") == .unknown)
    #expect(try await desk.store.events(limit: 100).count == events && desk.delivery.notices.count == notices)
    #expect(try await desk.store.account(own.account.id)?.epoch == epoch)
  }

  /// Attack: a thief has begun to change the PIN and finishes after the operator has removed it.
  @Test func aFlowFromBeforeTheResetDoesNotComplete() async throws {
    let desk = try await EngineTestBench.full()
    let own = try await owner(desk)
    let client = desk.client(session: own)
    let id = try await desk.engine.create("pin_change", returnTo: nil, browser: nil, client: client).get().id
    _ = try await desk.engine.begin(id, provider: "pin", fields: [:], client: client).get()
    #expect(try await reset(desk, own.account.id) == .done)
    #expect(
      await desk.engine.submit(id, fields: ["secret": .text("1"), "new_secret": .text("3")], client: client).refusal
        != nil)
    #expect(try await desk.store.account(own.account.id)?.credentials.isEmpty == true)
  }
}
