import MoongateCore
import Testing

@testable import MoongateProxy

/// Which health checks are made, and by which event loop.
@Suite struct UpstreamHealthTests {
  private func route(_ ports: [Int], host: String? = nil, path: String = "/healthz") -> Route {
    var route = Route.test(host: host, ports: ports)
    route.health = HealthCheck(path: path, interval: .seconds(10))
    return route
  }

  /// Attack: each event loop, or each route, asks the same upstream, and a small service has nothing else to do.
  @Test func eachCheckIsMadeOnce() {
    let table = HealthCheckTable()
    let routes = RouteTable(routes: [route([1, 2]), route([2, 3]), .test(ports: [4])])
    #expect(table.isOutdated(1))
    let first = table.adopt(routes, version: 1)
    #expect(Set(first.map(\.check.upstream.port)) == [1, 2, 3] && first.count == 3)
    #expect(!table.isOutdated(1) && table.adopt(routes, version: 1).isEmpty, "another event loop has none to make")
    #expect(table.health(of: routes.routes[0])[1] === table.health(of: routes.routes[1])[0])
    #expect(table.health(of: routes.routes[2]).isEmpty)
  }

  @Test func checksEndWithTheirGeneration() {
    let table = HealthCheckTable()
    let first = table.adopt(RouteTable(routes: [route([1, 2])]), version: 1)
    _ = first.map { $0.record(failures: 2) }
    let second = table.adopt(RouteTable(routes: [route([2, 3])]), version: 2)
    #expect(second.map(\.check.upstream.port) == [3], "a check that remains is not begun again")
    #expect(first.filter(\.isOver).map(\.check.upstream.port) == [1])
    #expect(table.health(of: route([2])).map(\.isPassing) == [false], "and what it found out is kept")
    #expect(table.health(of: route([1])).map(\.isPassing) == [true])
    #expect(table.adopt(RouteTable(routes: []), version: 3).isEmpty)
    #expect((first + second).allSatisfy { $0.isOver })
  }

  @Test func oneUpstreamCanHaveSeveralChecks() {
    let table = HealthCheckTable()
    let routes = RouteTable(routes: [route([1]), route([1], path: "/other")])
    #expect(table.adopt(routes, version: 1).count == 2)
    _ = table.health(of: routes.routes[1])[0].record(failures: 2)
    #expect(table.health(of: routes.routes[0])[0].isPassing)
    let samples = table.families.filter { $0.name == MetricDefinition.upstreamHealthy.name }.flatMap(\.samples)
    #expect(samples.map(\.value) == [0], "an upstream is healthy if it passes all of them")
  }

  /// Services often refuse a Host that their users do not name.
  @Test func checksNameTheHostThatTheServiceKnows() {
    #expect(route([81]).healthChecks.map(\.host) == ["127.0.0.1:81"])
    #expect(route([80]).healthChecks.map(\.host) == ["127.0.0.1"])
    #expect(route([81], host: "wiki.example.com").healthChecks.map(\.host) == ["wiki.example.com"])
    var other = route([81], host: "wiki.example.com")
    other.hostHeader = .upstream
    #expect(other.healthChecks.map(\.host) == ["127.0.0.1:81"])
    other.hostHeader = .named("wiki.internal")
    #expect(other.healthChecks.map(\.host) == ["wiki.internal"])
  }
}
