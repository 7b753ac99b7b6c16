import Foundation
import HTTPTypes
import MoongateCore
import MoongateHTTP
import MoongateSDK
import MoongateTesting
import Testing

/// A gateway with three root domains; people sign in at https://auth.example.com.
enum DomainWorld {
  static let home = "https://auth.example.com"
  static let app = "https://app.example.org"
  static let handoff = "/auth/handoff"

  static func settings(isSecure: Bool = true) -> GatewaySettings {
    var settings = GatewaySettings.test(
      publicURL: PublicURL(isSecure: isSecure, host: "auth.example.com", port: isSecure ? 443 : 80))
    settings.domains = ["example.com", "example.org", "example.net"]
    settings.cookieDomain = "example.com"
    // Hosts without a route and other ports: allowed as a target after sign-in, but they never receive a handoff code.
    settings.redirectHosts = ["unknown.example.org", "app.example.org:8443", "evil.example", "app.example.org"]
    // Lets tests choose the host of a request.
    settings.trustedProxies = [AddressBlock(network: ClientAddress.unspecified.bytes, prefix: 32)]
    return settings
  }

  static let routes = ["app.example.com", "app.example.org", "shop.example.org", "app.example.net"].map { host in
    Route(
      host: host, path: PathPattern(text: "/**", segments: [.anySegments]), methods: nil,
      upstreams: [Upstream(isSecure: false, host: "127.0.0.1", port: 1)], isOpen: false, flow: "login",
      requirement: nil, decide: nil,
      timeout: .seconds(30), allowsUpgrade: false, headers: [], bodyLimit: nil, bodyRate: BodyRate.standard,
      location: SourceLocation(file: "routes.lua", line: 1))
  }

  static func run(
    isSecure: Bool = true, change: (inout TestGeneration) -> Void = { _ in },
    _ body: @escaping @Sendable (Client) async throws -> Void
  ) async throws {
    try await HTTPGateway(settings: settings(isSecure: isSecure), routes: routes, change: change).run(body)
  }
}

/// A browser that stores cookies by domain (RFC 6265, section 5).
final class DomainBrowser {
  struct Cookie {
    let name: String
    let value: String
    /// A host, or a domain with a leading dot.
    let scope: String
  }

  let client: Client
  var cookies: [Cookie] = []

  init(_ client: Client) { self.client = client }

  /// A browser that is signed in at `public_url`.
  static func owner(_ client: Client, _ phone: String = "+919999999999") async throws -> DomainBrowser {
    let browser = DomainBrowser(client)
    let token = try await client.register(phone).token
    browser.cookies.append(Cookie(name: "__Secure-moongate", value: token, scope: ".example.com"))
    return browser
  }

  func value(_ name: String, _ scope: String) -> String? {
    cookies.first { $0.name == name && $0.scope == scope }?.value
  }

  private func header(_ host: String) -> [(String, String)] {
    let sent = cookies.filter {
      $0.scope == host || $0.scope.hasPrefix(".") && "." + host == $0.scope
        || $0.scope.hasPrefix(".") && host.hasSuffix($0.scope)
    }
    return sent.isEmpty ? [] : [("Cookie", sent.map { "\($0.name)=\($0.value)" }.joined(separator: "; "))]
  }

  @discardableResult
  func send(
    _ method: HTTPRequest.Method, _ address: String, _ more: [(String, String)] = [], body: String? = nil,
    at host: String? = nil
  ) async throws -> Answer {
    let url = try #require(address.wholeMatch(of: /(https?):\/\/([^\/?]+)(.*)/))
    let (scheme, named, target) = (String(url.1), host ?? String(url.2), String(url.3))
    let headers =
      [("X-Forwarded-Proto", scheme), ("X-Forwarded-Host", named), ("Accept", "text/html")] + header(named) + more
    let answer = try await client.send(method, target.isEmpty ? "/" : target, headers: headers, body: body)
    for line in answer.setCookies { keep(line, named) }
    return answer
  }

  @discardableResult
  func visit(_ address: String) async throws -> Answer { try await send(.get, address) }

  @discardableResult
  func post(_ address: String, _ fields: [String: String]) async throws -> Answer {
    let origin = String(try #require(address.firstMatch(of: /https?:\/\/[^\/?]+/)).0)
    let body = fields.sorted { $0.key < $1.key }.map { "\($0.key)=\(PercentEncoding.encode($0.value))" }.joined(
      separator: "&")
    return try await send(
      .post, address, [("Origin", origin), ("Content-Type", "application/x-www-form-urlencoded")], body: body)
  }

  /// Follows redirects through handoff pages.
  /// - Returns: Every address in the chain of redirects.
  func follow(_ address: String) async throws -> [String] {
    var (led, next) = ([String](), address)
    while led.count < 10, next.contains(DomainWorld.handoff), let location = try await visit(next).header("Location") {
      led.append(location)
      next = location
    }
    return led
  }

  /// Begins a handoff and fetches its code without redeeming it.
  /// - Returns: The address that contains the code.
  func fetchCode(_ origin: String = DomainWorld.app, target: String = "/x") async throws -> String {
    let begun = try #require(
      try await visit("\(origin)\(DomainWorld.handoff)?return_to=\(PercentEncoding.encode(target))").header("Location"))
    return try #require(try await visit(begun).header("Location"))
  }

  func isSignedIn(_ origin: String) async throws -> Bool { try await visit("\(origin)/api/auth/session").status == 200 }

  private func keep(_ line: String, _ host: String) {
    let parts = line.components(separatedBy: "; ")
    let pair = parts[0].split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    let domain = parts.first { $0.hasPrefix("Domain=") }.map { String($0.dropFirst("Domain=".count)) }
    // A browser ignores cookies for other domains.
    if let domain, host != domain, !host.hasSuffix("." + domain) { return }
    let scope = domain.map { "." + $0 } ?? host
    cookies.removeAll { $0.name == pair[0] && $0.scope == scope }
    if !parts.contains("Max-Age=0") { cookies.append(Cookie(name: pair[0], value: pair[1], scope: scope)) }
  }
}
