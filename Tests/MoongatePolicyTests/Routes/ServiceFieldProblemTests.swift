import MoongateCore
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// Mistakes in the fields of a route about its service: the line, the field, and what to write.
@Suite struct ServiceFieldProblemTests {
  private static func check(_ fields: String, _ expected: [String], to: String? = nil) throws {
    let folder =
      try to.map { try ServiceFieldTests.folder(fields, to: $0) } ?? ServiceFieldTests.folder(fields)
    let told = folder.problems(environment: ["WIKI": "a secret", "LINES": "a\nb"])
    #expect(told == expected.map { "routes.lua:" + $0 }, "\(told)")
  }

  // MARK: where requests go

  @Test(arguments: [
    (
      "\"http://a:3000/base?x=1\"",
      "\"http://a:3000/base?x=1\" must have no query and no fragment: those of each request are sent on; remove all from ? or # on"
    ),
    (
      "\"http://a:3000/#top\"",
      "\"http://a:3000/#top\" must have no query and no fragment: those of each request are sent on; remove all from ? or # on"
    ),
    (
      "\"ftp://a\"",
      "\"ftp://a\" is not a valid upstream, such as \"http://127.0.0.1:3000\": http, https or h2c, a host, a port, and perhaps a path"
    ),
    (
      "\"http://u:p@a\"",
      "\"http://u:p@a\" is not a valid upstream, such as \"http://127.0.0.1:3000\": http, https or h2c, a host, a port, and perhaps a path"
    ),
  ]) func upstreamIsAnOriginWithAPath(_ to: String, _ problem: String) throws {
    try Self.check("", ["2: routes[1].to: " + problem], to: to)
  }

  /// Attack: a base path that the service reads differently, such as `/public/..`, leads all requests elsewhere.
  @Test(arguments: [
    "http://a/x//y", "http://a/x//", "http://a//", "http://a/../y", "http://a/x/%2e%2e", "http://a/x%2Fy",
    "http://a/x;y", "http://a/x\\\\y", "http://a/caf\u{e9}", "http://a/x y", "http://a/%zz",
  ]) func basePathIsInNormalForm(_ text: String) throws {
    let shown = text.replacing("\\\\", with: "\\")
    try Self.check(
      "",
      [
        "2: routes[1].to: \"\(shown)\" has a path that programs can read differently: write it without empty segments, `.`, `..`, ; and \\, and percent-encode all but ASCII"
      ], to: "\"\(text)\"")
  }

  @Test func upstreamsOfARouteShareOnePath() throws {
    try Self.check(
      "",
      [
        "3: routes[1].to: \"http://b/y\" has another path than the upstream before it: all upstreams of a route have the same one"
      ], to: "{ \"http://a/x\",\n\"http://b/y\" }")
  }

  @Test func http2AndCertificatesNeedHTTPS() throws {
    try Self.check(
      "http2 = true",
      [
        "2: routes[1].to: \"http://a\" is not https://, where HTTP/2 is negotiated: for HTTP/2 without TLS write \"h2c://…\" and leave `http2` out"
      ], to: "{ \"http://a\", \"https://b\" }")
    // Attack: the operator demands a certificate, and half of the requests go in the clear.
    try Self.check(
      "upstream_tls = { name = \"wiki\" }",
      ["2: routes[1].to: \"http://a\" is not https://, so `upstream_tls` would not protect it"],
      to: "{ \"http://a\", \"https://b\" }")
  }

  private static let notABeginning =
    "is not a beginning of paths, such as \"/wiki\": whole segments of ASCII without *, % and ;, and no / at the end"

  @Test(arguments: [
    (
      "\"/docs\"",
      "\"/docs\" is not the beginning of all paths that \"/wiki/**\" matches: write strip = \"/wiki\", or path = \"/docs/**\""
    ),
    (
      "\"/wik\"",
      "\"/wik\" is not the beginning of all paths that \"/wiki/**\" matches: write strip = \"/wiki\", or path = \"/wik/**\""
    ),
    (
      "\"/wiki/x\"",
      "\"/wiki/x\" is not the beginning of all paths that \"/wiki/**\" matches: write strip = \"/wiki\", or path = \"/wiki/x/**\""
    ),
    ("\"/wiki/\"", "\"/wiki/\" \(notABeginning)"), ("\"wiki\"", "\"wiki\" \(notABeginning)"),
    ("\"/\"", "\"/\" \(notABeginning)"), ("\"/wiki/*\"", "\"/wiki/*\" \(notABeginning)"),
    ("\"/wiki;x\"", "\"/wiki;x\" \(notABeginning)"), ("\"/%77iki\"", "\"/%77iki\" \(notABeginning)"),
    ("5", "must be a text in quotes, not the number 5"),
  ]) func stripIsTheBeginningOfThePattern(_ strip: String, _ problem: String) throws {
    try Self.check("strip = \(strip)", ["3: routes[1].strip: " + problem])
  }

  @Test(arguments: [
    ("Wiki.internal", "; did you mean `wiki.internal`?"), ("wiki:80:90", ""), ("a b", ""), ("", ""),
    ("wiki.internal.", "; did you mean `wiki.internal`?"),
  ]) func hostHeaderIsAWordOrAHost(_ text: String, _ hint: String) throws {
    try Self.check(
      "host_header = \"\(text)\"",
      [
        "3: routes[1].host_header: \"\(text)\" is not \"keep\", \"upstream\" or a host in lower case, such as \"wiki.internal\"\(hint)"
      ])
  }

  @Test(arguments: [
    (
      "encoded = { \"slsh\" }", "encoded[1]: \"slsh\" is not known; did you mean `slash`?"
    ),
    (
      "encoded = {}",
      "encoded: is empty: name one or several of `backslash`, `empty` and `slash`, or leave it out"
    ),
    ("encoded = \"slash\"", "encoded: must be a list of texts, as in `{ \"a\", \"b\" }`, not \"slash\""),
  ]) func encodedIsAListOfWords(_ field: String, _ problem: String) throws {
    try Self.check(field, ["3: routes[1]." + problem])
  }

  @Test func patternNamesNoEncodedSlash() throws {
    let folder = try TestFolder([
      "routes.lua": "return routes {\n{ path = \"/api/%2F/*\", to = \"http://127.0.0.1:3000\" },\n}"
    ])
    #expect(
      folder.problems() == [
        "routes.lua:2: routes[1].path: \"/api/%2F/*\" can match no path: patterns match decoded paths; write * for such a name, and pass it on by encoded = { \"slash\" }"
      ])
  }

  // MARK: who passes

  @Test(arguments: [
    ("\"office\"", "allow: must be true, false or { networks = { \"10.0.0.0/8\" } }, not \"office\""),
    ("{}", "allow.networks: is missing: a list of address blocks, such as { \"10.0.0.0/8\" }"),
    ("{ networks = {} }", "allow.networks: is empty: name a block such as \"10.0.0.0/8\", or leave `allow` out"),
    (
      "{ networks = { \"10.0.0.0/33\" } }",
      "allow.networks[1]: \"10.0.0.0/33\" is not an address block, such as \"192.0.2.7/32\" or \"10.0.0.0/8\""
    ),
    (
      "{ networks = { \"10.0.0.0/8\", \"::/0\" } }",
      "allow.networks[2]: \"::/0\" is every address: write allow = true to open the route to all"
    ),
  ]) func openNetworksAreBlocks(_ allow: String, _ problem: String) throws {
    try Self.check("allow = \(allow)", ["3: routes[1]." + problem])
  }

  // MARK: identity

  /// Attack: a value that a user chooses, such as a name, decides where the message ends, or which host is asked.
  @Test(arguments: [
    "Content-Length", "transfer_encoding", "TE", "Connection", "Upgrade", "Trailer", "Host", "Cookie", "Expect",
    "Proxy-Authorization",
  ]) func identityIsNoFieldOfTheFraming(_ name: String) throws {
    try Self.check(
      "identity = {\nuser = \"\(name)\" }",
      [
        "4: routes[1].identity.user: `\(name)` belongs to the connection or to the framing of messages; choose a name such as \"X-User\""
      ])
  }

  @Test(arguments: ["Accept-Language", "Content-Type", "If-Match", "Authorization", "User-Agent", "Sec-Fetch-Mode"])
  func identityIsNoHeaderOfClients(_ name: String) throws {
    try Self.check(
      "identity = { email = { \"\(name)\" } }",
      [
        "3: routes[1].identity.email: `\(name)` is removed from all requests if it states who the user is, but clients need it; choose a name such as \"X-User\""
      ])
  }

  @Test(arguments: [
    "X-Forwarded-For", "x_forwarded_host", "Forwarded", "X-Real-IP", "X-Moongate-Assertion", "X-Original-URL",
    "X-HTTP-Method", "Proxy",
  ]) func identityIsNoHeaderOfTheGateway(_ name: String) throws {
    try Self.check(
      "identity = { email = \"\(name)\" }",
      [
        "3: routes[1].identity.email: the gateway itself uses `\(name)` for something else; choose a name such as \"X-User\""
      ])
  }

  @Test(arguments: ["X-Forwarded-User", "Remote-Login", "X-WEBAUTH-USER", "X-Remote-User", "X-Auth-Request-Email"])
  func usualNamesOfOtherProxiesAreAccepted(_ name: String) throws {
    try Self.check("identity = { user = \"\(name)\" }", [])
  }

  @Test(arguments: [
    ("{}", "identity: names no header: write { user = \"X-User\" }, or leave it out"),
    (
      "{ usr = \"X-User\" }",
      "identity.usr: unknown field; did you mean `user`? (the header with the id of the account, instead of Remote-User)"
    ),
    ("{ user = 5 }", "identity.user: must be a text in quotes, not the number 5"),
    (
      "{ user = \"X User\" }",
      "identity.user: \"X User\" is not a valid header name; choose a name such as \"X-User\""
    ),
    (
      "{ user = { value = \"{email}\" } }",
      "identity.user: must begin with one header, as in { \"X-User\", value = \"{email}\" }"
    ),
    (
      "{ user = { \"X-User\", value = \"{mail}\" } }", "identity.user.value: unknown part {mail}; did you mean `email`?"
    ),
    (
      "{ user = { \"X-User\", value = \"{claim.plna}\" } }",
      "identity.user.value: {claim.plna} needs the claim `plna`, which accounts.lua does not define; did you mean `plan`?"
    ),
    (
      "{ user = { \"X-User\", value = \"{email\" } }",
      "identity.user.value: \"{email\" has a brace without its other one; write parts as in {email}"
    ),
    (
      "{ user = { \"X-User\", value = \"email}\" } }",
      "identity.user.value: \"email}\" has a brace without its other one; write parts as in {email}"
    ),
    ("{ user = { \"X-User\", value = \"\" } }", "identity.user.value: is empty"),
    (
      "{ user = { \"X-User\", value = \"\\n{email}\" } }",
      "identity.user.value: must be printable ASCII without space at its ends"
    ),
    (
      "{ user = { \"X-User\", value = \"admin\" } }",
      "identity.user.value: is the same for all users: use a part such as {email} in it, or set the header by `headers`"
    ),
    (
      "{ basic = { user = \"{email}\" } }",
      "identity.basic.password: is missing: the password, as in file \"wiki.secret\""
    ),
    (
      "{ basic = { user = \"{email}\", password = \"hunter2\" } }",
      "identity.basic.password: must be a secret: use env \"NAME\", file \"path\" or credential \"name\" instead of the value itself"
    ),
    (
      "{ basic = { user = \"a:{email}\", password = env \"WIKI\" } }",
      "identity.basic.user: must have no colon, which separates the user from the password"
    ),
    (
      "{ basic = { user = \"{email}\", password = env \"LINES\" } }",
      "identity.basic.password: must be one line without control characters"
    ),
  ]) func mistakesOfIdentity(_ table: String, _ problem: String) throws {
    try Self.check("identity = \(table)", ["3: routes[1]." + problem])
  }

  /// Attack: a service reads two spellings of one header, or takes the first of two, and so the user is a fixed one.
  @Test(arguments: [
    (
      "identity = { user = \"X-User\",\nemail = \"x_user\" }",
      "4: routes[1].identity.email: sets `x_user`, which `identity.user` sets as well"
    ),
    (
      "identity = { user = \"Remote-Email\" }",
      "3: routes[1].identity.user: sets `Remote-Email`, which `identity.email` sets as well"
    ),
    (
      "headers = { [\"X-User\"] = \"admin\" },\nidentity = { user = \"X-User\" }",
      "4: routes[1].identity.user: sets `X-User`, which `headers` sets as well"
    ),
    (
      "headers = { [\"X-Tenant\"] = \"a\", [\"x_tenant\"] = \"b\" }",
      "3: routes[1].headers: sets `x_tenant`, which `headers` sets as well"
    ),
    (
      "identity = { basic = { user = \"{email}\", password = env \"WIKI\" } },\nbearer = \"reports\"",
      "4: routes[1].bearer: sets `Authorization`, which `identity.basic` sets as well"
    ),
    (
      "headers = { authorization = \"Basic eDp5\" },\nbearer = \"reports\"",
      "4: routes[1].bearer: sets `Authorization`, which `headers` sets as well"
    ),
    (
      "response_headers = { Server = \"a\", SERVER = false }",
      "3: routes[1].response_headers: sets `Server`, which `response_headers` sets as well"
    ),
    (
      "frames = { \"https://portal.example.com\" },\nresponse_headers = { [\"X-Frame-Options\"] = \"DENY\" }",
      "4: routes[1].response_headers: sets `X-Frame-Options`, which `frames` sets as well"
    ),
  ]) func twoFieldsSetNoHeader(_ fields: String, _ problem: String) throws {
    try Self.check(fields, [problem + ": name another header, or remove one of the two"])
  }

  @Test func framesMayRemoveWhatTheyReplace() throws {
    try Self.check(
      "frames = { \"https://portal.example.com\" }, response_headers = { [\"X-Frame-Options\"] = false }", [])
  }

  @Test(arguments: [
    (
      "encoding = \"latin1\"", "encoding: \"latin1\" is not known; available: `percent`, `rfc2047` and `utf-8`"
    ),
    ("bearer = \"report\"", "bearer: apps.lua defines no app \"report\"; did you mean `reports`?"),
    (
      "bearer = \"plain\"",
      "bearer: only the gateway can read the access tokens of the app \"plain\": set access_token = \"jwt\" and `audience` there"
    ),
  ]) func mistakesOfEncodingAndBearer(_ field: String, _ problem: String) throws {
    try Self.check(field, ["3: routes[1]." + problem])
  }

  @Test(
    arguments: [
      "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Upgrade", "TE", "Trailer",
      "Proxy-Authenticate", "X-Moongate-Assertion",
    ].flatMap { name in ["\"5\"", "false"].map { (name, $0) } })
  func responseKeepsItsFraming(_ name: String, _ value: String) throws {
    try Self.check(
      "response_headers = { [\"\(name)\"] = \(value) }",
      ["3: routes[1].response_headers.\(name): the gateway itself sets or removes this header"])
  }

  @Test(arguments: [
    ("Server", "true", ".Server: must be a text, or false to remove the header, not true"),
    ("X Server", "\"a\"", ": \"X Server\" is not a valid header name"),
    ("X-A", "\"a\\nX-B: c\"", ".X-A: must be printable ASCII without space at its ends"),
    ("X-A", "\"caf\u{e9}\"", ".X-A: must be printable ASCII without space at its ends"),
    ("Set-Cookie", "\"a=b\"", ".Set-Cookie: would replace all cookies of the service: let the service set them"),
    ("Content-Encoding", "false", ".Content-Encoding: describes the body, which stays as it is"),
    ("Date", "\"today\"", ".Date: is the time of the response, which only the service knows"),
    ("Service-Worker-Allowed", "\"/\"", ".Service-Worker-Allowed: write `service_worker = true` instead"),
  ]) func mistakesOfResponseHeaders(_ name: String, _ value: String, _ problem: String) throws {
    try Self.check(
      "response_headers = { [\"\(name)\"] = \(value) }", ["3: routes[1].response_headers" + problem])
  }

  // MARK: upstreams and rates

  @Test(arguments: [
    (
      "retry = {}",
      "retry.on: is missing: the failures: `connect` for no connection or no response, and the statuses `500`, `502`, `503` and `504`"
    ),
    ("retry = { on = { \"connect\", \"404\" } }", "retry.on[2]: \"404\" is not known; did you mean `504`?"),
    ("retry = { on = { 502 } }", "retry.on[1]: must be a text in quotes, not the number 502"),
    (
      "retry = { on = { \"502\" }, times = 9 }",
      "retry.times: must be a whole number from 1 to 5, not the number 9"
    ),
    (
      "balance = \"random\"",
      "balance: \"random\" is not known; available: `first`, `least_busy`, `round_robin` and `sticky`"
    ),
    (
      "health = { every = \"10s\" }",
      "health.path: is missing: a path that a working upstream answers with 200 to 399, such as \"/healthz\""
    ),
    ("health = { path = \"/x\", every = \"2h\" }", "health.every: must be from \"1s\" to \"1h\", not \"2h\""),
    (
      "health = { path = \"healthz\" }",
      "health.path: \"healthz\" is not the path of a request, such as \"/healthz\" or \"/status?full=0\""
    ),
    (
      "health = { path = \"/a b\" }",
      "health.path: \"/a b\" is not the path of a request, such as \"/healthz\" or \"/status?full=0\""
    ),
    (
      "health = { path = \"/x?y#z\" }",
      "health.path: \"/x?y#z\" is not the path of a request, such as \"/healthz\" or \"/status?full=0\""
    ),
    ("rate = \"100/s\"", "rate: must be a table, as in { \"100/s\", per = \"account\" }, not \"100/s\""),
    ("rate = { per = \"ip\" }", "rate: must have one rate, as in { \"100/s\", per = \"account\" }"),
    ("rate = { 100 }", "rate: must be a text in quotes, not the number 100"),
    (
      "rate = { \"1/s\", per = \"user\" }",
      "rate.per: \"user\" is not known; available: `account`, `global`, `ip` and `token`"
    ),
    ("http2 = \"yes\"", "http2: must be true or false, not \"yes\""),
  ]) func mistakesOfUpstreams(_ field: String, _ problem: String) throws {
    try Self.check(field, ["3: routes[1]." + problem])
  }

  @Test(arguments: ["100", "100/", "0/s", "/s", "-1/s", "100/2d", "100/100ms", "99999999/s", "1.5/s", "100/S"])
  func rateHasANumberAndATime(_ text: String) throws {
    try Self.check(
      "rate = { \"\(text)\" }",
      [
        "3: routes[1].rate: \"\(text)\" is not a rate: write a number and a time, such as \"100/s\", \"1000/m\" or \"5000/10m\", at most \"1d\""
      ])
  }

  // MARK: pages

  @Test(arguments: [
    "http://portal.example.com", "https://portal.example.com/x", "https://*.example.com", "portal.example.com", "*",
  ]) func frameIsOfAnHTTPSOrigin(_ text: String) throws {
    try Self.check(
      "frames = { \"\(text)\" }",
      [
        "3: routes[1].frames[1]: \"\(text)\" is not an https origin, such as \"https://portal.example.com\": scheme, host and port only"
      ])
  }

  @Test func framesAndErrorPagesNameSomething() throws {
    try Self.check("frames = {}", ["3: routes[1].frames: is empty: name a site, or leave it out"])
    try Self.check(
      "error_pages = \"errors\"",
      [
        "3: routes[1].error_pages: pages/errors/ has no template: write error.mustache, or 403.mustache for one status"
      ])
    for name in ["../errors", "", ".", "a/b"] {
      try Self.check(
        "error_pages = \"\(name)\"",
        ["3: routes[1].error_pages: \"\(name)\" is not the name of a folder in pages/, such as \"errors\""])
    }
  }

  @Test func errorPageIsNamedAfterAStatus() throws {
    let files = ["pages/errors/error.mustache": "x", "pages/errors/40.mustache": "x", "pages/errors/200.mustache": "x"]
    let rest = "is never shown: name it error.mustache, or after a status from 400 to 599, such as 403.mustache"
    #expect(
      try ServiceFieldTests.folder("error_pages = \"errors\"", files).problems() == [
        "pages/errors/200.mustache: \(rest)", "pages/errors/40.mustache: \(rest)",
      ])
  }
}
