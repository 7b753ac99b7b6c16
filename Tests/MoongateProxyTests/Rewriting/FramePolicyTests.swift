import Foundation
import MoongateCore
import NIOCore
import Testing

@testable import MoongateProxy

/// Responses of services on routes with `frames`.
@Suite struct FramePolicyTests {
  private static let added =
    "Content-Security-Policy: frame-ancestors 'self' https://portal.example.com https://b.example"

  private func answer(_ fields: [String], _ route: Route? = nil) throws -> [String] {
    let route = route ?? Route.test(ports: [3000]).framed(by: ["https://portal.example.com", "https://b.example"])
    var input = ByteBuffer(string: "HTTP/1.1 200 OK\r\n" + fields.map { "\($0)\r\n" }.joined() + "\r\n")
    var decoder = ResponseDecoder()
    var spare: [HeadField] = []
    let head = try #require(try decoder.next(&input, spare: &spare, toHead: true))
    let changes = AnswerChanges(
      rewriting: try #require(ServiceRewriting(route)), client: try #require(HostName("app.example.com")),
      isSecure: true
    ) { _, _ in }
    let rewriter = AnswerRewriter(
      date: [], framing: .none, keepsAlive: true, minorVersion: 1, changes: changes)
    let text = String(buffer: rewriter.write(head, room: 0))
    return Array(text.components(separatedBy: "\r\n").dropFirst().dropLast(2))
  }

  @Test func routeDecidesWhichSitesShowThePage() throws {
    #expect(try answer([]) == [Self.added])
    for name in ["X-Frame-Options", "x-frame-options", "X-FRAME-OPTIONS"] {
      #expect(try answer(["A: b", "\(name): DENY", "C: d"]) == ["A: b", "C: d", Self.added])
    }
    #expect(try answer(["X-Frame-Options: SAMEORIGIN", "X-Frame-Options: DENY"]) == [Self.added])
    // Addresses stay as they are.
    let location = "Location: http://127.0.0.1:3000/x"
    #expect(try answer([location, "Set-Cookie: a=b; Path=/"]) == [location, "Set-Cookie: a=b; Path=/", Self.added])
  }

  /// A policy of the service keeps everything but its own `frame-ancestors`, which would apply in addition.
  @Test(arguments: [
    ("default-src 'self'; frame-ancestors 'none'", "default-src 'self'"),
    ("frame-ancestors 'none'; default-src 'self'; img-src *", "default-src 'self'; img-src *"),
    ("default-src 'self';frame-ancestors 'none';img-src *;", "default-src 'self'; img-src *"),
    ("Frame-Ancestors 'self' https://x.example ; script-src 'nonce-abc='", "script-src 'nonce-abc='"),
    ("default-src 'self', frame-ancestors 'none', img-src *", "default-src 'self', img-src *"),
    ("frame-ancestors 'none'; script-src 'self', img-src *; FRAME-ANCESTORS\t*", "script-src 'self', img-src *"),
    ("script-src 'self'; frame-ancestors", "script-src 'self'"),
    ("frame-ancestors 'none'; frame-ancestors 'self'; a b", "a b"),
    // Other directives, and values that only look like it.
    (
      "frame-ancestorsx 'none'; report-uri /frame-ancestors; frame-src 'none'",
      "frame-ancestorsx 'none'; report-uri /frame-ancestors; frame-src 'none'"
    ),
    ("sandbox allow-scripts", "sandbox allow-scripts"), (";;default-src *;;", "default-src *"),
  ])
  func policyKeepsItsOtherDirectives(_ policy: String, _ kept: String) throws {
    #expect(
      try answer(["A: b", "Content-Security-Policy: \(policy)", "C: d"])
        == ["A: b", "Content-Security-Policy: \(kept)", "C: d", Self.added])
    #expect(try answer(["content-security-policy:\(policy)"]) == ["content-security-policy:\(kept)", Self.added])
  }

  @Test(arguments: ["frame-ancestors 'none'", "frame-ancestors 'none', frame-ancestors 'self'", ";", "", " , ;"])
  func emptyPolicyIsRemoved(_ policy: String) throws {
    #expect(try answer(["A: b", "Content-Security-Policy: \(policy)", "C: d"]) == ["A: b", "C: d", Self.added])
  }

  @Test func reportsStay() throws {
    let reporting = "Content-Security-Policy-Report-Only: frame-ancestors 'none'"
    #expect(try answer([reporting]) == [reporting, Self.added])
  }

  /// Attack: a service makes the gateway remove the policy, by `Connection`.
  @Test func connectionRemovesNothingOfTheRoute() throws {
    let seen = try answer(["Connection: Content-Security-Policy", "Content-Security-Policy: default-src 'self'"])
    #expect(seen == [Self.added])
  }

  @Test func otherRoutesChangeNothing() throws {
    #expect(ServiceRewriting(Route.test(ports: [3000])) == nil)
    let policy = "Content-Security-Policy: frame-ancestors 'none'"
    let seen = try answer(
      ["X-Frame-Options: DENY", policy], Route.test(ports: [3000]).rewritten(responses: [("Server", nil)]))
    #expect(seen == ["X-Frame-Options: DENY", policy])
  }
}
