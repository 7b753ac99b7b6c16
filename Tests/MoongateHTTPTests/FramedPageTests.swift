import HTTPTypes
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongateHTTP

/// Sign-in in a frame of another site: `https://portal.example.com` shows `https://auth.example.com/wiki/`.
@Suite struct FramedPageTests {
  private static let portal = "frame-ancestors https://portal.example.com"
  private static let pin = ProviderName(test: "phone_otp")

  private static func route(_ path: String, frames: [String]) -> Route {
    let parts = path.dropFirst().split(separator: "/")
    var route = Route(
      host: nil,
      path: PathPattern(text: path, segments: parts.map { $0 == "**" ? .anySegments : .glob(Array($0.utf8)) }),
      methods: nil, upstreams: [Upstream(isSecure: false, host: "127.0.0.1", port: 1)], isOpen: false, flow: "login",
      requirement: nil, decide: nil, timeout: .seconds(30), allowsUpgrade: false, headers: [], bodyLimit: nil,
      location: SourceLocation(file: "routes.lua", line: 1))
    route.frames = frames
    return route
  }

  private func gateway(isSecure: Bool = true, change: (inout TestGeneration) -> Void = { _ in }) throws -> HTTPGateway {
    try HTTPGateway(
      settings: .test(publicURL: PublicURL(isSecure: isSecure, host: "auth.example.com", port: isSecure ? 443 : 80)),
      routes: [
        Self.route("/wiki/**", frames: ["https://portal.example.com"]),
        Self.route("/board/**", frames: ["https://board.example"]), Self.route("/**", frames: []),
      ]
    ) { generation in
      let steps = [StepRule.test(Self.pin)]
      for name in ["change_phone", "step_up"] { generation.flows[name] = .test(name, account: .existing, steps: steps) }
      change(&generation)
    }
  }

  /// A frame of another site, where the browser keeps only partitioned cookies.
  private final class Frame {
    private let client: Client
    private(set) var cookies: [String: String] = [:]
    /// The Set-Cookie lines that it has kept.
    private(set) var kept: [String] = []

    init(_ client: Client) { self.client = client }

    /// - Parameter site: `Sec-Fetch-Site`: what the page that sent the request has to do with the gateway.
    func send(
      _ method: HTTPRequest.Method, _ path: String, _ fields: [String: String]? = nil, json: String? = nil,
      from site: String = "same-origin", mode: String = "navigate"
    ) async throws -> Answer {
      var headers = [
        ("Accept", "text/html"), ("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", mode),
        ("Sec-Fetch-Dest", mode == "navigate" ? "iframe" : "empty"),
      ]
      if method != .get {
        headers.append(("Origin", site == "same-origin" ? "https://auth.example.com" : "https://portal.example.com"))
      }
      if !cookies.isEmpty {
        headers.append(("Cookie", cookies.map { "\($0.key)=\($0.value)" }.sorted().joined(separator: "; ")))
      }
      let form = fields.map {
        $0.map { "\($0.key)=\(PercentEncoding.encode($0.value))" }.sorted().joined(separator: "&")
      }
      if form != nil { headers.append(("Content-Type", "application/x-www-form-urlencoded")) }
      if json != nil { headers.append(("Content-Type", "application/json")) }
      let answer = try await client.send(method, path, headers: headers, body: form ?? json)
      for line in answer.setCookies where line.contains("; SameSite=None; Secure; Partitioned") {
        let pair = line.prefix { $0 != ";" }.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        cookies[String(pair[0])] = line.contains("Max-Age=0") ? nil : String(pair[1])
        kept.append(line)
      }
      return answer
    }

    /// Registers an account on the pages, and returns the last answer.
    func register(_ phone: String = "9999999999", returnTo: String = "/wiki/x") async throws -> Answer {
      _ = try await send(
        .get, "/auth/register?return_to=\(PercentEncoding.encode(returnTo))", from: "cross-site")
      let sent = try await send(.post, "/auth/register", ["phone": phone, "return_to": returnTo])
      let page = try #require(sent.header("Location"))
      #expect(try await send(.get, page).header("Content-Security-Policy")?.hasSuffix(FramedPageTests.portal) ?? false)
      return try await send(.post, page, ["code": try #require(client.gateway.code(for: "+91\(phone)"))])
    }
  }

  // MARK: which pages

  @Test(arguments: ["/auth/login", "/auth/register"])
  func returnAddressDecidesWhoShowsThePage(_ page: String) async throws {
    try await gateway().run { client in
      for (returnTo, ancestors) in [
        ("/wiki/x?y", "https://portal.example.com"), ("https://auth.example.com/wiki/x", "https://portal.example.com"),
        ("/board/", "https://board.example"), ("/", nil), ("/wiki/%2e%2e/x", nil), ("//portal.example.com/wiki/", nil),
        ("https://evil.example/wiki/", nil), ("/auth/account", nil), ("https://auth.example.com/auth/account", nil),
        ("/auth/step?return_to=%2Fwiki%2F", "https://portal.example.com"),
        ("/auth/openid/continue?request=x", nil), ("", nil),
      ] {
        let answer = try await client.send(
          .get, "\(page)?return_to=\(PercentEncoding.encode(returnTo))", headers: [("Accept", "text/html")])
        #expect(answer.status == 200)
        let policy = try #require(answer.header("Content-Security-Policy"))
        #expect(policy.hasSuffix("; frame-ancestors \(ancestors ?? "'none'")"), "\(returnTo): \(policy)")
        #expect(answer.header("X-Frame-Options") == (ancestors == nil ? "DENY" : nil), "\(returnTo)")
      }
    }
  }

  /// Attack: clickjacking. A link names a route with `frames` as the return address of a page that changes an account,
  /// or a parameter that would allow frames.
  @Test func pagesOfAnAccountAreNeverShown() async throws {
    try await gateway().run { client in
      let token = try await client.register().token
      let signedIn = [("Accept", "text/html"), ("Cookie", "__Host-moongate=\(token)")]
      let back = "return_to=%2Fwiki%2F"
      for path in [
        "/auth/account?\(back)", "/auth/tokens?\(back)", "/auth/account/delete?\(back)",
        "/auth/verify?flow=change_phone&\(back)", "/auth/step?flow=change_phone&\(back)",
        "/auth/login?flow=change_phone&\(back)", "/auth/openid/consent?\(back)", "/auth/device?\(back)",
        "/auth/logout?frames=https://portal.example.com", "/auth/logout?frame-ancestors=https://portal.example.com",
        "/auth/logout?framed=1",
      ] {
        let answer = try await client.send(.get, path, headers: signedIn)
        #expect(answer.header("Location") != nil || answer.header("X-Frame-Options") == "DENY", "\(path)")
        #expect(!(answer.header("Content-Security-Policy") ?? "").contains("https://portal"), "\(path)")
      }
    }
  }

  /// Attack: the address of a flow that leads elsewhere gets a `return_to` that leads to a route with `frames`.
  @Test func recordOfTheFlowDecides() async throws {
    try await gateway().run { client in
      let browser = Browser(client, origin: "https://auth.example.com")
      try await browser.visit("/auth/register?return_to=%2Fhome")
      let page = try #require(try await browser.submit(["phone": "9999999999"]).header("Location"))
      let shown = try await browser.visit("\(page)&return_to=%2Fwiki%2F&flow=register")
      #expect(shown.text.contains("name=\"code\"") && shown.header("X-Frame-Options") == "DENY")
      let wrong = try await browser.post("\(page)&return_to=%2Fwiki%2F", ["code": "x", "return_to": "/wiki/"])
      #expect(wrong.header("X-Frame-Options") == "DENY")
    }
  }

  // MARK: cookies

  @Test func signInWithinAFrameHasAPartitionedCookie() async throws {
    try await gateway().run { client in
      let frame = Frame(client)
      let done = try await frame.register()
      #expect(done.status == 303 && done.header("Location") == "/wiki/x", "\(done.text)")
      let token = try #require(frame.cookies["__Host-moongate-framed"])
      #expect(
        frame.kept.contains(
          "__Host-moongate-framed=\(token); Path=/; HttpOnly; SameSite=None; Secure; Partitioned"))
      #expect(!done.setCookies.contains { $0.hasPrefix("__Host-moongate=") })
      #expect(
        Set(frame.cookies.keys) == [
          "__Host-moongate-framed", "__Host-moongate-flow-framed",
          "__Host-moongate-device-framed",
        ])
    }
  }

  /// The usual cookie is for a top-level page. Only the sign-in on the way to a route with `frames` sets one for
  /// frames.
  @Test func otherPagesSetNoCookieOfFrames() async throws {
    try await gateway().run { client async throws in
      func names(_ path: String, _ dest: String) async throws -> [String] {
        let headers = [("Accept", "text/html"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", dest)]
        return try await client.send(.get, path, headers: headers).setCookies.map { String($0.prefix { $0 != "=" }) }
      }
      let framed = "/auth/login?return_to=%2Fwiki%2F"
      #expect(try await names(framed, "iframe") == ["__Host-moongate-flow", "__Host-moongate-flow-framed"])
      #expect(try await names(framed, "document") == ["__Host-moongate-flow"])
      #expect(try await names("/auth/login?return_to=%2F", "iframe") == ["__Host-moongate-flow"])
    }
    try await gateway(isSecure: false).run { client in
      let headers = [("Accept", "text/html"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "iframe")]
      let page = try await client.send(.get, "/auth/login?return_to=%2Fwiki%2F", headers: headers)
      #expect(page.setCookies.allSatisfy { $0.hasPrefix("moongate-flow=") && $0.contains("SameSite=Lax") })
    }
  }

  /// In a frame of the same site, browsers send the usual cookies, and these count.
  @Test func usualCookiesCountWhereTheyAreSent() async throws {
    try await gateway().run { client in
      let browser = Browser(client, origin: "https://auth.example.com")
      browser.metadata = [
        ("Sec-Fetch-Site", "same-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "iframe"),
      ]
      try await browser.visit("/auth/register?return_to=%2Fwiki%2F")
      #expect(browser.cookies["__Host-moongate-flow"] == browser.cookies["__Host-moongate-flow-framed"])
      try await browser.visit(try #require(try await browser.submit(["phone": "9999999999"]).header("Location")))
      let done = try await browser.submit(["code": try #require(client.gateway.code(for: "+919999999999"))])
      #expect(done.header("Location") == "/profile-setup?return_to=%2Fwiki%2F", "as without frames")
      #expect(browser.cookies["__Host-moongate"] != nil)
      #expect(browser.cookies["__Host-moongate-framed"] == nil)
    }
  }

  // MARK: what a session of a frame may do

  @Test func sessionOfAFrameIsNoAccessToTheAccount() async throws {
    try await gateway().run { client in
      let frame = Frame(client)
      _ = try await frame.register()
      #expect(try await frame.send(.get, "/api/auth/session", mode: "cors").status == 200)
      let bearer = [("Authorization", "Bearer \(try #require(frame.cookies["__Host-moongate-framed"]))")]
      for path in ["/api/auth/sessions", "/api/auth/devices", "/api/auth/account/export", "/api/auth/apps"] {
        #expect(try await frame.send(.get, path, mode: "cors").problem() == "unauthenticated", "\(path)")
        #expect(try await client.call(.get, path, headers: bearer).status == 200, "\(path)")
      }
      let page = try await frame.send(.get, "/auth/account")
      #expect(page.header("Location")?.hasPrefix("/auth/login") ?? false, "as without a session")
      let change = try await frame.send(.post, "/api/auth/flows", json: #"{"flow":"change_phone"}"#, mode: "cors")
      #expect(change.problem() == "denied")
      let stepUp = try await frame.send(
        .post, "/api/auth/flows", json: #"{"flow":"step_up","return_to":"/wiki/"}"#, mode: "cors")
      #expect(stepUp.status == 201, "\(stepUp.text)")
    }
  }

  /// Attack: another page in the same tab uses the session of the frame.
  @Test func otherPagesUseNoSessionOfAFrame() async throws {
    try await gateway().run { client in
      let frame = Frame(client)
      _ = try await frame.register()
      for (site, mode) in [("cross-site", "cors"), ("cross-site", "no-cors"), ("same-site", "cors"), ("none", "cors")] {
        #expect(try await frame.send(.get, "/api/auth/session", from: site, mode: mode).problem() == "unauthenticated")
      }
      for path in ["/api/auth/session", "/api/auth/flows"] {
        let method = path.hasSuffix("session") ? HTTPRequest.Method.delete : .post
        let json = method == .post ? #"{"flow":"step_up"}"# : nil
        let answer = try await frame.send(method, path, json: json, from: "cross-site", mode: "cors")
        #expect(answer.problem() == "origin_refused", "\(path)")
      }
      let form = try await frame.send(.post, "/auth/logout", ["return_to": "/wiki/"], from: "cross-site")
      #expect(form.status == 403)
      #expect(try await frame.send(.get, "/api/auth/session", mode: "cors").status == 200, "still signed in")
    }
  }

  /// Attack: login CSRF. The embedding site leads the frame to a page of the attacker's flow, or posts its code.
  @Test func nobodySignsAFrameIn() async throws {
    try await gateway().run { client in
      let attacker = Browser(client, origin: "https://auth.example.com")
      try await attacker.visit("/auth/register?return_to=%2Fwiki%2F")
      let page = try #require(try await attacker.submit(["phone": "9999999991"]).header("Location"))
      let code = try #require(client.gateway.code(for: "+919999999991"))
      let frame = Frame(client)
      _ = try await frame.send(.get, "/auth/login?return_to=%2Fwiki%2F", from: "cross-site")
      #expect(try await frame.send(.get, page, from: "cross-site").status == 404, "the flow of another browser")
      #expect(try await frame.send(.post, page, ["code": code], from: "cross-site").status == 403)
      #expect(try await frame.send(.post, page, ["code": code]).status == 404)
      #expect(frame.cookies.keys.sorted() == ["__Host-moongate-flow-framed"])
    }
  }

  @Test func signOutRemovesTheCookieOfTheFrame() async throws {
    try await gateway().run { client in
      let frame = Frame(client)
      _ = try await frame.register()
      let token = try #require(frame.cookies["__Host-moongate-framed"])
      let page = try await frame.send(.get, "/auth/logout?return_to=%2Fwiki%2F")
      #expect(page.header("Content-Security-Policy")?.hasSuffix(Self.portal) ?? false)
      let out = try await frame.send(.post, "/auth/logout", ["return_to": "/wiki/"])
      #expect(out.header("Location") == "/wiki/" && frame.cookies["__Host-moongate-framed"] == nil)
      #expect(
        try await client.call(.get, "/api/auth/session", headers: [("Authorization", "Bearer \(token)")]).status == 401)
    }
  }

  // MARK: refusals

  /// The record of a flow that has ended no longer says where it led.
  @Test func refusalsOfAFrameAreShownThere() async throws {
    try await gateway().run { client in
      let frame = Frame(client)
      let outside = try await frame.send(.get, "/auth/verify?id=fl_unknown", from: "cross-site")
      #expect(outside.status == 404 && outside.header("X-Frame-Options") == "DENY", "no sign-in has begun here")
      _ = try await frame.send(.get, "/auth/login?return_to=%2Fwiki%2F", from: "cross-site")
      let refused = try await frame.send(.get, "/auth/verify?id=fl_unknown")
      #expect(refused.status == 404 && refused.header("X-Frame-Options") == nil)
      let all = "frame-ancestors https://board.example https://portal.example.com"
      #expect(refused.header("Content-Security-Policy")?.hasSuffix(all) ?? false)
      #expect(!refused.text.contains("href=\"/auth/login"), "a link that no frame shows")
      let known = try await frame.send(.post, "/auth/verify?id=fl_unknown", ["code": "1", "return_to": "/wiki/x"])
      #expect(known.header("Content-Security-Policy")?.hasSuffix(Self.portal) ?? false)
      #expect(known.text.contains("href=\"/auth/login?return_to=%2Fwiki%2Fx\""), "\(known.text)")
    }
  }

  @Test func gatewayWithoutFramesIgnoresTheCookies() async throws {
    let http = try HTTPGateway(
      settings: .test(publicURL: PublicURL(isSecure: true, host: "auth.example.com", port: 443)))
    try await http.run { client in
      let token = try await client.register().token
      let headers = [
        ("Cookie", "__Host-moongate-framed=\(token)"), ("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Mode", "cors"),
      ]
      #expect(try await client.call(.get, "/api/auth/session", headers: headers).status == 401)
    }
  }
}
