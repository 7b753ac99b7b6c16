import Foundation
import MoongateCore
import MoongateTesting
import NIOCore
import Synchronization
import Testing

@testable import MoongateProxy

/// `health`: the requests that find out whether an upstream works, and what follows from them.
@Suite(.timeLimit(.minutes(2))) struct HealthCheckTests {
  private final class Answer: Sendable {
    private let value: Mutex<RecordingUpstream.Step>

    init(_ step: RecordingUpstream.Step) { value = Mutex(step) }

    var step: RecordingUpstream.Step {
      get { value.withLock { $0 } }
      set { value.withLock { $0 = newValue } }
    }
  }

  private static let good = RecordingUpstream.Step.answer("HTTP/1.1 204 No Content\r\n\r\n")
  private static let bad = RecordingUpstream.Step.answer("HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n")

  /// An upstream that answers checks in this way, and serves all other requests.
  private func upstream(_ health: Answer = Answer(good)) async throws -> RecordingUpstream {
    try await RecordingUpstream { received in
      guard RecordingUpstream.isComplete(received) else { return nil }
      return received.hasPrefix("GET /healthz ")
        ? health.step : .answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    }
  }

  private func route(_ ports: [Int], interval: Duration = .milliseconds(200)) -> Route {
    var route = Route.test(ports: ports, open: true)
    route.health = HealthCheck(path: "/healthz", interval: interval)
    return route
  }

  private func get(_ gateway: TestGateway) async throws {
    #expect(try await gateway.talk("GET /x HTTP/1.1\r\nHost: h\r\n\r\n").hasPrefix("HTTP/1.1 200"))
  }

  private func count(_ upstream: RecordingUpstream, _ path: String) -> Int {
    upstream.all.components(separatedBy: "GET \(path) ").count - 1
  }

  @Test func anUpstreamThatFailsItsChecksIsLeftUntilItPasses() async throws {
    let answer = Answer(Self.good)
    let first = try await upstream(answer)
    let other = try await upstream()
    let gateway = try await TestGateway(routes: [route([first.port, other.port])])
    try await get(gateway)
    #expect(count(first, "/x") == 1)
    answer.step = Self.bad
    try await until {
      try? await get(gateway)
      return count(other, "/x") > 0
    }
    let name = "http://127.0.0.1:\(first.port)"
    let failing = gateway.log.lines.filter { $0.contains("an upstream fails its health check") }
    #expect(failing.count == 1 && failing.allSatisfy { $0.contains(name) && $0.contains("it answered with 503") })
    let before = count(first, "/x")
    try await get(gateway)
    #expect(count(first, "/x") == before)
    answer.step = Self.good
    try await until {
      try? await get(gateway)
      return count(first, "/x") > before
    }
    #expect(
      gateway.log.lines.contains { $0.contains("an upstream passes its health check again") && $0.contains(name) })
    await gateway.stop()
  }

  @Test(arguments: [
    ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true), ("HTTP/1.1 302 X\r\nContent-Length: 0\r\n\r\n", true),
    ("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true),
    // The status decides, and a body without an end is not waited for.
    ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", true),
    ("HTTP/1.1 200 OK\r\n\r\n" + String(repeating: "a", count: 100_000), true),
    ("HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n", false), ("HTTP/1.1 401 X\r\nContent-Length: 0\r\n\r\n", false),
    ("HTTP/1.1 101 X\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", false), ("rubbish\r\n\r\n", false), ("", false),
  ])
  func theStatusDecides(_ answer: String, _ passes: Bool) async throws {
    let upstream = try await upstream(Answer(answer.isEmpty ? .close : .answer(answer)))
    let route = route([upstream.port])
    let gateway = try await TestGateway(routes: [route])
    try await get(gateway)
    let health = try #require(gateway.proxy.shared.healthChecks.health(of: route).first)
    try await until { health.counts.passed + health.counts.failed >= 2 }
    #expect(passes ? health.counts.failed == 0 : health.counts.passed == 0)
    #expect(health.isPassing == passes)
    try await get(gateway)
    await gateway.stop()
  }

  /// An upstream that accepts connections and answers nothing does not work, and the next check does not wait for it.
  @Test func aSilentUpstreamFails() async throws {
    let upstream = try await upstream(Answer(.silence))
    let route = route([upstream.port])
    let gateway = try await TestGateway(routes: [route])
    try await get(gateway)
    let health = try #require(gateway.proxy.shared.healthChecks.health(of: route).first)
    try await until { !health.isPassing }
    #expect(gateway.log.lines.contains { $0.contains("it does not respond in time") })
    // At most one check is open at a time, beside the idle connection of the request.
    #expect(upstream.open <= 2)
    await gateway.stop()
  }

  /// Attack: what the gateway tells a service about users is of use to whoever answers at its address meanwhile.
  @Test func checksTellNothing() async throws {
    let upstream = try await upstream()
    var route = Route.test(ports: [upstream.port], open: true, headers: [(name: "X-Secret", value: "s3cret")])
    route.health = HealthCheck(path: "/healthz", interval: .milliseconds(200))
    let gateway = try await TestGateway(routes: [route])
    try await get(gateway)
    try await until { count(upstream, "/healthz") > 1 }
    let check = try #require(upstream.received.first { $0.hasPrefix("GET /healthz ") })
    #expect(
      check.hasPrefix(
        "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:\(upstream.port)\r\nUser-Agent: moongate-health-check\r\n"
          + "Accept: */*\r\n\r\n"))
    await gateway.stop()
  }

  @Test func checksEndWithTheirRoute() async throws {
    let upstream = try await upstream()
    let route = route([upstream.port])
    let gateway = try await TestGateway(routes: [route])
    try await get(gateway)
    try await until { count(upstream, "/healthz") > 1 }
    let health = try #require(gateway.proxy.shared.healthChecks.health(of: route).first)
    gateway.active.activate(
      TestGeneration(id: "next", gateway: .test(), routes: [], flows: [], policies: []), at: gateway.clock.now())
    try await until { health.isOver }
    await gateway.stop()
  }
}
