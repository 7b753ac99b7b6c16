import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// An operator removes a factor that a user has lost.
@Suite struct FactorResetTests {
  private func owner(_ bench: EngineTestBench, number: String = "911111") async throws -> SessionSnapshot {
    let first = try #require(
      try await bench.session(try await bench.pass("register", EngineTestBench.phone, number, by: bench.client())))
    return try #require(
      try await bench.session(
        try await bench.secret("pin_set", ["new_secret": "1"], by: bench.client(session: first)).get()))
  }

  private func reset(_ bench: EngineTestBench, _ account: String, _ provider: ProviderName = "pin") async throws
    -> FactorReset
  {
    let outcome = try await bench.engine.resetFactor(
      provider, of: account, by: OperatorIdentity(name: "ravi", tool: "test"), client: bench.client())
    await bench.engine.deliveriesEnd()
    return outcome
  }

  @Test func theRecordTheLocksAndTheSessionsGo() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await owner(bench)
    let other = try await owner(bench, number: "912222")
    for _ in 0..<3 { _ = await bench.secret("pin_unlock", ["secret": "2"], by: bench.client(session: own)) }
    #expect(
      await bench.secret("pin_unlock", ["secret": "1"], by: bench.client(session: own)).refusal?.code
        == .tooManyAttempts)
    let before = try #require(try await bench.store.account(own.account.id))
    let messages = bench.delivery.notices.count

    #expect(try await reset(bench, own.account.id) == .done)
    let after = try #require(try await bench.store.account(own.account.id))
    #expect(after.credentials.isEmpty && after.identifiers == before.identifiers)
    #expect(after.epoch > before.epoch, "what was proved before is worth nothing")
    #expect(try await bench.store.sessions(of: own.account.id).isEmpty)
    #expect(try await bench.store.sessions(of: other.account.id).count == 1, "another account keeps its own")
    #expect(try await bench.store.account(other.account.id)?.credentials == ["pin"])
    #expect(try await bench.store.locks(at: bench.clock.now()).isEmpty)
    let told = bench.delivery.notices.dropFirst(messages)
    #expect(told.filter { $0.text.contains("turned off") }.map(\.to) == ["+911111"], "\(told)")
    let event = try #require(try await bench.store.events(limit: 20).first { $0.kind == .factorRemoved })
    #expect(
      event.account == own.account.id && event.provider == "pin" && event.detail["by"] == "test"
        && event.detail["operator"] == "ravi")

    // The user sets a new one, which is not locked.
    bench.clock.advance(by: .seconds(1000))
    let again = try #require(
      try await bench.session(try await bench.pass("login", EngineTestBench.phone, "911111", by: bench.client())))
    let set = try #require(
      try await bench.session(
        try await bench.secret("pin_set", ["new_secret": "5"], by: bench.client(session: again)).get()))
    #expect(await bench.secret("pin_unlock", ["secret": "5"], by: bench.client(session: set)).refusal == nil)
  }

  @Test func repeatedResetChangesNothing() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await owner(bench)
    #expect(try await reset(bench, own.account.id) == .done)
    let (events, notices) = (try await bench.store.events(limit: 100).count, bench.delivery.notices.count)
    let epoch = try await bench.store.account(own.account.id)?.epoch
    #expect(try await reset(bench, own.account.id) == .none(kept: []))
    #expect(try await reset(bench, own.account.id, "password") == .none(kept: []))
    #expect(try await reset(bench, "ac_nobody") == .unknown)
    #expect(try await bench.store.events(limit: 100).count == events && bench.delivery.notices.count == notices)
    #expect(try await bench.store.account(own.account.id)?.epoch == epoch)
  }

  /// Attack: a thief has begun to change the PIN and finishes after the operator has removed it.
  @Test func aFlowFromBeforeTheResetDoesNotComplete() async throws {
    let bench = try await EngineTestBench.full()
    let own = try await owner(bench)
    let client = bench.client(session: own)
    let id = try await bench.engine.create("pin_change", returnTo: nil, browser: nil, client: client).get().id
    _ = try await bench.engine.begin(id, provider: "pin", fields: [:], client: client).get()
    #expect(try await reset(bench, own.account.id) == .done)
    #expect(
      await bench.engine.submit(id, fields: ["secret": .text("1"), "new_secret": .text("3")], client: client).refusal
        != nil)
    #expect(try await bench.store.account(own.account.id)?.credentials.isEmpty == true)
  }
}
