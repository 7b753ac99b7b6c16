import Foundation
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateProxy

/// Refusals of the data path itself, before the API or a page is reached.
@Suite(.timeLimit(.minutes(2))) struct EarlyRefusalTests {
  private static let page = "https://spa.example.com"
  private static let large = String(repeating: "a", count: 40_000)

  private func gateway() async throws -> TestGateway {
    var settings = GatewaySettings.test()
    settings.corsOrigins = [Self.page]
    return try await TestGateway(
      routes: [.test(ports: [1], open: true)], settings: settings,
      page: { refusal, _, languages in "<p>\(refusal.code.name) \(languages ?? "-")</p>" })
  }

  /// WHATWG Fetch, "CORS protocol": otherwise the script sees only "Failed to fetch".
  @Test(arguments: [
    ("POST /api/auth/flows HTTP/1.1\r\nHost: h\r\nORIGIN\r\nContent-Length: 99999999\r\n\r\n", 413),
    ("GET /api/auth/session HTTP/1.1\r\nORIGIN\r\nHost: h\r\nX: \(large)\r\n\r\n", 431),
    ("GET /api/auth/session HTTP/1.1\r\nORIGIN\r\nHost: h\r\nX : y\r\n\r\n", 400),
    ("GET /api/auth/session HTTP/1.1\r\nORIGIN\r\nHost: a b\r\n\r\n", 400),
    ("GET /api/auth//session HTTP/1.1\r\nORIGIN\r\nHost: h\r\n\r\n", 400),
    ("POST /api/auth/flows HTTP/1.1\r\nHost: h\r\nORIGIN\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
  ])
  func aPageOfAnAllowedOriginReadsEveryAnswer(_ request: String, _ status: Int) async throws {
    let gateway = try await gateway()
    let right = try await gateway.talk(request.replacing("ORIGIN", with: "Origin: \(Self.page)"))
    #expect(right.hasPrefix("HTTP/1.1 \(status) "), "\(right)")
    for field in [
      "Access-Control-Allow-Origin: \(Self.page)", "Access-Control-Allow-Credentials: true", "Vary: Origin",
      "Access-Control-Expose-Headers: Retry-After, WWW-Authenticate",
    ] { #expect(right.contains("\r\n\(field)\r\n"), "\(field)") }
    // Attack: another origin, none of the configured form, or two of them.
    for origin in ["https://evil.example", "null", "\(Self.page)\r\nOrigin: https://evil.example"] {
      let wrong = try await gateway.talk(request.replacing("ORIGIN", with: "Origin: \(origin)"))
      #expect(wrong.hasPrefix("HTTP/1.1 \(status) ") && !wrong.contains("Access-Control"), "\(origin)")
      #expect(wrong.contains("\r\nVary: Origin\r\n"))
    }
    // Attack: a page of an allowed origin reads what is not the API.
    let elsewhere = try await gateway.talk(
      request.replacing("/api/auth/", with: "/auth/").replacing("ORIGIN", with: "Origin: \(Self.page)"))
    #expect(!elsewhere.contains("Access-Control") && !elsewhere.contains("Vary"))
    await gateway.stop()
  }

  @Test func aRateLimitedCallCanBeRead() async throws {
    var settings = GatewaySettings.test()
    settings.corsOrigins = [Self.page]
    settings.connectionLimits.requestsPerSecondPerAddress = 1
    let gateway = try await TestGateway(routes: [], settings: settings)
    var answers = ""
    for _ in 0..<4 {
      answers += try await gateway.talk("GET /api/auth/session HTTP/1.1\r\nHost: h\r\nOrigin: \(Self.page)\r\n\r\n")
    }
    let refused = try #require(answers.range(of: "HTTP/1.1 429 ")).lowerBound
    #expect(answers[refused...].contains("\r\nAccess-Control-Allow-Origin: \(Self.page)\r\n"))
    await gateway.stop()
  }

  /// Too many cookies: only the user can delete them.
  @Test func aBrowserWithTooManyCookiesGetsAPage() async throws {
    let gateway = try await gateway()
    let head = "GET /auth/login HTTP/1.1\r\nHost: h\r\nAccept: text/html\r\nAccept-Language: de\r\n"
    let page = try await gateway.talk(head + "Cookie: a=\(Self.large)\r\n\r\n")
    #expect(page.hasPrefix("HTTP/1.1 431 ") && page.hasSuffix("<p>headers_too_large de</p>"), "\(page)")
    #expect(page.contains("\r\nContent-Type: text/html; charset=utf-8\r\n"))
    let program = try await gateway.talk("GET /auth/login HTTP/1.1\r\nHost: h\r\nX: \(Self.large)\r\n\r\n")
    #expect(program.hasPrefix("HTTP/1.1 431 ") && program.contains("\"code\":\"headers_too_large\""))
    let ask = try await gateway.talkToEnd(head.replacing("GET", with: "HEAD") + "Cookie: a=\(Self.large)\r\n\r\n")
    #expect(ask.text.hasPrefix("HTTP/1.1 431 ") && ask.text.hasSuffix("\r\n\r\n") && ask.ended)
    await gateway.stop()
  }
}
