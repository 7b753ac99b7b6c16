import MoongateCore
import MoongateTesting
import Testing

@testable import MoongateProxy

/// Sessions of frames of other sites. The service is `https://app.example.com`, and the sign-in pages are at
/// `https://auth.example.com`.
@Suite struct FramedSessionTests {
  private static let cookie = "Cookie: __Host-moongate-framed=\(AccessFixture.token)\r\n"
  private static let own = "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\nOrigin: https://app.example.com\r\n"
  private static let opened = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe\r\n"
  private static let included = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: image\r\n"

  private func fixture(isSecure: Bool = true, cookieDomain: String? = nil) throws -> AccessFixture {
    var settings = GatewaySettings.test(publicURL: PublicURL(isSecure: isSecure, host: "auth.example.com", port: 443))
    settings.cookieDomain = cookieDomain
    return try AccessFixture(
      [
        Route.test("/wiki/**", ports: []).framed(), Route.test("/open/**", ports: [], open: true).framed(),
        .test("/public/**", ports: [], open: true), .test("/**", ports: []),
      ], settings: settings)
  }

  /// Both ways to ask about a request.
  private func requests(_ access: AccessFixture, _ path: String, _ fields: String, method: String = "GET") throws
    -> [AccessRequest]
  {
    [
      try access.proxied(path, fields, method: method, browser: false),
      try access.asked(path, fields, method: method, browser: false),
    ]
  }

  @Test func cookieCountsForThePagesOfTheService() throws {
    let access = try fixture()
    for (method, fields) in [("GET", Self.opened), ("GET", Self.own), ("POST", Self.own), ("DELETE", Self.own)] {
      for request in try requests(access, "/wiki/x", fields + Self.cookie, method: method) {
        #expect(access.decide(request).lookup != nil)
        let grant = try #require(access.decide(request, .live(access.session())).grant)
        #expect(grant.session?.snapshot.account.id == TestGateway.account && grant.isCookie && grant.hasOurCookies)
      }
    }
  }

  /// Attack: the site shows another service in a frame, which is not protected from that, and gets the user's clicks.
  @Test func cookieHasNoMeaningOnOtherRoutes() throws {
    let access = try fixture()
    for fields in [Self.opened, Self.own] {
      for request in try requests(access, "/x", fields + Self.cookie) {
        let decision = access.decide(request, .live(access.session()))
        #expect(decision.refusal?.code == .unauthenticated || decision.location != nil, "as without a session")
      }
      for request in try requests(access, "/public/x", fields + Self.cookie) {
        let grant = try #require(access.decide(request, .live(access.session())).grant)
        #expect(grant.session == nil && grant.hasOurCookies, "it is removed all the same")
      }
    }
  }

  /// Attack: a page of another site in the same tab posts a form or calls the service.
  @Test(arguments: [
    "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nOrigin: https://portal.example.com\r\n",
    "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nOrigin: null\r\n",
    "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nOrigin: https://evil.example\r\n",
    "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: cors\r\nOrigin: https://auth.example.com\r\n",
    "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: navigate\r\nOrigin: null\r\n",
    "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: navigate\r\n", "Origin: https://portal.example.com\r\n", "",
    "Origin: https://app.example.com\r\nOrigin: https://app.example.com\r\n",
    "Origin: http://app.example.com\r\n", "Origin: https://app.example.com:8443\r\n",
  ])
  func otherPagesChangeNothing(_ fields: String) throws {
    let access = try fixture()
    for method in ["POST", "PUT", "PATCH", "DELETE", "PROPFIND"] {
      for request in try requests(access, "/wiki/x", fields + Self.cookie, method: method) {
        let decision = access.decide(request, .live(access.session()))
        #expect(decision.refusal?.code == .originRefused, "\(method) \(fields)")
        #expect(decision.route === access.authorizer.plan.routes[0])
      }
      for request in try requests(access, "/open/x", fields + Self.cookie, method: method) {
        let grant = try #require(access.decide(request, .live(access.session())).grant)
        #expect(grant.session == nil, "an open route gets an anonymous request")
      }
    }
  }

  /// Attack: a page of another site includes an answer as a script or an image.
  @Test func otherPagesIncludeNothing() throws {
    let access = try fixture()
    for request in try requests(access, "/wiki/x", Self.included + Self.cookie) {
      #expect(access.decide(request, .live(access.session())).refusal?.code == .unauthenticated)
    }
    for request in try requests(access, "/open/x", Self.included + Self.cookie) {
      #expect(try #require(access.decide(request, .live(access.session())).grant).session == nil)
    }
  }

  /// Attack: a page of another site opens a WebSocket, whose handshake only reads.
  @Test func webSocketsNeedTheOwnOrigin() throws {
    let access = try fixture()
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n" + Self.cookie
    let own = try access.proxied("/wiki/x", upgrade + "Origin: https://app.example.com\r\n", browser: false)
    #expect(access.decide(own, .live(access.session())).grant?.session != nil)
    for fields in [
      "Origin: https://portal.example.com\r\n", "", Self.opened,
      "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: websocket\r\nOrigin: https://portal.example.com\r\n",
    ] {
      let other = try access.proxied("/wiki/x", upgrade + fields, browser: false)
      #expect(access.decide(other, .live(access.session())).refusal?.code == .originRefused, "\(fields)")
    }
    // A proxy that asks removes the fields of the upgrade.
    let asked = try access.asked("/wiki/x", Self.cookie + "Origin: https://portal.example.com\r\n", browser: false)
    #expect(access.decide(asked, .live(access.session())).refusal?.code == .unauthenticated)
    let allowed = try access.asked("/wiki/x", Self.cookie + "Origin: https://app.example.com\r\n", browser: false)
    #expect(access.decide(allowed, .live(access.session())).grant?.session != nil)
  }

  @Test func usualCookieHasPriority() throws {
    let access = try fixture()
    let usual = "Cookie: __Host-moongate=\(AccessFixture.token); __Host-moongate-framed=x\r\n"
    for fields in [Self.own, Self.included, ""] {
      let request = try access.proxied("/wiki/x", fields + usual, browser: false)
      #expect(access.decide(request, .live(access.session())).grant?.session != nil, "SameSite protects it")
    }
    let twice = "Cookie: __Host-moongate-framed=\(AccessFixture.token)\r\n" + Self.cookie
    let request = try access.proxied("/wiki/x", Self.own + twice, browser: false)
    #expect(access.decide(request, .live(access.session())).refusal?.code == .unauthenticated)
    let other = "Authorization: Bearer \(String(repeating: "B", count: 43))\r\n"
    let contradictory = try access.proxied("/wiki/x", Self.own + Self.cookie + other, browser: false)
    #expect(access.decide(contradictory, .live(access.session())).refusal?.code == .badRequest)
    let elsewhere = try access.proxied("/x", Self.own + Self.cookie + other, browser: false)
    #expect(access.decide(elsewhere).lookup != nil, "only Bearer counts there")
  }

  @Test func nameFollowsTheSettings() throws {
    let shared = "Cookie: __Secure-moongate-framed=\(AccessFixture.token)\r\n"
    let access = try fixture(cookieDomain: "example.com")
    let counted = try access.proxied("/wiki/x", Self.own + shared, browser: false)
    #expect(access.decide(counted, .live(access.session())).grant?.session != nil)
    let other = try access.proxied("/wiki/x", Self.own + Self.cookie, browser: false)
    #expect(access.decide(other, .live(access.session())).refusal?.code == .unauthenticated)
    // Browsers keep no partitioned cookie without https.
    let plain = try fixture(isSecure: false)
    #expect(plain.authorizer.plan.framedCookieName == nil)
    for cookie in [Self.cookie, shared, "Cookie: moongate-framed=\(AccessFixture.token)\r\n"] {
      let request = try plain.proxied("/wiki/x", Self.own + cookie, browser: false)
      #expect(plain.decide(request, .live(plain.session())).refusal?.code == .unauthenticated)
    }
  }

  @Test func gatewayWithoutFramesReadsNoSuchCookie() throws {
    let settings = GatewaySettings.test(publicURL: PublicURL(isSecure: true, host: "auth.example.com", port: 443))
    let access = try AccessFixture([.test("/**", ports: [])], settings: settings)
    #expect(access.authorizer.plan.framedCookieName == nil)
    let request = try access.proxied("/wiki/x", Self.own + Self.cookie, browser: false)
    #expect(access.decide(request, .live(access.session())).refusal?.code == .unauthenticated)
  }
}
