import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// `policy diff` and `policy show` of routes.lua: which settings of which route change, and who gains or loses access.
@Suite struct RouteDiffTests {
  private static let gateway = GatewaySettings.test(publicURL: PublicURL(isSecure: false, host: "localhost", port: 80))

  private static func route(
    _ path: String, host: String? = nil, methods: Set<String>? = nil, open: Bool = false,
    line: Int = 2, headers: [(name: String, value: String)] = [],
    _ change: (inout Route) -> Void = { _ in }
  ) -> Route {
    let segments = path.split(separator: "/").map { part -> PathPattern.Segment in
      part == "**" ? .anySegments : .glob(Array(part.utf8))
    }
    var route = Route(
      host: host, path: PathPattern(text: path, segments: segments), methods: methods,
      upstreams: [Upstream(isSecure: false, host: "10.0.0.5", port: 3000)], isOpen: open, flow: "login",
      requirement: nil, decide: nil, timeout: .seconds(30), allowsUpgrade: false, headers: headers, bodyLimit: nil,
      location: SourceLocation(file: "routes.lua", line: line))
    change(&route)
    return route
  }

  private static func generation(_ routes: [Route]) -> TestGeneration {
    TestGeneration(gateway: gateway, routes: routes, flows: [], policies: [])
  }

  private static func changes(_ old: [Route], _ new: [Route]) -> [String] {
    SettingsDiff(old: generation(old), new: generation(new), providers: .none).changes.map {
      "\($0.place) \($0.path): \($0.old ?? "nothing") → \($0.new ?? "nothing")"
    }
  }

  private static func access(_ old: [Route], _ new: [Route]) throws -> [String] {
    try AccessDiff(old: generation(old), new: generation(new)).access.map {
      "\($0.who) \($0.change.rawValue) \($0.request) \($0.route)"
    }
  }

  private static func blocks(_ texts: String...) -> [AddressBlock] { texts.compactMap(AddressBlock.init) }

  // MARK: settings

  /// A route with every field of real services.
  private static func full(password: String = "opensesame", authority: [UInt8] = [1]) -> Route {
    var upstream = Upstream(isSecure: true, host: "wiki.internal", port: 8443)
    upstream.usesHTTP2 = true
    var trust = UpstreamTrust()
    trust.authorities = authority
    trust.certificate = [2]
    trust.key = Array("-----BEGIN PRIVATE KEY-----".utf8)
    trust.name = "wiki"
    upstream.trust = trust
    var route = Route(
      host: "a.example", path: PathPattern(text: "/wiki/**", segments: [.glob(Array("wiki".utf8)), .anySegments]),
      methods: ["POST", "GET"], upstreams: [upstream, upstream], isOpen: false, flow: "staff",
      requirement: .passed("totp", within: .seconds(300)), decide: FunctionName("routes[1].decide"),
      timeout: .seconds(60),
      allowsUpgrade: true,
      headers: [("X-Tenant", "demo"), ("X-Api-Key", "k-123")], bodyLimit: 64 << 20,
      bodyRate: nil, tokens: RouteTokens(names: ["ci"], takesPersonal: true), allowsServiceWorker: true,
      location: SourceLocation(file: "routes.lua", line: 7))
    route.openNetworks = blocks("10.0.0.0/8", "2001:db8::/32")
    route.rewrite = PathRewrite(strip: "/wiki", base: "/base")
    route.hostHeader = .named("wiki.internal")
    route.encoded = [.slash, .empty]
    route.identity.headers = [
      .user: ServiceIdentity.Header(name: "X-WEBAUTH-USER", value: IdentityTemplate([.id])),
      .email: ServiceIdentity.Header(
        name: "X-Email", value: IdentityTemplate([.text("<"), .email, .text(">"), .claim("plan")])),
    ]
    route.identity.basic = ServiceIdentity.Basic(
      user: IdentityTemplate([.username, .firstName, .lastName, .groups, .phone, .name]),
      password: SecretText(password))
    route.identity.encoding = .rfc2047
    route.bearer = "reports"
    route.responseHeaders = [("X-Frame-Options", "DENY"), ("Server", nil)]
    route.retry = RetryRule(onConnect: true, statuses: [503, 502], times: 2)
    route.balance = .leastBusy
    route.health = HealthCheck(path: "/healthz", interval: .seconds(10))
    route.rate = RouteRate(count: 100, window: .seconds(1), subject: .account)
    route.frames = ["https://portal.example.com"]
    route.errorPages = "errors"
    return route
  }

  @Test func everyFieldIsListedWithoutSecrets() {
    let listing = PolicyListing(RouteTable(routes: [Self.full()]), Self.gateway)
    #expect(listing.provider == PolicyListing.routes)
    #expect(listing.values.allSatisfy { $0.file == "routes.lua" && $0.line == 7 })
    let name = "GET,POST a.example/wiki/**"
    let found = listing.values.map { String($0.path.dropFirst(name.count + 1)) + " = " + $0.value }
    let expected = [
      "to = { \"https://wiki.internal:8443/base\", \"https://wiki.internal:8443/base\" }",
      "allow = { networks = { \"10.0.0.0/8\", \"2001:db8::/32\" } }", "flow = \"staff\"",
      "require = { passed = \"totp\", within = \"5m\" }", "tokens = { \"ci\", personal = true }", "decide = function",
      "timeout = \"1m\"", "websocket = true", "service_worker = true",
      "headers = { [\"X-Tenant\"] = \"demo\", [\"X-Api-Key\"] = a secret }", "body = \"64MiB\"", "body_rate = false",
      "rate = { \"100/s\", per = \"account\" }", "frames = { \"https://portal.example.com\" }",
      "error_pages = \"errors\"", "strip = \"/wiki\"", "host_header = \"wiki.internal\"",
      "encoded = { \"slash\", \"empty\" }",
      "response_headers = { [\"X-Frame-Options\"] = \"DENY\", [\"Server\"] = false }",
      "identity = { user = \"X-WEBAUTH-USER\", email = { \"X-Email\", value = \"<{email}>{claim.plan}\" }, "
        + "basic = { user = \"{username}{first_name}{last_name}{groups}{phone}{name}\", password = a secret } }",
      "encoding = \"rfc2047\"", "bearer = \"reports\"",
      "retry = { on = { \"connect\", \"502\", \"503\" }, times = 2 }", "balance = \"least_busy\"",
      "health = { path = \"/healthz\", every = \"10s\" }", "http2 = true",
      "upstream_tls = { ca = a file, cert = a file, key = a secret, name = \"wiki\" }",
    ]
    #expect(found == expected, "\(found.joined(separator: "\n"))")
    for secret in ["opensesame", "k-123", "PRIVATE KEY"] {
      #expect(!found.joined().contains(secret) && !listing.text(colour: false).contains(secret))
    }
    #expect(listing.text(colour: false).hasPrefix("routes\n"))
  }

  /// Every property of a route that a field sets is in the listing, so that no new field is forgotten.
  @Test func everyPropertyOfARouteIsListed() {
    let properties = Mirror(reflecting: Self.full()).children.compactMap(\.label)
    // What a route matches is its name, and its place is beside it.
    let known = [
      "host", "path", "methods", "location", "upstreams", "isOpen", "flow", "requirement", "groups", "tokens", "decide",
      "timeout", "allowsUpgrade", "allowsServiceWorker", "headers", "bodyLimit", "bodyRate", "rewrite", "hostHeader",
      "encoded", "openNetworks", "identity", "bearer", "responseHeaders", "retry", "balance", "health", "rate",
      "frames", "errorPages",
    ]
    #expect(Set(properties) == Set(known), "RouteListing lists each property; then add it here")
  }

  @Test func usualValuesAreLeftOut() {
    let listing = PolicyListing(RouteTable(routes: [Self.route("/**"), Self.route("/a", open: true)]), Self.gateway)
    #expect(
      listing.values.map { "\($0.path) \($0.value)" } == [
        "/** to \"http://10.0.0.5:3000\"", "/a to \"http://10.0.0.5:3000\"", "/a allow true",
      ])
  }

  @Test func changedFieldsOfARouteAreListed() {
    let old = Self.route("/wiki/**")
    #expect(Self.changes([old], [old]) == [])
    let new = Self.route("/wiki/**", line: 5) {
      $0.rewrite.strip = "/wiki"
      $0.balance = .sticky
      $0.bearer = "reports"
    }
    #expect(
      Self.changes([old], [new]) == [
        "routes.lua:5 /wiki/** strip: nothing → \"/wiki\"", "routes.lua:5 /wiki/** bearer: nothing → \"reports\"",
        "routes.lua:5 /wiki/** balance: \"first\" → \"sticky\"",
      ])
    #expect(
      Self.changes([new], [old]) == [
        "routes.lua:2 /wiki/** balance: \"sticky\" → \"first\"", "routes.lua:2 /wiki/** strip: \"/wiki\" → nothing",
        "routes.lua:2 /wiki/** bearer: \"reports\" → nothing",
      ])
  }

  @Test func addedAndRemovedRoutesAreOneChange() {
    let added = Self.route("/x", methods: ["GET"], line: 3) { $0.rewrite.strip = "/x" }
    let text = "{ to = \"http://10.0.0.5:3000\", strip = \"/x\" }"
    let all = Self.route("/**", line: 9)
    #expect(Self.changes([all], [added, all]) == ["routes.lua:3 GET /x: nothing → \(text)"])
    #expect(Self.changes([added, all], [all]) == ["routes.lua:3 GET /x: \(text) → nothing"])
  }

  /// Attack on ourselves: a comparison that prints a password, or that hides that it changed.
  @Test func changedSecretsAreReportedAndNotShown() {
    let old = Self.full()
    let found = Self.changes([old], [Self.full(password: "another", authority: [9])])
    #expect(found.count == 2 && found.allSatisfy { $0.hasSuffix(", with other contents") }, "\(found)")
    #expect(found[0].contains(" identity: ") && found[1].contains(" upstream_tls: "))
    #expect(!found.joined().contains("opensesame") && !found.joined().contains("another"))
    let key = { (value: String) in Self.route("/a", headers: [("Authorization", value)]) }
    #expect(
      Self.changes([key("one")], [key("two")]) == [
        "routes.lua:2 /a headers: { [\"Authorization\"] = a secret } → "
          + "{ [\"Authorization\"] = a secret }, with other contents"
      ])
  }

  @Test func anotherOrderIsListed() {
    let (a, b, c) = (Self.route("/a/*", line: 2), Self.route("/*/b", line: 3), Self.route("/**", line: 4))
    #expect(Self.changes([a, b, c], [b, a, c]) == ["routes.lua:3 order: /a/*, /*/b → /*/b, /a/*"])
    // A route that is added or removed is no other order.
    #expect(Self.changes([a, c], [b, a, c]).count == 1)
  }

  /// The function of a route keeps its identity if routes before it are added.
  @Test func functionsAreComparedByTheirText() throws {
    func generation(_ before: String, _ answer: String) throws -> any PolicyGeneration {
      try TestFolder([
        "routes.lua": """
        return routes {
        \(before)  { path = "/pay", to = "http://127.0.0.1:3000", decide = function(f) return \(answer) end },
          { path = "/**", to = "http://127.0.0.1:3000" },
        }
        """
      ]).generation()
    }
    func changes(_ old: any PolicyGeneration, _ new: any PolicyGeneration) -> [String] {
      SettingsDiff(old: old, new: new, providers: .none).changes.map {
        "\($0.place) \($0.path): \($0.old ?? "nothing") → \($0.new ?? "nothing")"
      }
    }
    let added = "  { path = \"/a\", to = \"http://127.0.0.1:3000\", allow = true },\n"
    let allowing = try generation("", "allow")
    #expect(
      changes(allowing, try generation(added, "allow")) == [
        "routes.lua:2 /a: nothing → { to = \"http://127.0.0.1:3000\", allow = true }"
      ])
    #expect(
      changes(allowing, try generation(added, "deny \"no\"")).last
        == "routes.lua:3 /pay decide: function (routes.lua:2) → another (routes.lua:3)")
  }

  // MARK: access

  @Test func clientsOfANetworkGainAndLoseAccess() throws {
    let closed = [Self.route("/**")]
    let network = { (texts: String...) in
      [Self.route("/**") { $0.openNetworks = texts.compactMap(AddressBlock.init) }]
    }
    #expect(try Self.access(closed, network("10.0.0.0/8")) == ["10.0.0.0/8 gains GET / routes.lua:2"])
    #expect(try Self.access(network("10.0.0.0/8"), closed) == ["10.0.0.0/8 loses GET / routes.lua:2"])
    // A smaller network keeps its access, and the rest of the larger one loses it.
    #expect(
      try Self.access(network("10.0.0.0/8"), network("10.1.0.0/16")) == ["10.0.0.0/8 loses GET / routes.lua:2"])
    #expect(
      try Self.access(network("10.1.0.0/16"), network("10.0.0.0/8")).map { $0.prefix(16) } == ["10.0.0.0/8 gains"])
    // Everybody includes the network.
    #expect(
      try Self.access(network("10.0.0.0/8"), [Self.route("/**", open: true)]) == [
        "anybody gains GET / routes.lua:2"
      ])
    #expect(try Self.access(network("2001:db8::/32"), closed) == ["2001:db8::/32 loses GET / routes.lua:2"])
  }

  /// The network must be that of clients: the addresses of trusted proxies open nothing.
  @Test func networkOfProxiesGainsNothing() throws {
    var generation = Self.generation([Self.route("/**") { $0.openNetworks = Self.blocks("10.0.0.1/32") }])
    generation.gateway.trustedProxies = Self.blocks("10.0.0.1/32")
    let old = Self.generation([Self.route("/**")])
    #expect(try AccessDiff(old: old, new: generation).isEmpty)
  }

  @Test func changesAreReadableAsText() throws {
    let diff = try AccessDiff(
      old: Self.generation([Self.route("/**")]),
      new: Self.generation([Self.route("/**") { $0.openNetworks = Self.blocks("10.0.0.0/8") }]))
    #expect(diff.text(colour: false) == "access\n  10.0.0.0/8  gains  GET /  routes.lua:2")
  }
}
