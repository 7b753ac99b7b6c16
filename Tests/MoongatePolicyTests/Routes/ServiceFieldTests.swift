import Foundation
import MoongateCore
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// The fields of a route that say how a service is reached and what it learns.
@Suite struct ServiceFieldTests {
  static let apps = """
    return apps {
      reports = app {
        public = true, redirect_uris = { "https://reports.example.com/in" },
        access_token = "jwt", audience = { "https://api.example.com" },
      },
      plain = app { public = true, redirect_uris = { "https://plain.example.com/in" } },
    }
    """
  static let accounts = "return accounts { claims = { plan = function(f) return \"new\" end } }"

  /// A folder with one route to `to`, which has these fields from line 3 on.
  static func folder(
    _ fields: String, to: String = "\"https://wiki.internal:8443\"", _ files: [String: String?] = [:]
  ) throws -> TestFolder {
    let routes = "return routes {\n{ path = \"/wiki/**\", to = \(to),\n\(fields) },\n}"
    return try TestFolder(
      ["routes.lua": routes, "apps.lua": apps, "accounts.lua": accounts].merging(files) { $1 })
  }

  private static func route(
    _ fields: String, to: String = "\"https://wiki.internal:8443\"", _ files: [String: String?] = [:]
  ) throws -> Route {
    let loaded = try folder(fields, to: to, files).load(environment: ["WIKI": "hunter2-wiki"])
    return try #require(try loaded.get().routes.routes.first)
  }

  @Test func withoutFieldsNothingDiffersFromTheRequest() throws {
    let route = try Self.route("")
    #expect(route.rewrite.isIdentity && route.hostHeader == .kept && route.encoded.isEmpty)
    #expect(route.openNetworks.isEmpty && route.identity.isUsual && route.bearer == nil)
    #expect(route.responseHeaders.isEmpty && route.frames.isEmpty && route.errorPages == nil)
    #expect(route.retry == nil && route.balance == .first && route.health == nil && route.rate == nil)
    #expect(route.upstreams == [Upstream(isSecure: true, host: "wiki.internal", port: 8443)])
  }

  @Test func pathAndHostAreRead() throws {
    let route = try Self.route(
      "strip = \"/wiki\", host_header = \"upstream\", encoded = { \"slash\", \"empty\" }",
      to: "{ \"http://a:3000/base%20x\", \"http://b:3000/base%20x/\" }")
    #expect(route.rewrite == PathRewrite(strip: "/wiki", base: "/base%20x"))
    #expect(route.hostHeader == .upstream && route.encoded == [.slash, .empty])
    #expect(route.upstreams.map(\.description) == ["http://a:3000", "http://b:3000"])
    #expect(try Self.route("host_header = \"wiki.internal:81\"").hostHeader == .named("wiki.internal:81"))
    #expect(try Self.route("", to: "\"http://a/\"").rewrite.base.isEmpty)
  }

  @Test func openNetworksAreRead() throws {
    let route = try Self.route(
      "allow = { networks = { \"10.1.2.3/8\", \"2001:db8::/32\" } }, decide = function(f) return allow end")
    #expect(route.openNetworks.map(\.description) == ["10.0.0.0/8", "2001:db8::/32"])
    #expect(!route.isOpen && route.decide != nil && route.flow == "login")
  }

  @Test func identityIsRead() throws {
    let identity = try Self.route(
      """
      identity = {
        user = "X-WEBAUTH-USER", email = { "X-Email" }, name = { "Remote-User", value = "{last_name}, {first_name}" },
        groups = { "X-Forwarded-Groups", value = "{groups} {claim.plan}" },
        basic = { user = "wiki-{username}", password = env "WIKI" },
      },
      encoding = "rfc2047"
      """
    ).identity
    typealias Header = ServiceIdentity.Header
    #expect(identity.headers[.user] == Header(name: "X-WEBAUTH-USER", value: IdentityTemplate([.id])))
    #expect(identity.headers[.email] == Header(name: "X-Email", value: IdentityTemplate([.email])))
    #expect(
      identity.headers[.name]
        == Header(name: "Remote-User", value: IdentityTemplate([.lastName, .text(", "), .firstName])))
    #expect(
      identity.headers[.groups]
        == Header(name: "X-Forwarded-Groups", value: IdentityTemplate([.groups, .text(" "), .claim("plan")])))
    #expect(identity.headers[.phone] == nil && identity.encoding == .rfc2047)
    #expect(identity.basic?.user == IdentityTemplate([.text("wiki-"), .username]))
    #expect(identity.basic?.password.reveal() == "hunter2-wiki")
  }

  @Test func headersOfResponsesAreRead() throws {
    let route = try Self.route(
      "bearer = \"reports\", response_headers = { [\"X-Robots-Tag\"] = \"none\", Server = false }")
    #expect(route.bearer == "reports")
    #expect(route.responseHeaders.map(\.name) == ["Server", "X-Robots-Tag"])
    #expect(route.responseHeaders.map(\.value) == [nil, "none"])
  }

  @Test func upstreamSettingsAreRead() throws {
    let route = try Self.route(
      """
      retry = { on = { "connect", "502", "503" }, times = 2 }, balance = "least_busy",
      health = { path = "/healthz?full=0" }, http2 = true
      """, to: "{ \"https://a:8443\", \"https://b:8443\", \"h2c://c:9000\" }")
    #expect(route.retry == RetryRule(onConnect: true, statuses: [502, 503], times: 2))
    #expect(route.balance == .leastBusy)
    #expect(route.health == HealthCheck(path: "/healthz?full=0", interval: .seconds(10)))
    #expect(route.upstreams.map(\.usesHTTP2) == [true, true, true])
    #expect(route.upstreams.map(\.isSecure) == [true, true, false])
    #expect(try Self.route("", to: "\"h2c://c:9000\"").upstreams.map(\.description) == ["h2c://c:9000"])
    let single = try Self.route("retry = { on = { \"connect\" } }")
    #expect(single.retry == RetryRule(onConnect: true, statuses: [], times: 1))
  }

  @Test(
    arguments: [
      ("{ \"100/s\" }", 100, 1, .account), ("{ \"1000/m\", per = \"ip\" }", 1_000, 60, .ip),
      ("{ \"5000/10m\", per = \"token\" }", 5_000, 600, .token), ("{ \"1/1d\", per = \"global\" }", 1, 86_400, .global),
    ] as [(String, Int, Int64, RouteRate.Subject)])
  func rateIsRead(_ rate: String, _ count: Int, _ seconds: Int64, _ subject: RouteRate.Subject) throws {
    #expect(
      try Self.route("rate = \(rate)").rate == RouteRate(count: count, window: .seconds(seconds), subject: subject))
  }

  @Test func framesAndErrorPagesAreRead() throws {
    let fields = "frames = { \"https://portal.example.com/\", \"http://localhost:9000\" }, error_pages = \"errors\""
    let files = ["pages/errors/403.mustache": "No", "pages/errors/notes.txt": "x", "pages/others/500.mustache": "x"]
    let route = try Self.route(fields, files)
    #expect(route.frames == ["https://portal.example.com", "http://localhost:9000"] && route.errorPages == "errors")
    let folder = try Self.folder(fields, files)
    let first = try folder.generation()
    #expect(first.pages == [PageFile(name: "errors/403.mustache", bytes: Array("No".utf8))])
    let before = FolderSignature(folder: folder.scratch.path)
    try folder.scratch.write("Never", to: "pages/errors/error.mustache")
    #expect(try folder.generation().id != first.id)
    #expect(FolderSignature(folder: folder.scratch.path) != before, "a new template is not noticed")
  }

  // MARK: upstream_tls

  private static let trusted = """
    upstream_tls = {
    ca = "tls/ca.pem",
    cert = "tls/client.pem",
    key = file "tls/client.key",
    name = "wiki.example.com" }
    """
  private static let files: [String: String?] = [
    "tls/ca.pem": TestCertificates.authority, "tls/client.pem": TestCertificates.client,
    "tls/client.key": TestCertificates.clientKey,
  ]

  @Test func certificatesAreReadFromTheFolder() throws {
    let trust = try #require(try Self.route(Self.trusted, Self.files).upstreams[0].trust)
    #expect(trust.authorities == Array(TestCertificates.authority.utf8))
    #expect(trust.certificate == Array(TestCertificates.client.utf8))
    let key = String(decoding: trust.key ?? [], as: UTF8.self)
    #expect(key.hasPrefix("-----BEGIN") && key.hasSuffix("-----") && trust.name == "wiki.example.com")
  }

  /// The key is a secret: only its owner may read it, and the id of the generation does not depend on it.
  @Test func keyIsASecretAndTheAuthoritiesAreNot() throws {
    let folder = try Self.folder(Self.trusted, Self.files)
    let first = try folder.generation()
    #expect(first.secretFiles.keys.sorted() == [folder.scratch.path("tls/client.key")])
    try folder.scratch.write(TestCertificates.authority + "\n", to: "tls/ca.pem")
    #expect(try folder.generation().id != first.id)
    try folder.scratch.setMode(0o644, of: "tls/client.key")
    let told = folder.problems()
    #expect(
      told.count == 1 && told[0].hasPrefix("routes.lua:6: routes[1].upstream_tls.key: tls/client.key: has mode 644"),
      "\(told)")
  }

  /// Attack: whoever reads a log, a crash report or a diff has the key of the gateway, or the password of a service.
  @Test func keysAndPasswordsAreNeverPrinted() throws {
    let basic = "identity = { basic = { user = \"{email}\", password = env \"WIKI\" } },"
    let route = try Self.route(basic + Self.trusted, Self.files)
    let secret = try #require(TestCertificates.clientKey.split(separator: "\n").dropFirst().first)
    var dumped = ""
    dump(route, to: &dumped)
    for text in ["\(route)", String(reflecting: route), dumped] {
      #expect(!text.contains("hunter2") && !text.contains(secret))
      // The bytes of the first characters of the key, as an array prints them.
      #expect(!text.contains(Array(secret.utf8.prefix(8)).map(String.init).joined(separator: ", ")))
    }
    #expect(!dumped.contains("authorities"))
  }

  @Test(
    arguments: [
      ([:], "", []),
      (["tls/ca.pem": nil], "4: routes[1].upstream_tls.ca: tls/ca.pem: the file does not exist", []),
      (
        ["tls/ca.pem": "not PEM"],
        "4: routes[1].upstream_tls.ca: tls/ca.pem holds no certificate in PEM format, or one that is damaged", []
      ),
      (
        ["tls/ca.pem": TestCertificates.authority.replacing("MIIBfDCCA", with: "MIIBfDCCB")],
        "4: routes[1].upstream_tls.ca: tls/ca.pem holds no certificate in PEM format, or one that is damaged", []
      ),
      (
        ["tls/client.pem": TestCertificates.clientKey],
        "5: routes[1].upstream_tls.cert: tls/client.pem holds no certificate in PEM format, or one that is damaged", []
      ),
      (
        ["tls/client.key": TestCertificates.client],
        "6: routes[1].upstream_tls.key: is not a private key in PEM format without a password", []
      ),
      (
        ["tls/client.key": TestCertificates.lockedKey],
        "6: routes[1].upstream_tls.key: is not a private key in PEM format without a password", []
      ),
      (
        ["tls/client.key": TestCertificates.otherKey],
        "6: routes[1].upstream_tls.key: does not belong to the first certificate in `cert`", []
      ),
      ([:], "5: routes[1].upstream_tls.cert: requires `key`, which is missing", ["key = file \"tls/client.key\","]),
      ([:], "6: routes[1].upstream_tls.key: requires `cert`, which is missing", ["cert = \"tls/client.pem\","]),
    ] as [([String: String?], String, [String])])
  func badCertificatesAreRefused(_ files: [String: String?], _ problem: String, _ without: [String]) throws {
    let fields = without.reduce(Self.trusted) { $0.replacing($1, with: "") }
    let told = try Self.folder(fields, Self.files.merging(files) { $1 }).problems()
    #expect(told == (problem.isEmpty ? [] : ["routes.lua:" + problem]), "\(told)")
  }

  @Test(arguments: [
    ("{}", "sets nothing: name `ca`, `cert` with `key`, or `name`, or leave it out"),
    (
      "{ name = \"10.0.0.5\" }",
      "\"10.0.0.5\" is not a host name in lower case, without a port, such as \"wiki.internal\""
    ),
    (
      "{ name = \"Wiki:443\" }",
      "\"Wiki:443\" is not a host name in lower case, without a port, such as \"wiki.internal\""
    ),
  ]) func certificateNeedsAName(_ table: String, _ problem: String) throws {
    let path = table == "{}" ? "upstream_tls" : "upstream_tls.name"
    let told = try Self.folder("upstream_tls = \(table)").problems()
    #expect(told == ["routes.lua:3: routes[1].\(path): \(problem)"], "\(told)")
  }
}
