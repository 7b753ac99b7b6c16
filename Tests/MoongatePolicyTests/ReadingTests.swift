import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// Special cases of reading: lines, layers, and routes that shadow others.
@Suite struct ReadingTests {
  // MARK: lines

  private static func lines(_ text: String) -> [SourceMap.Constructor] { SourceMap(Array(text.utf8)).constructors }

  @Test func linesOfFields() {
    let map = Self.lines(
      """
      -- { comment }
      local s, l = "{ a = 1 }", [==[ { ]] ]==]
      return policy "x" {
        a = 1,
        ["b"] =
          2;
        [3] = 3, 'item', f
        , { c = function(f) return { d = 1, f.x
          , e } end },
        g = { [f(1, 2)] = 1, h == 2, i = if_ },
      }
      """)
    #expect(map.count == 4)
    #expect(
      map[0].line == 3 && map[0].named == ["a": 4, "b": 5, "g": 10] && map[0].numbered == [3: 7]
        && map[0].items == [7, 7, 8])
    #expect(map[1].named == ["c": 8] && map[1].items.isEmpty)
    #expect(map[2].named == ["d": 8] && map[2].items == [8, 9])
    #expect(map[3].named == ["i": 10] && map[3].items == [10])
  }

  @Test(arguments: [
    ("return {}", "return _moongate_at(0,{})"), ("f {}", "f (_moongate_at(0,{}))"),
    ("f'x'{}{}", "f'x'(_moongate_at(0,{}))(_moongate_at(1,{}))"),
    ("x = { a = { 1 } }", "x = _moongate_at(0,{ a = _moongate_at(1,{ 1 }) })"),
    ("return 1 + #{}", "return 1 + #_moongate_at(0,{})"),
    ("t[1]{}; f(){}; x:m{}", "t[1](_moongate_at(0,{})); f()(_moongate_at(1,{})); x:m(_moongate_at(2,{}))"),
    ("if x then return {} end", "if x then return _moongate_at(0,{}) end"),
    ("--[[ {} ]] local s = [[{}]] .. '{\\'}'", "--[[ {} ]] local s = [[{}]] .. '{\\'}'"),
  ]) func instruments(_ text: String, _ expected: String) {
    #expect(String(decoding: SourceMap(Array(text.utf8)).instrumented, as: UTF8.self) == expected)
  }

  @Test(arguments: [
    "{", "}", "{{{", "}}}", "[=[", "\"", "'\\", "{ [", "{ ] }", "function(", "end end", "{ a = function( }", "--[==[",
    "0x", "1e+", "{,,;}", "]]",
    "[", "{ x = ",
  ])
  func anyTextIsMapped(_ text: String) { #expect(SourceMap(Array(text.utf8)).instrumented.count >= text.utf8.count) }

  // MARK: layers

  @Test func tablesMergeAndListsReplace() throws {
    let folder = try TestFolder([
      "policies/phone_otp.lua":
        "return policy \"phone_otp\" {\n  code = { ttl = \"5m\" },\n  timers = { resend_after = { \"30s\" } },\n  unknown_account = \"conceal\",\n}"
    ])
    let policy = try #require(try folder.generation().policies[ProviderName(test: "phone_otp")])
    #expect(policy.code == CodeRule(length: 6, alphabet: .digits, lifetime: .seconds(300)))
    #expect(policy.resendAfter == [.fixed(.seconds(30))])
    #expect(policy.unknownAccount == .conceal)
    #expect(
      policy.limits.map(\.name) == [
        "hard", "send", "send_day", "send_ip", "send_network", "send_prefix", "sms_global", "verify",
      ])
    #expect(policy.locations["code.ttl"]?.description == "policies/phone_otp.lua:2")
    #expect(policy.locations["code.length"]?.description == "Plugins/PhoneOTP/policy.lua:4")
    #expect(policy.locations["timers.resend_after"]?.description == "policies/phone_otp.lua:3")
  }

  @Test func beginsAndRegistrationsCountAll() throws {
    let policy = try TestFolder([
      "policies/phone_otp.lua": """
      return policy "phone_otp" { limits = {
        a = { on = "begin", per = "ip", max = 1, window = "1m" }, b = { on = "register", per = "global", max = 2, window = "1h", counts = "all" },
        c = { on = "send", per = "phone", max = 1, window = "1m" }, d = { on = "verify", per = "phone", max = 1, window = "1m", lock = "5m" },
      } }
      """
    ]).generation().policies[ProviderName(test: "phone_otp")]
    #expect(policy?.limits.map(\.action) == [.begin, .register, .send, .verify])
    #expect(policy?.limits.map(\.counts) == [.all, .all, .all, .failures])
  }

  @Test(arguments: [
    (
      #"on = "begin", per = "ip", max = 1, window = "1m", counts = "failures""#,
      "limits.a.counts: every begin counts, and none of them is a failure: remove it, or write counts = \"all\""
    ),
    (
      #"on = "register", per = "ip", max = 1, counts = "consecutive_failures""#,
      "limits.a.counts: every register counts, and none of them is a failure: remove it, or write counts = \"all\""
    ),
    (
      #"on = "register", per = "ip", max = 1, window = "1m", disable = true"#,
      "limits.a.disable: a limit on register cannot disable a credential: remove it or use `lock`"
    ),
    (
      #"on = "regster", per = "ip", max = 1, window = "1m""#,
      "limits.a.on: \"regster\" is not known; did you mean `register`?"
    ),
    (#"on = "begin", per = "ip", max = 1"#, "limits.a.window: is missing"),
  ]) func aBeginHasNoOutcome(limit: String, problem: String) throws {
    let problems = try TestFolder([
      "policies/phone_otp.lua": "return policy \"phone_otp\" { limits = { a = { \(limit) } } }"
    ]).problems()
    #expect(
      problems.count == 1 && problems.allSatisfy { $0.contains("policies/phone_otp.lua:1") && $0.contains(problem) },
      "\(problems)")
  }

  @Test func flowLimitsAreConfigurable() throws {
    func limits(_ text: String) throws -> ConnectionLimits {
      try TestFolder(["gateway.lua": TestFolder.gateway.replacing("region = \"IN\",", with: "region = \"IN\", \(text)")]
      ).generation().gateway
        .connectionLimits
    }
    #expect(
      try limits("")
        == ConnectionLimits(
          connections: 50_000, connectionsPerAddress: 1_000, flows: FlowBound(count: 100_000, bytes: 64 << 20)))
    #expect(try limits("limits = { per_ip = { requests = \"5/s\" } },").connectionsPerAddress == 1_000)
    #expect(
      try limits("limits = { flows = { count = 2000, bytes = \"1GiB\" } },").flows
        == FlowBound(count: 2_000, bytes: 1 << 30))
    #expect(try limits("limits = { flows = { count = 2000 } },").flows == FlowBound(count: 2_000, bytes: 64 << 20))
    for (text, sentence) in [
      (
        "limits = { flows = { count = 0 } },",
        "limits.flows.count: must be a whole number from 1000 to 10000000, not the number 0"
      ),
      (
        "limits = { flows = { bytes = \"64MB\" } },",
        "limits.flows.bytes: \"64MB\" is not a size; write \"64KiB\", \"64MiB\" or \"1GiB\""
      ),
      (
        "limits = { flows = { bytes = \"1KiB\" } },",
        "limits.flows.bytes: must be from 1048576 to 1099511627776 bytes, not \"1KiB\""
      ),
      ("limits = { flows = { cuont = 5000 } },", "limits.flows.cuont: unknown field; did you mean `count`?"),
    ] {
      let problems = try TestFolder([
        "gateway.lua": TestFolder.gateway.replacing("region = \"IN\",", with: "region = \"IN\", \(text)")
      ]).problems()
      #expect(problems.contains { $0.contains(sentence) }, "\(problems)")
    }
  }

  @Test func limitsReplaceAll() throws {
    let folder = try TestFolder([
      "policies/phone_otp.lua":
        "return policy \"phone_otp\" {\n  limits = {\n    a = { on = \"send\", per = \"phone\", max = 1, window = \"1m\" },\n    b = { on = \"verify\", per = \"identifier\", max = 2, counts = \"consecutive_failures\", lock = \"5m\" },\n  },\n}"
    ])
    let policy = try #require(try folder.generation().policies[ProviderName(test: "phone_otp")])
    #expect(policy.limits.map(\.name) == ["a", "b"])
    #expect(policy.limits.map(\.counts) == [.all, .consecutiveFailures])
    #expect(policy.limits[1].lock == [.fixed(.seconds(300))] && policy.limits[1].window == nil)
    #expect(policy.limits.map(\.location.line) == [3, 4])
  }

  @Test(arguments: LimitKey.allCases) func everyKeyIsRead(_ key: LimitKey) throws {
    // Two keys need databases.
    let geo = "region = \"IN\", geo = { database = \"geo.mmdb\", asn = \"geo.mmdb\" },"
    let folder = try TestFolder([
      "gateway.lua": TestFolder.gateway.replacing("region = \"IN\",", with: geo),
      "policies/phone_otp.lua":
        "return policy \"phone_otp\" { limits = { a = { on = \"send\", per = \"\(key.rawValue)\", max = 1, window = \"1m\" }, v = { on = \"verify\", per = \"phone\", max = 1, window = \"1m\" } } }",
    ])
    let place = ClientPlace(country: "IN", asn: 64_500)
    try GeoFile(["10.0.0.0/8": place], builtAt: ManualClock.start).write(to: folder.scratch.path("geo.mmdb"))
    #expect(try folder.generation().policies[ProviderName(test: "phone_otp")]?.limits.first?.key == key)
  }

  // MARK: flows, routes, gateway

  private static func remember(_ session: String) throws -> TestFolder {
    try TestFolder([
      "flows/login.lua":
        "return flow \"login\" { account = \"existing\", steps = { \"phone_otp\" },\nsession = { \(session) } }"
    ])
  }

  @Test func timesOfUsersWhoStaySignedIn() throws {
    let folder = try Self.remember("remember = { lifetime = \"90d\", idle = \"30d\" }")
    let session = try #require(try folder.generation().flows["login"]).session
    #expect(session.remember == RememberedTimes(lifetime: .seconds(90 * 86_400), idle: .seconds(30 * 86_400)))
    #expect(session.lifetime == .seconds(43_200) && session.longestLifetime == .seconds(90 * 86_400))
  }

  @Test(arguments: [
    ("remember = true", "2: session.remember: must be a table, as in `{ … }`, not true"),
    ("remember = { lifetime = \"90d\" }", "2: session.remember.idle: is missing"),
    (
      "remember = { lifetime = \"1h\", idle = \"30d\" }",
      "2: session.remember.lifetime: must not be shorter than session.lifetime, which is \"12h\""
    ),
    (
      "idle = \"2h\", remember = { lifetime = \"90d\", idle = \"90m\" }",
      "2: session.remember.idle: must not be shorter than session.idle, which is \"2h\""
    ),
    ("remember = { lifetime = \"90d\", idle = \"30d\", ticked = true }", "2: session.remember.ticked: unknown field"),
  ])
  func badTimesOfUsersWhoStaySignedIn(_ session: String, _ problem: String) throws {
    let problems = try Self.remember(session).problems()
    #expect(problems.contains { $0.hasPrefix("flows/login.lua:\(problem)") }, "\(problems)")
  }

  @Test func choicesThatAreNotConfiguredAreLeftOut() throws {
    let folder = try TestFolder([
      "flows/login.lua": """
      return flow "login" {
        account = "existing",
        steps = {
          any_of { "phone_otp", "google_oauth" },
          { any_of { "email_code", "pin" }, skippable = true, when = function(f) return true end },
          "phone_otp",
        },
        lifetime = "15m", session = { lifetime = "12h", idle = "1h" }, next = { new = "/profile-setup", returning = "/home" },
      }
      """
    ])
    let flow = try #require(try folder.generation().flows["login"])
    let phone = ProviderName(test: "phone_otp")
    #expect(
      flow.steps == [
        StepRule(choices: [phone], isSkippable: false, when: nil),
        StepRule(
          choices: [ProviderName(test: "email_code")], isSkippable: true,
          when: FunctionName("flows/login.steps[2].when")),
        StepRule(choices: [phone], isSkippable: false, when: nil),
      ])
    #expect(
      flow.session == SessionRule(lifetime: .seconds(43_200), idle: .seconds(3600)) && flow.lifetime == .seconds(900))
    #expect(flow.next == NextPaths(new: "/profile-setup", returning: "/home") && flow.account == .existing)
  }

  @Test(arguments: [
    (
      "{ \"email_code\", skippable = true }, { \"phone_otp\", when = function(f) return true end }",
      [
        "flows/login.lua:3: steps: every step has `when` or is skippable: if none of them runs, the flow verifies nothing"
      ]
    ),
    (
      "{ \"phone_otp\" }, { \"email_code\" },\n any_of { \"phone_otp\", \"email_code\" }",
      [
        "flows/login.lua:4: steps[3]: repeats steps[1], which has been passed by then (`email_code` and `phone_otp`): remove it"
      ]
    ),
    ("{ \"phone_otp\", skippable = true }, { \"phone_otp\" }", []),
    ("{ \"phone_otp\", when = function(f) return true end }, { \"email_code\" }", []),
  ]) func flowWithoutAProofGivesAWarning(_ steps: String, _ warnings: [String]) throws {
    let folder = try TestFolder([
      "flows/login.lua": "return flow \"login\" {\n  account = \"any\",\n  steps = { \(steps) },\n}"
    ])
    #expect(try folder.generation().warnings.map(\.description) == warnings)
  }

  /// The flow of a route must provide what the route requires.
  @Test(
    arguments: [
      (
        "phone_otp", "", nil,
        "sends users who have not passed `phone_otp` to the flow `step_up`, but flows/step_up.lua does not exist: they could never get access"
      ),
      (
        "phone_otp", "", "{ \"email_code\" }",
        "sends users who have not passed `phone_otp` to the flow `step_up`, which has no step of it: they could never get access"
      ),
      ("phone_otp", "", "any_of { \"email_code\", \"phone_otp\" }", nil),
      ("phone_otp", "flow = \"step_up\",", "{ \"phone_otp\" }", nil),
    ] as [(String, String, String?, String?)])
  func aRouteThatLeadsNowhere(_ provider: String, _ flow: String, _ steps: String?, _ warning: String?) throws {
    let folder = try TestFolder([
      "routes.lua":
        "return routes {\n  { path = \"/**\", to = \"http://127.0.0.1:3000\", \(flow) require = { passed = \"\(provider)\" } },\n}",
      "flows/step_up.lua": steps.map {
        "return flow \"step_up\" { purpose = \"step_up\", account = \"existing\", steps = { \($0) } }"
      },
    ])
    #expect(
      try folder.generation().warnings.map(\.description)
        == (warning.map { ["routes.lua:2: require.passed: \($0)"] } ?? []))
  }

  @Test func aFlowThatCanBeSkippedWhole() throws {
    let folder = try TestFolder([
      "flows/login.lua":
        "return flow \"login\" {\n  account = \"any\",\n  steps = { { \"phone_otp\", skippable = true } },\n}"
    ])
    #expect(
      folder.problems() == [
        "flows/login.lua:3: steps: every step is skippable, so the flow would verify nothing: remove `skippable` from at least one step"
      ])
  }

  /// A mistake under `providers` is one line, and not repeated for each flow.
  @Test func misspelledProviderIsReportedOnce() throws {
    let folder = try TestFolder(["gateway.lua": TestFolder.gateway.replacing("phone_otp", with: "phone_opt")])
    #expect(
      folder.problems() == [
        "gateway.lua:4: providers.phone_opt: unknown provider `phone_opt`; did you mean `phone_otp`?"
      ])
  }

  @Test func severalRootDomainsAreRead() throws {
    let gateway = TestFolder.gateway.replacing("http://localhost:8080", with: "https://auth.example.com").replacing(
      "region", with: "domains = { \"example.org\", \"example.com\" }, region"
    ).replacing("outbox()", with: "outbox { allow_public = true }")
    let route = { (host: String) in "{ host = \"\(host)\", path = \"/**\", to = \"http://127.0.0.1:3000\" }," }
    let folder = try TestFolder([
      "gateway.lua": gateway,
      "routes.lua":
        "return routes { \(route("app.example.org")) \(route("example.com")) \(route("auth.example.com")) }",
    ])
    let settings = try folder.generation().gateway
    #expect(settings.domains == ["example.org", "example.com"] && settings.cookieDomain == "example.com")
    for (host, domain) in [
      ("app.example.org", "example.org"), ("example.org", "example.org"), ("app.example.com", nil),
      ("evil-example.org", nil),
      ("example.org.evil", nil),
    ] { #expect(settings.furtherDomain(of: host) == domain, "\(host)") }
    let outside = try TestFolder([
      "gateway.lua": gateway, "routes.lua": "return routes { \(route("app.example.net")) }",
    ])
    #expect(
      outside.problems() == [
        "routes.lua:1: routes[1].host: no session can reach app.example.net: it is neither public_url's host (auth.example.com) nor under one of domains (example.org, example.com)"
      ])
  }

  @Test func routesAreRead() throws {
    let folder = try TestFolder([
      "gateway.lua": TestFolder.gateway.replacing("http://localhost:8080", with: "https://wallet.example.com")
        .replacing(
          "region", with: "cookie_domain = \"example.com\", region"
        ).replacing("outbox()", with: "outbox { allow_public = true }"),
      "routes.lua": """
      return routes {
        { host = "pay.example.com", path = "/pay/**", methods = { "POST", "GET" }, to = { "https://a.internal", "http://[::1]:3001" },
          require = { passed = "phone_otp", within = "5m" }, timeout = "5s", websocket = true, headers = { ["X-Tenant"] = "demo" }, body = "64MiB",
          service_worker = true, decide = function(f) return allow end },
        { path = "/receipts/*/x", to = "http://127.0.0.1:3000", require = { email_verified = true } },
        { path = "/", to = "http://127.0.0.1:3000", allow = true },
      }
      """,
    ])
    let routes = try folder.generation().routes.routes
    #expect(routes.count == 3)
    #expect(routes[0].host == "pay.example.com" && routes[0].methods == ["POST", "GET"])
    #expect(
      routes[0].upstreams == [
        Upstream(isSecure: true, host: "a.internal", port: 443), Upstream(isSecure: false, host: "[::1]", port: 3001),
      ])
    #expect(routes[0].requirement == .passed(ProviderName(test: "phone_otp"), within: .seconds(300)))
    #expect(
      routes[0].timeout == .seconds(5) && routes[0].allowsUpgrade && routes[0].allowsServiceWorker
        && routes[0].bodyLimit == 64 << 20
        && routes[0].headers.map(\.name) == ["X-Tenant"])
    #expect(routes[0].decide == FunctionName("routes[1].decide") && routes[0].location.line == 2)
    #expect(routes[0].path.segments == [.glob(Array("pay".utf8)), .anySegments])
    #expect(
      routes[1].requirement == .emailVerified && routes[1].bodyLimit == nil && !routes[1].allowsUpgrade
        && !routes[1].allowsServiceWorker
        && routes[1].timeout == .seconds(30))
    #expect(routes[2].isOpen && routes[2].path.segments == [.glob([])])
  }

  @Test(arguments: [
    ("", "", BodyRate.standard), ("", "body_rate = \"2KiB/5s\"", BodyRate(bytes: 2048, window: .seconds(5))),
    ("", "body_rate = false", nil),
    ("limits = { body_rate = \"1B/1m\" },", "", BodyRate(bytes: 1, window: .seconds(60))),
    ("limits = { body_rate = false },", "", nil),
    ("limits = { body_rate = false },", "body_rate = \"1MiB/1s\"", BodyRate(bytes: 1 << 20, window: .seconds(1))),
  ]) func aRoutesBodyRateIsItsOwnOrTheGateways(gateway: String, route: String, rate: BodyRate?) throws {
    let folder = try TestFolder([
      "gateway.lua":
        "return gateway { \(gateway) public_url = \"http://localhost:8080\", providers = { phone_otp = { sms = outbox() }, email_code = { mail = outbox() } } }",
      "routes.lua": "return routes { { path = \"/**\", to = \"http://127.0.0.1:3000\", \(route) } }",
    ])
    #expect(try folder.generation().routes.routes[0].bodyRate == rate)
  }

  private static func pattern(_ text: String) -> [PathPattern.Segment] {
    text.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map {
      $0 == "**" ? .anySegments : .glob(Array($0.utf8))
    }
  }

  @Test(arguments: [
    ("/**", "/x", true), ("/**", "/", true), ("/**", "/**", true), ("/x/**", "/x", true), ("/x/**", "/x/y/z", true),
    ("/x/**", "/x/*/z", true),
    ("/x/**", "/xy", false),
    ("/*", "/a", true), ("/*", "/a/b", false), ("/a*", "/ab*", true), ("/ab*", "/a*", false), ("/*b", "/ab", true),
    ("/*/b", "/a/b", true),
    ("/*/b", "/**/b", false),
    ("/**/b", "/a/**/b", true), ("/a/**/b", "/**/b", false), ("/x", "/x", true), ("/x", "/X", false),
    ("/x", "/*", false),
    ("/**/a/**", "/b/a/c", true),
  ]) func patternsThatHideOthers(_ wide: String, _ narrow: String, _ covers: Bool) {
    #expect(RouteShadow.covers(Self.pattern(wide), Self.pattern(narrow)) == covers)
  }

  @Test(arguments: [
    (
      "{ path = '/x', to = U, methods = { 'GET' } }, { path = '/x', to = U, methods = { 'POST' } }, { path = '/x', to = U, methods = { 'GET', 'POST' } }",
      true
    ),
    ("{ path = '/x', to = U, methods = { 'GET' } }, { path = '/x', to = U, methods = { 'HEAD' } }", true),
    ("{ path = '/x', to = U, methods = { 'GET' } }, { path = '/x', to = U }", false),
    ("{ path = '/x', to = U, host = 'localhost' }, { path = '/x', to = U }", false),
    ("{ path = '/x', to = U }, { path = '/x', to = U, host = 'localhost' }", true),
  ]) func routesThatCanNeverMatch(_ entries: String, _ isHidden: Bool) throws {
    let problems = try TestFolder(["routes.lua": "local U = 'http://127.0.0.1:3000'\nreturn routes { \(entries) }"])
      .problems()
    #expect(problems.contains { $0.contains("can never match") } == isHidden)
    #expect(problems.count == (isHidden ? 1 : 0))
  }

  @Test func theWholeGatewayIsRead() throws {
    let folder = try TestFolder([
      "gateway.lua": """
      return gateway {
        listen = "[::1]:8443", admin = "127.0.0.1:0", public_url = "https://auth.example.com:8443", store = "postgres://db/x", key = env "KEY", region = "NL",
        trusted_proxies = { "10.1.2.3/8", "::1", "192.0.2.1" }, redirect_hosts = { "App.example.com", "b.example.com:8443" }, cookie_domain = "example.com",
        service = "Demo", brand = { name = "Demo", logo = "logo.svg", primary = "#0D7377", support = "mailto:a@b" }, risk_budget = "0.5% per 30d",
        limits = { connections = 10, per_ip = { connections = 5, requests = "100/s" } }, cors_origins = { "https://spa.example.com" },
        providers = { phone_otp = { sms = outbox { allow_public = true } }, email_code = { mail = outbox { allow_public = true }, sender = "a@b", api_key = file "key.txt" } },
      }
      """, "key.txt": "s3cret\n", "logo.svg": "<svg/>",
    ])
    try folder.scratch.setMode(0o600, of: "key.txt")
    guard case .success(let generation) = folder.load(environment: ["KEY": "k"]) else {
      Issue.record("\(folder.problems(environment: ["KEY": "k"]))")
      return
    }
    let gateway = generation.gateway
    #expect(gateway.listen == ListenAddress(host: "::1", port: 8443) && gateway.admin.port == 0)
    #expect(gateway.publicURL == PublicURL(isSecure: true, host: "auth.example.com", port: 8443))
    #expect(
      gateway.store == .postgres(url: "postgres://db/x") && gateway.key == .value(SecretText("k"))
        && gateway.region == "NL")
    #expect(
      gateway.trustedProxies.map(\.prefix) == [8, 128, 32] && gateway.trustedProxies[0].network == [10, 0, 0, 0])
    #expect(
      gateway.redirectHosts == ["app.example.com", "b.example.com:8443"] && gateway.cookieDomain == "example.com")
    var brand = Brand(name: "Demo", logo: "logo.svg", primary: "#0D7377", support: "mailto:a@b")
    brand.logoFile = PageFile(name: "logo.svg", bytes: Array("<svg/>".utf8))
    #expect(gateway.brand == brand && gateway.riskBudget == 0.005)
    #expect(
      gateway.connectionLimits
        == ConnectionLimits(connections: 10, connectionsPerAddress: 5, requestsPerSecondPerAddress: 100))
    #expect(gateway.corsOrigins == ["https://spa.example.com"])
    let email = gateway.providers[ProviderName(test: "email_code")]
    #expect(
      email?.texts == ["sender": "a@b"] && email?.secrets["api_key"]?.reveal() == "s3cret"
        && email?.deliveries == ["mail": .outbox])
    #expect(gateway.locations["providers.phone_otp.sms"]?.line == 6)
  }
}
