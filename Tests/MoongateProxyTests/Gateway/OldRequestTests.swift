import Foundation
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateProxy

/// HTTP/1.0, `OPTIONS *`, empty ports, and requests that are no navigation.
@Suite(.timeLimit(.minutes(2))) struct OldRequestTests {
  private func gateway(host: String? = nil, open: Bool = true) async throws -> (TestGateway, RecordingUpstream) {
    let upstream = try await RecordingUpstream()
    return (try await TestGateway(routes: [.test(host: host, ports: [upstream.port], open: open)]), upstream)
  }

  /// RFC 9112 section 3.2 and 3.3: only HTTP/1.1 must have Host, and the request is for the host of public_url.
  @Test func aHealthCheckWithoutHostIsForwarded() async throws {
    let (gateway, upstream) = try await gateway(host: "localhost")
    let answer = try await gateway.talkToEnd("OPTIONS / HTTP/1.0\r\n\r\n")
    #expect(answer.text.hasPrefix("HTTP/1.1 200 ") && answer.ended)
    #expect(upstream.all.hasPrefix("OPTIONS / HTTP/1.1\r\nHost: localhost:8080\r\n"))
    #expect(upstream.all.contains("\r\nX-Forwarded-Host: localhost:8080\r\n"))
    let own = try await gateway.talkToEnd("GET /auth/x HTTP/1.0\r\n\r\n")
    #expect(own.text.hasSuffix("own GET /auth/x localhost:8080 "))
    // The target may name another host.
    #expect(try await gateway.talkToEnd("GET http://other/ HTTP/1.0\r\n\r\n").text.hasPrefix("HTTP/1.1 404 "))
    #expect(try await gateway.talkToEnd("GET http://localhost/ HTTP/1.0\r\n\r\n").text.hasPrefix("HTTP/1.1 200 "))
    #expect(try await gateway.talkToEnd("GET / HTTP/1.0\r\nHost:\r\n\r\n").text.hasPrefix("HTTP/1.1 400 "))
    #expect(try await gateway.talkToEnd("GET / HTTP/1.1\r\n\r\n").text.hasPrefix("HTTP/1.1 400 "))
    await gateway.stop()
  }

  /// RFC 9110 section 9.3.7. Attack: a service that answers for the gateway.
  @Test func aRequestAboutTheServerIsAnsweredByTheGateway() async throws {
    let (gateway, upstream) = try await gateway()
    for target in ["*", "http://localhost:8080"] {
      let two = try await gateway.talk(
        "OPTIONS \(target) HTTP/1.1\r\nHost: localhost:8080\r\n\r\nGET /auth/x HTTP/1.1\r\nHost: h\r\n\r\n", answers: 2)
      let head = two.components(separatedBy: "\r\n\r\n")[0]
      #expect(head.hasPrefix("HTTP/1.1 204 No Content\r\n") && head.contains("\r\nAllow: GET, HEAD, POST"), "\(two)")
      #expect(!head.contains("Content-Length") && two.contains("own GET /auth/x"))
    }
    #expect(try await gateway.talk("OPTIONS * HTTP/1.1\r\nHost: a b\r\n\r\n").hasPrefix("HTTP/1.1 400 "))
    #expect(try await gateway.talk("GET * HTTP/1.1\r\nHost: localhost\r\n\r\n").hasPrefix("HTTP/1.1 400 "))
    #expect(upstream.all.isEmpty)
    #expect(try await gateway.talk("OPTIONS /x HTTP/1.1\r\nHost: localhost\r\n\r\n").hasPrefix("HTTP/1.1 200 "))
    await gateway.stop()
  }

  /// RFC 3986 section 3.2.3.
  @Test func anEmptyPortIsNoPort() async throws {
    let (gateway, upstream) = try await gateway(host: "localhost")
    #expect(try await gateway.talk("GET /x HTTP/1.1\r\nHost: localhost:\r\n\r\n").hasPrefix("HTTP/1.1 200 "))
    #expect(upstream.all.contains("\r\nHost: localhost\r\n"))
    for (target, host) in [("http://localhost:/x", "localhost:80"), ("http://localhost/x", "localhost:")] {
      let answer = try await gateway.talk("GET \(target) HTTP/1.1\r\nHost: \(host)\r\n\r\n")
      #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(target)")
    }
    await gateway.stop()
  }

  /// A script or a prefetch must not read the sign-in page in place of its answer.
  @Test(arguments: [
    ("Accept: text/html, */*; q=0.01\r\nX-Requested-With: XMLHttpRequest\r\nSec-Fetch-Mode: cors\r\n", 401),
    ("Accept: text/html;q=0, application/json\r\n", 401),
    ("Accept: text/html\r\nSec-Purpose: prefetch;prerender\r\nSec-Fetch-Mode: navigate\r\n", 401),
    ("Accept: text/html\r\nHX-Request: true\r\n", 401), ("Accept: text/html\r\nSec-Fetch-Mode: navigate\r\n", 302),
    ("Accept: text/html\r\n", 302),
  ])
  func onlyNavigationsAreRedirected(_ fields: String, _ status: Int) async throws {
    let (gateway, _) = try await gateway(open: false)
    let answer = try await gateway.talk("GET /x HTTP/1.1\r\nHost: localhost:8080\r\n\(fields)\r\n")
    #expect(
      answer.hasPrefix("HTTP/1.1 \(status) ") && answer.contains("\r\nLocation: ") == (status == 302), "\(answer)")
    await gateway.stop()
  }
}
