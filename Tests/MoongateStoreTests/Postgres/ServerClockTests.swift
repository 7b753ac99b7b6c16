import MoongateCore
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateStore

/// Nodes use the time of the store's server instead of their own clocks.
@Suite struct ServerClockTests {
  private let start = ContinuousClock.now

  private func reading(asked: Duration, took: Duration, _ moment: Timestamp) -> ServerClock.Reading {
    ServerClock.Reading(asked: start + asked, answered: start + asked + took, moment: moment)
  }

  @Test func fastestAnswerDeterminesTheOffset() throws {
    let noon = ManualClock.start
    let steady = Mutex(start)
    let readings = [
      reading(asked: .zero, took: .milliseconds(400), noon + .seconds(9)),
      reading(asked: .seconds(1), took: .milliseconds(10), noon),
      reading(asked: .seconds(2), took: .milliseconds(300), noon - .seconds(9)),
    ]
    let made = ServerClock(readings, steady: { steady.withLock { $0 } })
    let clock = try #require(made)
    steady.withLock { $0 = start + .milliseconds(1005) }
    #expect(clock.wall() == noon)
    steady.withLock { $0 = start + .milliseconds(61_005) }
    #expect(clock.wall() == noon + .seconds(60))
  }

  @Test func clockIgnoresMissingAnswers() { #expect(ServerClock([]) == nil) }

  /// The server's clock was set back: the node's time stands still instead of going back, until the server catches up.
  @Test func aClockThatIsSetBackALittleIsWaitedFor() throws {
    let noon = ManualClock.start
    let steady = Mutex(start)
    let made = ServerClock([reading(asked: .zero, took: .zero, noon)], steady: { steady.withLock { $0 } })
    let clock = try #require(made)
    let node = SystemClock(floor: noon - .seconds(5), wall: clock.wall, steady: { steady.withLock { $0 } })
    #expect(node.now() == noon)
    clock.set([reading(asked: .zero, took: .zero, noon - .seconds(1))])
    var last = node.now()
    for second in 1...4 {
      steady.withLock { $0 = start + .seconds(second) }
      let now = node.now()
      #expect(now >= last && !node.isSuspect)
      last = now
    }
    #expect(last == noon + .seconds(3), "it agrees with the server again")
  }

  @Test(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.need)")) func nodesOnOneServerAgree() throws {
    let server = try #require(PostgresServer.shared)
    let address = try PostgresAddress(server.url(try server.makeDatabase()))
    let clocks = try (0..<3).map { _ in
      let connection = try PostgresConnection.open(address, timing: .patient, metrics: PostgresMetrics())
      let readings = try connection.clockReadings()
      return try #require(ServerClock(readings))
    }
    let moments = clocks.map { $0.wall() }
    let spread = (moments.max() ?? moments[0]) - (moments.min() ?? moments[0])
    #expect(spread < .milliseconds(500))
    // In this test the server's clock is the machine's.
    let apart = SystemClock.systemWall() - moments[0]
    #expect(apart > .seconds(-1) && apart < .seconds(1))
  }
}
