import Foundation
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateStore

/// A server that is killed by SIGKILL at any point and restarted has everything that was acknowledged.
@Suite(.serialized, .enabled(if: PostgresServer.isInstalled, "\(PostgresServer.need)")) struct PostgresSurvivalTests {
  @Test func nothingAcknowledgedIsLost() async throws {
    let server = try PostgresServer(settings: ["fsync=on", "full_page_writes=on"])
    let store = try PostgresStore(url: server.url(try server.makeDatabase()), keyFingerprint: [1])
    var rounds: [Int] = []
    var number = 0
    for kills in 1...4 {
      var killer: Task<Void, any Error>?
      let first = rounds.count
      while true {
        if rounds.count == first + 10 + 7 * kills, killer == nil { killer = Task.detached { try server.kill() } }
        number += 1
        do {
          try await Crash.act(number, on: store)
          rounds.append(number)
        } catch {
          #expect(error is StoreFault)
          break
        }
      }
      try await killer?.value
      try server.start()
      let end = ContinuousClock.now + .seconds(10)
      while (try? await store.latestMoment()) == nil {
        try #require(ContinuousClock.now < end, "it recovers by itself")
      }
      #expect(try await Crash.missing(rounds, kills: kills, in: store) == [])
    }
    try store.close()
    server.end()
  }
}
