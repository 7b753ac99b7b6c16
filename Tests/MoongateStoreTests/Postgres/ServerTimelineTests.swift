import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateStore

/// Which of several servers is current after a failover.
@Suite struct ServerTimelineTests {
  @Test func earlierTimelineIsPast() {
    let timeline = ServerTimeline()
    #expect(!timeline.isKnown && !timeline.isPast(1))
    timeline.observe(2)
    timeline.observe(1)
    #expect(timeline.isKnown && timeline.isPast(1) && !timeline.isPast(2) && !timeline.isPast(3))
  }

  /// A former primary comes back after another server was promoted in its place.
  @Test(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.need)")) func formerPrimaryIsNotUsed()
    async throws
  {
    let bench = try PostgresBench()
    let url = bench.server.url(bench.name)
    let (host, rest) = (try #require(url.firstRange(of: "@")), try #require(url.firstRange(of: "/\(bench.name)")))
    let own = String(url[host.upperBound..<rest.lowerBound])
    let address = try PostgresAddress(url.replacing(own, with: "\(own),\(own)"))
    let database = PostgresDatabase(address, timing: .patient, recordsMoments: false)
    #expect(try await database.count() == 0)
    #expect(address.timeline.isKnown)
    address.timeline.observe(1000)
    await #expect(throws: StoreFault.self, "neither the connection that is there nor a new one") {
      try await database.count()
    }
    let fresh = PostgresDatabase(try PostgresAddress(url), timing: .patient, recordsMoments: false)
    #expect(try await fresh.count() == 0, "a single server is not asked")
  }
}
