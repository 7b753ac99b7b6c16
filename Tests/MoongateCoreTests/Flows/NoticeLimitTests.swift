import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCore

/// How many notices by SMS one number gets.
@Suite struct NoticeLimitTests {
  private static let (phone, mail) = (EngineTestBench.phone, EngineTestBench.mail)

  /// The notices that were sent since the last call.
  private func told(_ bench: EngineTestBench, after seen: inout Int) async -> [Message] {
    await bench.engine.deliveriesEnd()
    defer { seen = bench.delivery.notices.count }
    return Array(bench.delivery.notices.dropFirst(seen))
  }

  private func signsIn(_ times: Int, _ provider: ProviderName, _ bench: EngineTestBench) async throws -> FlowView {
    for _ in 1..<times { _ = try await bench.pass("login", provider, "911111", by: bench.client()) }
    return try await bench.pass("login", provider, "911111", by: bench.client())
  }

  /// Attack: SMS pumping by notices. One account signs in without a device token, again and again, and each sign-in
  /// sends an SMS to its number.
  @Test func noticesBySMSAreBounded() async throws {
    let bench = try await EngineTestBench.full()
    var seen = 0
    _ = try await bench.pass("register", Self.phone, "911111", by: bench.client())
    let last = try await signsIn(12, Self.phone, bench)
    #expect(await told(bench, after: &seen).map(\.to) == Array(repeating: "+911111", count: 5))
    let dropped = try await bench.audit.events(limit: 100).filter {
      $0.kind == .deliveryFailed && $0.detail["notice"] == "newDevice"
    }
    #expect(dropped.count == 7 && dropped.allSatisfy { $0.detail["fault"]?.contains("5 in 24h") == true })
    // Attack: someone uses up the notices of sign-ins, so that a change is told to nobody.
    _ = try await bench.secret(
      "pin_set", ["new_secret": "1"], by: bench.client(session: try await bench.signedIn(last))
    ).get()
    let changes = await told(bench, after: &seen)
    #expect(changes.map(\.to) == ["+911111"] && changes[0].text.contains("set up for your account"))
    // Each number has a limit of its own.
    _ = try await bench.pass("register", Self.phone, "922222", by: bench.client())
    _ = try await bench.pass("login", Self.phone, "922222", by: bench.client())
    #expect(await told(bench, after: &seen).map(\.to) == ["+922222"])
    bench.clock.advance(by: .seconds(86_400))
    _ = try await signsIn(1, Self.phone, bench)
    #expect(await told(bench, after: &seen).map(\.to) == ["+911111"])
  }

  /// Mail costs nothing, and a user whose notices go by mail misses none.
  @Test func noticesByMailAreNotBounded() async throws {
    let bench = try await EngineTestBench.full()
    var seen = 0
    _ = try await bench.pass("register", Self.mail, "911111", by: bench.client())
    _ = try await signsIn(8, Self.mail, bench)
    #expect(await told(bench, after: &seen).count == 8)
  }
}
