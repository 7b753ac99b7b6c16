import Foundation
import Logging
import MoongateCore
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongateGateway

/// Opening the `store` of gateway.lua.
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
        == [
          "gateway.lua:7: store: the connection string has more than one @: one that belongs to the password is written %40"
        ])
  }

  /// A restart loop does not flood the server with a wrong password.
  @Test(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.need)")) func refusedStartTakesAtLeastASecond()
    async throws
  {
    let server = try #require(PostgresServer.shared)
    let location = StoreLocation.postgres(url: server.url("postgres", password: "guess"))
    let keys = try KeyRing(master: Array(repeating: 7, count: 32))
    let began = ContinuousClock.now
    await #expect(throws: StoreRefusal.self) {
      _ = try await OpenedStore.forServing(
        location, keys, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }
    #expect(ContinuousClock.now - began >= .seconds(1))
  }

  /// The node's own clock is not used: a clock that is a minute off behaves the same.
  @Test(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.need)")) func serversClockIsUsed() async throws {
    let server = try #require(PostgresServer.shared)
    let name = try server.makeDatabase()
    let keys = try KeyRing(master: Array(repeating: 7, count: 32))
    let opened = try await OpenedStore(.postgres(url: server.url(name)), keys, purpose: .serving)
    let before = try server.sql("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint", in: name)
    let now = opened.clock.now()
    let after = try server.sql("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint", in: name)
    // Half of the fastest of several round trips.
    let slack: Int64 = 100
    #expect(now.milliseconds >= (Int64(before) ?? .max) - slack && now.milliseconds <= (Int64(after) ?? .min) + slack)
    #expect(!opened.clock.isSuspect)
    try opened.store.close()
  }

  /// A command with a wrong address in gateway.lua must not create a store there and bind it to a key.
  @Test(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.need)")) func commandsCreateNoStore() async throws {
    let server = try #require(PostgresServer.shared)
    let name = try server.makeDatabase()
    let location = StoreLocation.postgres(url: server.url(name))
    let keys = try KeyRing(master: Array(repeating: 7, count: 32))
    let refusal = StoreRefusal.nothingThere(path: "postgres://127.0.0.1:\(server.port)/\(name)")
    await #expect(throws: refusal) { _ = try await OpenedStore(location, keys) }
    #expect(
      try server.sql("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace", in: name) == "0")
    // Created by `moongate store migrate`, and not bound to a key yet.
    _ = try StoreCopier(location).migrate()
    await #expect(throws: refusal) { _ = try await OpenedStore(location, keys) }
    #expect(try server.sql("SELECT count(*) FROM meta", in: name) == "0")
    try await OpenedStore(location, keys, purpose: .serving).store.close()
    try await OpenedStore(location, keys).store.close()
  }

  /// A clock that was set back does not revive codes, but its operator must know of it.
  @Test(arguments: [(Duration.seconds(3_660), true), (.seconds(30), false), (.seconds(-3_600), false)])
  func clockBehindTheStoreIsWarnedOfOnce(lead: Duration, isTold: Bool) async throws {
    let folder = try ScratchFolder()
    let location = StoreLocation.sqlite(path: folder.path("moongate.db"))
    let keys = try KeyRing(master: Array(repeating: 7, count: 32))
    let first = CapturedLog()
    let made = try await OpenedStore.forServing(location, keys, logger: first.logger)
    #expect(first.lines.isEmpty, "an empty store has no time")
    _ = try await made.store.apply([.clearTimer([1])], at: SystemClock.systemWall() + lead)
    try made.store.close()
    let log = CapturedLog()
    let opened = try await OpenedStore.forServing(location, keys, logger: log.logger)
    defer { try? opened.store.close() }
    let warning =
      "warning the clock of this machine is 1h behind the latest time in the store, from which the gateway continues. "
      + "Run `timedatectl` and correct the clock if it is wrong. "
    #expect(log.lines == (isTold ? [warning] : []))
  }

  @Test func commandsCreateNoSQLiteFile() async throws {
    let folder = try ScratchFolder()
    let path = folder.path("moongate.db")
    let keys = try KeyRing(master: Array(repeating: 7, count: 32))
    let refusal = StoreRefusal.nothingThere(path: path)
    await #expect(throws: refusal) { _ = try await OpenedStore(.sqlite(path: path), keys) }
    #expect(!FileManager.default.fileExists(atPath: path))
    #expect(FileManager.default.createFile(atPath: path, contents: nil))
    await #expect(throws: refusal) { _ = try await OpenedStore(.sqlite(path: path), keys) }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path(".")) == ["moongate.db"])
    #expect(FileManager.default.contents(atPath: path) == Data())
    _ = try StoreCopier(.sqlite(path: path)).migrate()
    await #expect(throws: refusal) { _ = try await OpenedStore(.sqlite(path: path), keys) }
    #expect(try StoreCopier(.sqlite(path: path)).fingerprint() == nil)
    try await OpenedStore(.sqlite(path: path), keys, purpose: .serving).store.close()
    try await OpenedStore(.sqlite(path: path), keys).store.close()
  }

  /// The store is written before the key file. An interruption in between is reported with what to do.
  @Test func anInterruptedRetirementIsNamed() async throws {
    let folder = try ScratchFolder()
    let location = StoreLocation.sqlite(path: folder.path("moongate.db"))
    let first = try MasterKeys(only: Array(repeating: 1, count: 32))
    let ring = try #require(try first.adding(Array(repeating: 2, count: 32)).rotated())
    let (old, new) = (ring.oldest.name, ring.current.name)
    let opened = try await OpenedStore(location, KeyRing(ring), purpose: .serving)
    let after = KeyRing(try #require(ring.without(old)))
    #expect(
      try await opened.store.replaceFingerprint(
        KeyRing(ring).fingerprint, with: after.fingerprint, at: opened.clock.now()) == .replaced)
    try opened.store.close()
    let refusal = StoreRefusal.retirementInterrupted(
      path: folder.path("moongate.db"), retired: old, interruptedRetirementKey: new)
    for purpose in [PostgresStore.Purpose.serving, .working] {
      await #expect(throws: refusal) { _ = try await OpenedStore(location, KeyRing(ring), purpose: purpose) }
    }
    #expect(
      refusal.description
        == "The store \(folder.path("moongate.db")) no longer uses the key \(old): retiring that key was interrupted, "
        + "or this is an old copy of the ring. `moongate keys retire \(old)` finishes it; then copy the key file to every gateway."
    )
    try await OpenedStore(location, KeyRing(ring), interruptedRetirementKey: new).store.close()
    try await OpenedStore(location, after).store.close()
    await #expect(throws: StoreRefusal.otherKey(path: folder.path("moongate.db"))) {
      _ = try await OpenedStore(location, try KeyRing(master: Array(repeating: 3, count: 32)))
    }
  }

  @Test func endingAPauseWakesIt() {
    let pause = PollInterval()
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
