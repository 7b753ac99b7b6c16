import Foundation
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateProxy

/// The gateway's own pages on routes with `frames` and `error_pages`.
@Suite(.timeLimit(.minutes(2))) struct RefusalStyleTests {
  private static let usual =
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors"

  private func gateway(_ routes: [Route], page: String = "own <b>") async throws -> TestGateway {
    try await TestGateway(
      routes: routes, page: { refusal, _, _ in "<p>usual \(refusal.code.name)</p>" },
      errorPage: { refused in
        if refused.templates == "empty" { return nil }
        let code = refused.refusal.code.name
        return "<p>\(page) \(refused.templates) \(code) \(refused.languages ?? "-") \(refused.nonce)</p>"
      })
  }

  private func get(
    _ gateway: TestGateway, _ path: String, _ fields: String = "Accept: text/html\r\n", method: String = "POST"
  ) async throws -> String {
    try await gateway.talk("\(method) \(path) HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n")
  }

  @Test func sitesOfTheRouteShowItsRefusals() async throws {
    let gateway = try await gateway([Route.test("/wiki/**", ports: [1]).framed(), .test(ports: [1])])
    let framed = try await get(gateway, "/wiki/x")
    #expect(framed.hasPrefix("HTTP/1.1 401 ") && framed.contains("<p>usual unauthenticated</p>"))
    #expect(framed.contains("Content-Security-Policy: \(Self.usual) 'self' https://portal.example.com\r\n"))
    #expect(!framed.contains("X-Frame-Options"))
    let other = try await get(gateway, "/x")
    #expect(other.contains("Content-Security-Policy: \(Self.usual) 'none'\r\n"))
    #expect(other.contains("\r\nX-Frame-Options: DENY\r\n"))
    await gateway.stop()
  }

  /// The second request of a connection does not have the style of the first.
  @Test func styleIsThatOfTheRequest() async throws {
    let gateway = try await gateway([Route.test("/wiki/**", ports: [1]).framed(), .test(ports: [1])])
    let request = { (path: String) in "POST \(path) HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n" }
    let both = try await gateway.talk(request("/wiki/x") + request("/x"), answers: 2)
    #expect(both.components(separatedBy: "X-Frame-Options: DENY").count == 2)
    #expect(both.components(separatedBy: "frame-ancestors 'none'").count == 2)
    await gateway.stop()
  }

  @Test func templatesOfTheRouteShowItsRefusals() async throws {
    let gateway = try await gateway([
      Route.test("/wiki/**", ports: [1]).framed(by: [], errorPages: "errors"),
      Route.test("/down/**", ports: [1], open: true).framed(errorPages: "errors"),
      Route.test("/empty/**", ports: [1]).framed(by: [], errorPages: "empty"), .test(ports: [1]),
    ])
    let answer = try await get(gateway, "/wiki/x", "Accept: text/html\r\nAccept-Language: hi\r\n")
    let nonce = try #require(answer.firstMatch(of: /errors unauthenticated hi ([A-Za-z0-9_-]{22})<\/p>/)).1
    #expect(answer.hasPrefix("HTTP/1.1 401 "))
    #expect(answer.contains("style-src 'self' 'nonce-\(nonce)'; img-src 'self'; form-action 'none'"), "\(answer)")
    #expect(answer.contains("frame-ancestors 'none'\r\n") && answer.contains("X-Frame-Options: DENY"))
    #expect(try await !get(gateway, "/wiki/x").contains(String(nonce)), "each page has a nonce of its own")
    let down = try await get(gateway, "/down/x", method: "GET")
    #expect(down.hasPrefix("HTTP/1.1 502 ") && down.contains("errors upstream_unavailable"))
    #expect(down.contains("frame-ancestors 'self' https://portal.example.com\r\n") && !down.contains("X-Frame-Options"))
    // No template for the refusal, and another route.
    for path in ["/empty/x", "/x"] {
      let usual = try await get(gateway, path)
      #expect(usual.contains("<p>usual unauthenticated</p>") && usual.contains("style-src 'self'; img-src"))
    }
    await gateway.stop()
  }

  @Test func programsGetAProblemAndHEADNoBody() async throws {
    let gateway = try await gateway([Route.test("/**", ports: [1]).framed(errorPages: "errors")])
    for accept in ["", "Accept: application/json\r\n", "Accept: */*\r\n"] {
      let answer = try await get(gateway, "/x", accept)
      #expect(answer.contains("Content-Type: application/problem+json\r\n"), "\(answer)")
      #expect(answer.contains(#""code":"unauthenticated""#) && !answer.contains("<p>"))
    }
    let page = try await get(gateway, "/x")
    let length = try #require(page.firstMatch(of: /Content-Length: (\d+)\r\n/)).1
    let head = try await get(gateway, "/x", method: "HEAD")
    #expect(head.contains("Content-Length: \(length)\r\n") && head.hasSuffix("\r\n\r\n"))
    await gateway.stop()
  }

  @Test func largePageIsWrittenWhole() async throws {
    let gateway = try await gateway(
      [Route.test("/**", ports: [1]).framed(errorPages: "errors")], page: String(repeating: "x", count: 250_000))
    let answer = try await get(gateway, "/x")
    #expect(answer.hasSuffix("</p>") && answer.utf8.count > 250_000)
    await gateway.stop()
  }
}
