import Logging
import MoongateCore
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateCommand

/// Opening what gateway.lua names as `store`.
@Suite struct OpenedStoreTests {
  @Test func aBadConnectionStringIsAProblemAtItsLine() {
    var gateway = GatewaySettings.test()
    gateway.locations["store"] = SourceLocation(file: "gateway.lua", line: 7)
    #expect(OpenedStore.problems(of: gateway) == [])
    gateway.store = .postgres(url: "postgres://db/moongate")
    #expect(OpenedStore.problems(of: gateway) == [])
    gateway.store = .postgres(url: "postgres://u:se@cret@db/moongate")
    #expect(
      OpenedStore.problems(of: gateway).map(\.description)
        == ["gateway.lua:7: store: the connection string has more than one @: one that belongs to the password is written %40"])
  }

  /// Whatever starts a gateway again and again does not hammer the server with a wrong password.
  @Test(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.need)")) func aRefusedStartTakesASecondAtLeast() async throws {
    let server = try #require(PostgresServer.shared)
    let location = StoreLocation.postgres(url: server.url("postgres", password: "guess"))
    let keys = try KeyRing(master: Array(repeating: 7, count: 32))
    let began = ContinuousClock.now
    await #expect(throws: StoreRefusal.self) {
      _ = try await OpenedStore.forServing(location, keys, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }
    #expect(ContinuousClock.now - began >= .seconds(1))
  }

  /// The node's own clock is not asked at all: one that is a minute off behaves the same.
  @Test(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.need)")) func theServersClockCounts() async throws {
    let server = try #require(PostgresServer.shared)
    let name = try server.makeDatabase()
    let keys = try KeyRing(master: Array(repeating: 7, count: 32))
    let opened = try await OpenedStore(.postgres(url: server.url(name)), keys)
    let before = try server.sql("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint", in: name)
    let now = opened.clock.now()
    let after = try server.sql("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint", in: name)
    // Half the time of the quickest of a few questions.
    let slack: Int64 = 100
    #expect(now.milliseconds >= (Int64(before) ?? .max) - slack && now.milliseconds <= (Int64(after) ?? .min) + slack)
    #expect(!opened.clock.isSuspect)
    try opened.store.close()
  }

  @Test func aPauseIsOverWhenThereIsSomethingToSee() {
    let pause = LookPause()
    pause.end()
    pause.end()
    let began = ContinuousClock.now
    pause.block(for: .seconds(30))
    #expect(ContinuousClock.now - began < .seconds(10))
    // And only once.
    let then = ContinuousClock.now
    pause.block(for: .milliseconds(200))
    #expect(ContinuousClock.now - then >= .milliseconds(190))
  }
}
