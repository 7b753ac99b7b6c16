import Foundation
import MoongateCore
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateProxy

/// `retry`: requests that are sent again, and those that never are.
@Suite(.timeLimit(.minutes(2))) struct RetryTests {
  private final class Counter: Sendable {
    private let value = Mutex(0)

    func next() -> Int {
      value.withLock { value in
        defer { value += 1 }
        return value
      }
    }
  }

  /// An upstream that answers complete requests with these statuses, one after the other, and then with the last one.
  private func answering(_ statuses: Int...) async throws -> RecordingUpstream {
    let counter = Counter()
    return try await RecordingUpstream { received in
      guard RecordingUpstream.isComplete(received) else { return nil }
      let status = statuses[min(counter.next(), statuses.count - 1)]
      let body = received.hasPrefix("HEAD ") ? "" : "\(status)"
      return .answer("HTTP/1.1 \(status) X\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
    }
  }

  private func gateway(
    _ ports: [Int], connect: Bool = false, statuses: Set<Int> = [503], times: Int = 1
  ) async throws -> TestGateway {
    var route = Route.test(ports: ports, open: true)
    route.retry = RetryRule(onConnect: connect, statuses: statuses, times: times)
    return try await TestGateway(routes: [route])
  }

  private func count(_ upstream: RecordingUpstream, _ text: String = " /x HTTP/1.1\r\n") -> Int {
    upstream.all.components(separatedBy: text).count - 1
  }

  // MARK: statuses

  @Test(arguments: [
    ("GET", true), ("HEAD", true), ("OPTIONS", true), ("PUT", true), ("DELETE", true), ("POST", false),
    ("PATCH", false), ("put", false), ("PROPFIND", false),
  ])
  func onlyIdempotentRequestsAreSentAgain(_ method: String, _ isSentAgain: Bool) async throws {
    let upstream = try await answering(503, 200)
    let gateway = try await gateway([upstream.port])
    let answer = try await gateway.talk("\(method) /x HTTP/1.1\r\nHost: h\r\n\r\n")
    #expect(answer.hasPrefix(isSentAgain ? "HTTP/1.1 200" : "HTTP/1.1 503"), "\(answer)")
    #expect(count(upstream) == (isSentAgain ? 2 : 1) && !answer.contains(isSentAgain ? "503" : "200"))
    await gateway.stop()
  }

  @Test func onlyNamedStatusesAreDropped() async throws {
    let upstream = try await answering(500, 200)
    let gateway = try await gateway([upstream.port], statuses: [502, 503])
    let answer = try await gateway.talk("GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
    #expect(answer.hasPrefix("HTTP/1.1 500") && answer.hasSuffix("500") && count(upstream) == 1)
    await gateway.stop()
  }

  @Test func theLastResponseIsPassedOn() async throws {
    let upstream = try await answering(503)
    let gateway = try await gateway([upstream.port], times: 2)
    let answer = try await gateway.talk("GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
    #expect(answer.hasPrefix("HTTP/1.1 503 X\r\n") && answer.hasSuffix("503") && count(upstream) == 3)
    await gateway.stop()
  }

  /// The log and the metrics name the upstream that failed, although the client noticed nothing.
  @Test func theNextUpstreamIsTried() async throws {
    let failing = try await answering(503)
    let living = try await answering(200)
    let gateway = try await gateway([failing.port, living.port])
    let client = try await RawClient(port: gateway.port)
    for _ in 0..<3 {
      try await client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
      #expect(try await client.answers().hasPrefix("HTTP/1.1 200"))
    }
    // Attack: a user whose requests a service answers with 503 moves all others to another upstream.
    #expect(count(failing) == 3 && count(living) == 3)
    let name = "http://127.0.0.1:\(failing.port)"
    let lines = gateway.log.lines.filter { $0.contains("an upstream failed, and the request was retried") }
    #expect(lines.count == 1 && lines.allSatisfy { $0.contains(name) && $0.contains("it answered with 503") })
    let retries = await gateway.proxy.metrics().filter { $0.name == MetricDefinition.upstreamRetriesTotal.name }
      .flatMap(\.samples)
    #expect(retries.map(\.value) == [3] && retries[0].labels.map(\.value) == [name, "status"])
    await gateway.stop()
  }

  // MARK: bodies

  @Test(arguments: ["Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"])
  func aCompleteBodyIsSentAgain(_ body: String) async throws {
    let upstream = try await answering(503, 200)
    let gateway = try await gateway([upstream.port])
    let answer = try await gateway.talk("PUT /x HTTP/1.1\r\nHost: h\r\n\(body)")
    #expect(answer.hasPrefix("HTTP/1.1 200"), "\(answer)")
    let sent = body.components(separatedBy: "\r\n\r\n").dropFirst().joined(separator: "\r\n\r\n")
    #expect(upstream.received.count == 2 && upstream.received[0].hasSuffix(sent))
    #expect(upstream.received[0] == upstream.received[1])
    await gateway.stop()
  }

  /// The bytes of a client can arrive in any pieces.
  @Test func aBodyInPiecesIsSentAgain() async throws {
    let upstream = try await answering(503, 200)
    let gateway = try await gateway([upstream.port])
    let client = try await RawClient(port: gateway.port)
    try await client.send("PUT /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe")
    try await until { upstream.all.hasSuffix("he\r\n") }
    try await client.send("\r\n3\r\nllo\r\n0\r\n\r\n")
    #expect(try await client.answers().hasPrefix("HTTP/1.1 200"))
    #expect(upstream.received.count == 2 && upstream.received[1].hasSuffix("\r\n\r\n5\r\nhello\r\n0\r\n\r\n"))
    await gateway.stop()
  }

  /// Attack: bodies that the gateway keeps fill its memory.
  @Test func aLargeBodyIsSentOnce() async throws {
    let upstream = try await answering(503, 200)
    let gateway = try await gateway([upstream.port])
    let body = String(repeating: "a", count: 65_537)
    let answer = try await gateway.talk(
      "PUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
    #expect(answer.hasPrefix("HTTP/1.1 503") && count(upstream) == 1)
    await gateway.stop()
  }

  /// Attack: half of a body, followed by the rest of it, is sent to a service as a whole one.
  @Test func anIncompleteBodyIsSentOnce() async throws {
    let upstream = try await RecordingUpstream { received in
      received.hasSuffix("half") ? .answer("HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n") : nil
    }
    let gateway = try await gateway([upstream.port], times: 3)
    let client = try await RawClient(port: gateway.port)
    try await client.send("PUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: 8\r\n\r\nhalf")
    let answer = try await client.answers()
    #expect(answer.hasPrefix("HTTP/1.1 503") && count(upstream) == 1, "\(answer)")
    await gateway.stop()
  }

  /// A service may answer before the client has sent the body.
  @Test func anUnsentBodyFollowsTheNextAttempt() async throws {
    let counter = Counter()
    let upstream = try await RecordingUpstream { received in
      if received.hasPrefix("PUT ") {
        return .answer(
          counter.next() == 0 ? "HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n" : "HTTP/1.1 100 Continue\r\n\r\n")
      }
      return received == "hello" ? .answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") : nil
    }
    let gateway = try await gateway([upstream.port])
    let client = try await RawClient(port: gateway.port)
    try await client.send("PUT /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
    #expect(try await client.read { $0.hasSuffix("\r\n\r\n") }.text.hasPrefix("HTTP/1.1 100"))
    try await client.send("hello")
    #expect(try await client.answers().hasPrefix("HTTP/1.1 200"))
    #expect(count(upstream) == 2 && count(upstream, "hello") == 1)
    await gateway.stop()
  }

  // MARK: connections

  /// A service that restarts is asked again until it is back.
  @Test func aServiceThatRestartsIsWaitedFor() async throws {
    let first = try await answering(200)
    let port = first.port
    await first.stop()
    let gateway = try await gateway([port], connect: true, times: 5)
    async let answer = gateway.talk("GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
    try await until { gateway.log.lines.contains { $0.contains("and the request was retried") } }
    let back = try await RecordingUpstream(port: port)
    #expect(try await answer.hasPrefix("HTTP/1.1 200") && count(back) == 1)
    let lines = gateway.log.lines.filter { $0.contains("and the request was retried") }
    #expect(lines.allSatisfy { $0.contains("it cannot be reached: Connection refused") }, "\(lines)")
    await gateway.stop()
  }

  /// PUT is idempotent, but without `connect` a service that may have seen it gets it once.
  @Test(arguments: [true, false]) func aRequestThatGotNoResponseIsSentAgain(_ connect: Bool) async throws {
    let counter = Counter()
    let upstream = try await RecordingUpstream { received in
      guard RecordingUpstream.isComplete(received) else { return nil }
      return counter.next() == 0 ? .close : .answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    }
    let gateway = try await gateway([upstream.port], connect: connect)
    let answer = try await gateway.talk("PUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab")
    #expect(answer.hasPrefix(connect ? "HTTP/1.1 200" : "HTTP/1.1 502"), "\(answer)")
    #expect(count(upstream, "\r\n\r\nab") == (connect ? 2 : 1))
    await gateway.stop()
  }

  /// Attack: a response of which the client has a part is followed by another one, and the client takes both for one.
  @Test(arguments: ["Content-Length: 900000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n90000\r\n"])
  func aResponseThatHasBegunIsNeverRepeated(_ framing: String) async throws {
    let part = framing + String(repeating: "a", count: 300_000)
    let upstream = try await RecordingUpstream { received in
      RecordingUpstream.isComplete(received) ? .answerAndClose("HTTP/1.1 200 OK\r\n\(part)") : nil
    }
    let gateway = try await gateway([upstream.port, upstream.port], connect: true, times: 5)
    let answer = try await gateway.talkToEnd("GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
    #expect(answer.ended && answer.text.hasPrefix("HTTP/1.1 200"))
    #expect(answer.text.components(separatedBy: "HTTP/1.1 ").count == 2 && count(upstream) == 1)
    await gateway.stop()
  }
}
