import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateProxy

/// Decisions about routes that are open to some networks. The client's address is 192.0.2.7.
@Suite struct OpenNetworkTests {
  private static let host = "app.example.com"
  private static let bearer = "Authorization: Bearer mgt_\(String(repeating: "s", count: 43))\r\n"
  private let staff: GroupName

  init() throws { staff = try GroupName(test: "staff") }

  private func inside(groups: [String] = [], decide: FunctionName? = nil, tokens: RouteTokens? = nil) -> Route {
    Route.test(host: Self.host, ports: [], decide: decide, groups: groups, tokens: tokens).open(to: "192.0.2.0/24")
  }

  /// The same request by the proxy and by forward-auth.
  private func both(_ access: AccessFixture, _ fields: String = "", method: String = "GET") throws -> [AccessRequest] {
    [
      try access.proxied("/x", fields, method: method, browser: false),
      try access.asked("/x", fields, method: method, browser: false),
    ]
  }

  @Test func clientInTheNetworkNeedsNoSession() throws {
    let access = try AccessFixture([inside()])
    for request in try both(access) {
      let grant = try #require(access.decide(request).grant)
      #expect(grant.session == nil && grant.isByNetwork && grant.entitlements == .none)
    }
  }

  @Test func otherClientsSignIn() throws {
    let access = try AccessFixture([Route.test(host: Self.host, ports: []).open(to: "198.51.100.0/24")])
    #expect(access.decide(try access.proxied()).location?.contains("/auth/login?return_to=") == true)
    for request in try both(access) { #expect(access.decide(request).refusal?.code == .unauthenticated) }
  }

  /// Attack: DNS rebinding.
  @Test func hostThatNoRouteNamesNeedsASession() throws {
    let access = try AccessFixture([Route.test(ports: []).open(to: "192.0.2.0/24")])
    #expect(access.decide(try access.proxied(host: "evil.example", browser: false)).grant == nil)
    #expect(access.decide(try access.asked(host: "evil.example", browser: false)).grant == nil)
    #expect(access.decide(try access.proxied(host: "localhost", browser: false)).grant?.isByNetwork == true)
  }

  /// Attack: a proxy that sends no address. All its clients have its own.
  @Test func trustedProxyIsInNoNetwork() throws {
    var settings = GatewaySettings.test()
    settings.trustedProxies = [AddressBlock(network: [192, 0, 2, 7], prefix: 32)]
    let access = try AccessFixture([inside()], settings: settings)
    for request in try both(access) { #expect(access.decide(request).refusal?.code == .unauthenticated) }
  }

  @Test func sessionKeepsItsIdentity() throws {
    let access = try AccessFixture([inside(groups: ["staff"])]) { $0.accounts.groups = [staff: .members] }
    let session = access.session(groups: [staff])
    for request in try both(access, AccessFixture.cookie) {
      #expect(access.decide(request).lookup != nil, "a valid session stays signed in")
      let grant = try #require(access.decide(request, .live(session)).grant)
      #expect(grant.session === session && !grant.isByNetwork && grant.entitlements.groups == [staff])
    }
  }

  /// Attack: a user who is barred from the route comes from the network. The service must not get the user's name, as
  /// if the rules of the route admitted the user.
  @Test func sessionThatTheRouteRefusesIsAnonymous() throws {
    let access = try AccessFixture([inside(groups: ["staff"])]) { $0.accounts.groups = [staff: .members] }
    for request in try both(access, "Authorization: Bearer \(AccessFixture.token)\r\n") {
      let decision = access.decide(request, .live(access.session()))
      let grant = try #require(decision.grant)
      #expect(grant.session == nil && grant.isByNetwork && grant.entitlements == .none && grant.dropsAuthorization)
      #expect(decision.ignored == nil)
      #expect(access.decide(request, SessionCache.LookupResult.none).grant?.isByNetwork == true)
    }
  }

  @Test func failingDecideIsReportedAndLeavesTheRequestAnonymous() throws {
    let access = try AccessFixture([inside(decide: AccessFixture.decide)]) { generation in
      generation.verdicts[AccessFixture.decide] = { _ in
        .fault(PolicyFault(kind: .error, location: nil, message: "broken"))
      }
    }
    for request in try both(access, AccessFixture.cookie) {
      let decision = access.decide(request, .live(access.session()))
      #expect(decision.grant?.isByNetwork == true && decision.grant?.session == nil)
      #expect(decision.ignored?.fault.message == "broken" && decision.ignored?.rule == AccessFixture.decide.path)
      #expect(access.decide(request, SessionCache.LookupResult.none).ignored == nil, "not run without a session")
    }
  }

  /// A program whose token is wrong must not act as nobody without noticing.
  @Test func accessTokenIsJudgedAsElsewhere() throws {
    let access = try AccessFixture([
      inside(groups: ["staff"], tokens: RouteTokens(names: ["ci"]))
    ]) { $0.accounts.groups = [staff: .members] }
    for request in try both(access, Self.bearer) {
      #expect(access.decide(request, SessionCache.LookupResult.none).refusal?.code == .unauthenticated)
      #expect(access.decide(request, .live(access.serviceToken())).refusal?.code == .forbidden)
    }
    let open = try AccessFixture([inside(tokens: RouteTokens(names: ["ci"]))])
    for request in try both(open, Self.bearer) {
      let grant = try #require(open.decide(request, .live(open.serviceToken())).grant)
      #expect(grant.session != nil && !grant.isByNetwork)
    }
  }

  @Test func unavailableStoreLeavesTheRequestAnonymous() throws {
    let access = try AccessFixture([inside()])
    for request in try both(access, AccessFixture.cookie) {
      #expect(access.decide(request, storeIsFresh: false).grant?.isByNetwork == true)
    }
  }

  /// Attack: a user in the network reads a page of another site, which sends a form to the service. The browser needs
  /// no cookie for that.
  @Test(arguments: [
    ("Origin: https://evil.example\r\n", false), ("Origin: null\r\n", false), ("Origin: https://192.0.2.9\r\n", false),
    ("Origin: https://app.example.com\r\n", true), ("Origin: https://portal.example.com\r\n", true), ("", true),
    ("Origin: https://example.com.evil.example\r\n", false), ("Origin: ftp://portal.example.com\r\n", false),
    ("Origin: https://app.example.com\r\nOrigin: https://evil.example\r\n", false),
    ("Sec-Fetch-Site: cross-site\r\nOrigin: https://portal.example.com\r\n", false),
    ("Sec-Fetch-Site: same-origin\r\nOrigin: null\r\n", true), ("Sec-Fetch-Site: same-site\r\n", true),
    ("Sec-Fetch-Site: none\r\n", true), ("Sec-Fetch-Site: other\r\n", false),
  ])
  func pageOfAnotherSiteChangesNothing(_ fields: String, _ isAllowed: Bool) throws {
    var settings = GatewaySettings.test(publicURL: PublicURL(isSecure: true, host: "auth.example.com", port: 443))
    settings.cookieDomain = "example.com"
    let access = try AccessFixture([inside()], settings: settings)
    for request in try both(access, fields, method: "POST") {
      let decision = access.decide(request)
      #expect((decision.grant != nil) == isAllowed, "\(fields)")
      if !isAllowed { #expect(decision.refusal?.code == .originRefused) }
    }
    #expect(access.decide(try access.proxied("/x", fields, browser: false)).grant != nil, "it only reads")
    if !fields.contains("Origin") {
      #expect(access.decide(try access.asked("/x", fields, browser: false)).grant != nil, "it only reads")
    }
  }

  /// Attack: a page of another site opens a WebSocket through a proxy that only asks. Proxies do not tell `Upgrade`, so
  /// that the handshake looks like a GET that only reads.
  @Test(arguments: [
    ("Origin: https://evil.example\r\n", false), ("Origin: null\r\n", false),
    ("Origin: https://evil.example\r\nSec-Fetch-Mode: websocket\r\nSec-Fetch-Site: cross-site\r\n", false),
    ("Origin: https://app.example.com\r\n", true), ("Origin: https://portal.example.com\r\n", true), ("", true),
    ("Sec-Fetch-Mode: navigate\r\nSec-Fetch-Site: cross-site\r\n", true),
  ])
  func pageOfAnotherSiteOpensNoTunnelThroughAProxy(_ fields: String, _ isAllowed: Bool) throws {
    var settings = GatewaySettings.test(publicURL: PublicURL(isSecure: true, host: "auth.example.com", port: 443))
    settings.cookieDomain = "example.com"
    let access = try AccessFixture([inside()], settings: settings)
    let decision = access.decide(try access.asked("/x", fields, browser: false))
    #expect((decision.grant != nil) == isAllowed, "\(fields)")
    if !isAllowed { #expect(decision.refusal?.code == .originRefused) }
  }

  /// The check is about the network alone: a session's cookie has SameSite, and an open route no authority.
  @Test func otherRequestsMayComeFromAnyPage() throws {
    let access = try AccessFixture([
      Route.test("/open/**", host: Self.host, ports: [], open: true), inside(),
    ])
    let origin = "Origin: https://evil.example\r\n"
    #expect(access.decide(try access.proxied("/open/x", origin, method: "POST")).grant?.isByNetwork == false)
    let signedIn = try access.proxied("/x", origin + AccessFixture.cookie, method: "POST")
    #expect(access.decide(signedIn, .live(access.session())).grant?.session != nil)
  }

  @Test func routeOfASessionIsNotOpenByNetwork() throws {
    let access = try AccessFixture([.test(host: Self.host, ports: []), inside()])
    for request in try both(access) { #expect(access.decide(request).refusal?.code == .unauthenticated) }
    for request in try both(access, AccessFixture.cookie) {
      #expect(access.decide(request, .live(access.session())).grant?.isByNetwork == false)
    }
  }
}
