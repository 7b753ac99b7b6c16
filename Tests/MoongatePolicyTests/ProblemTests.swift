import Foundation
import MoongateCore
import MoongatePolicy
import MoongateSDK
import MoongateTesting
import Testing

/// Mistakes with the exact line and message of their problem.
@Suite struct ProblemTests {
  struct Mistake: Sendable, CustomTestStringConvertible {
    let file: String
    let text: String
    let problems: [String]
    var testDescription: String { problems.first ?? text }

    init(_ file: String, _ text: String, _ problems: String...) {
      self.file = file
      self.text = text
      self.problems = problems.map { "\(file):\($0)" }
    }
  }

  private static func policy(_ body: String) -> String { "return policy \"phone_otp\" {\n\(body)\n}" }
  private static func limit(_ body: String) -> String {
    policy(
      "limits = {\n  send = { on = \"send\", per = \"phone\", max = 4, window = \"15m\" },\n  verify = {\n\(body)\n  },\n}"
    )
  }
  private static func gateway(_ body: String) -> String {
    "return gateway {\npublic_url = \"http://localhost:8080\", providers = { phone_otp = { sms = outbox() } },\n\(body)\n}"
  }
  private static func domains(_ body: String) -> String {
    gateway(body).replacing("http://localhost:8080", with: "https://auth.example.com").replacing(
      "outbox()", with: "outbox { allow_public = true }")
  }
  private static func flow(_ steps: String, _ more: String = "") -> String {
    "return flow \"login\" {\naccount = \"existing\",\nsteps = {\n\(steps)\n},\n\(more)\n}"
  }
  private static func routes(_ body: String) -> String { "return routes {\n\(body)\n}" }

  static let policies: [Mistake] = [
    Mistake(
      "policies/phone_otp.lua", limit("on = \"verify\", per = \"phone\",\nmax = 5,\nwindw = \"24h\","),
      "7: limits.verify.windw: unknown field; did you mean `window`? (a duration, such as \"15m\")"),
    Mistake(
      "policies/phone_otp.lua", limit("on = \"verify\", per = \"phone\", max = 5,\nwindow = 90,"),
      "6: limits.verify.window: a bare number is not a duration; write \"90s\" for seconds or \"90m\" for minutes"),
    Mistake(
      "policies/phone_otp.lua", limit("on = \"verify\", per = \"phone\", max = 5,\nwindow = \"90\","),
      "6: limits.verify.window: \"90\" is not a duration; write \"90s\", \"10m\", \"1h30m\" or \"7d\""),
    Mistake(
      "policies/phone_otp.lua", limit("on = \"verfy\",\nper = \"phon\",\nmax = 0,\nwindow = \"1h\","),
      "5: limits.verify.on: \"verfy\" is not known; did you mean `verify`?",
      "6: limits.verify.per: \"phon\" is not known; did you mean `phone`?",
      "7: limits.verify.max: must be a whole number from 1 to 1000000, not the number 0"),
    Mistake(
      "policies/phone_otp.lua",
      limit("on = \"verify\", per = \"phone\",\nmax = function(f) return 5 end,\nwindow = \"1h\","),
      "6: limits.verify.max: a function alone has no bounds; write vary(lowest, highest, function(f) … end)"),
    Mistake(
      "policies/phone_otp.lua",
      limit("on = \"verify\", per = \"phone\",\nmax = vary(9, 2, function(f) return 5 end),\nwindow = \"1h\","),
      "6: limits.verify.max: put the lowest value first: vary(lowest, highest, function)"),
    Mistake(
      "policies/phone_otp.lua", limit("on = \"verify\", per = \"phone\", max = 5,"),
      "4: limits.verify.window: is missing: a duration, such as \"15m\""),
    Mistake(
      "policies/phone_otp.lua",
      limit("on = \"verify\", per = \"phone\", max = 5, window = \"1h\",\nlock = { \"15m\",\n5 },"),
      "7: limits.verify.lock[2]: a bare number is not a duration; write \"5s\" for seconds or \"5m\" for minutes"),
    Mistake(
      "policies/phone_otp.lua", policy("code = { length = 3,\nalphabet = \"digit\",\nttl = 600 },"),
      "2: code.length: must be a whole number from 4 to 10, not the number 3",
      "3: code.alphabet: \"digit\" is not known; did you mean `digits`?",
      "4: code.ttl: a bare number is not a duration; write \"600s\" for seconds or \"600m\" for minutes"),
    Mistake(
      "policies/phone_otp.lua", policy("mesage = \"x\",\nunknown_account = \"revael\","),
      "2: mesage: unknown field; did you mean `message`? (the text with {code} in it)",
      "3: unknown_account: \"revael\" is not known; did you mean `reveal`?"),
    Mistake(
      "policies/phone_otp.lua", policy("message = \"hello\","),
      "2: message: must contain {code}, the code that the user enters"),
    Mistake(
      "policies/phone_otp.lua", policy("message = \"{code} {servce}\","),
      "2: message: unknown part {servce}; did you mean `service`?"),
    Mistake(
      "policies/phone_otp.lua", policy("send = allow,"),
      "2: send: must be a function, as in function(f) return allow end, not `allow`"),
    Mistake(
      "policies/phone_otp.lua", policy("timers = { resend_after = { \"60s\", 120 } },"),
      "2: timers.resend_after[2]: a bare number is not a duration; write \"120s\" for seconds or \"120m\" for minutes"),
    Mistake(
      "policies/phone_otp.lua", policy("\"send\","), "2: \"send\" is not a field; write fields as `name = value`"),
    Mistake("policies/phone_otp.lua", policy("code = 6,"), "2: code: must be a table, as in `{ … }`, not the number 6"),
    Mistake(
      "policies/phone_otp.lua", "return policy \"phone\" {}",
      "1: declares policy \"phone\", but the file is phone_otp.lua: give both the same name"),
    Mistake(
      "policies/phone_otp.lua", "return policy \"phone_otp\"",
      " must return policy \"phone_otp\" { … }, but returns a name without its table"),
    Mistake(
      "policies/phone_otp.lua", "return { code = 1 }", " must return policy \"phone_otp\" { … }, but returns a table"),
    Mistake("policies/phone_otp.lua", "local x = 1", " must return policy \"phone_otp\" { … }, but returns nothing"),
    Mistake(
      "policies/phone_otp.lua", "return policy \"phone_otp\" {\n  code = {\n}",
      "1: the `{` that begins here has no `}` ('}' expected (to close '{' at line 1) near <eof>)"),
    Mistake(
      "policies/phone_otp.lua", "local n = 1\nreturn polcy \"phone_otp\" {}",
      "2: unknown name `polcy`; did you mean `policy`?"),
    Mistake("policies/phone_otp.lua", "while true do end", "1: stopped after 5000000 steps"),
    Mistake(
      "policies/phone_otp.lua", "local s = 'x'\nwhile true do s = s .. s end",
      "2: stopped after asking for more than 67108864 bytes"),
    Mistake(
      "policies/phone_otp.lua", "local function f() return f() + 1 end\nreturn f()",
      "1: stopped after asking for more than 67108864 bytes"),
    Mistake("policies/phone_otp.lua", "\u{1B}LuaT", " attempt to load a binary chunk (mode is 't')"),
    Mistake(
      "policies/phone_otp.lua",
      "local strict = {\n  on = \"verify\",\n  per = \"phone\",\n  max = 5,\n  windw = \"1h\",\n}\nreturn policy \"phone_otp\" {\n  limits = { verify = strict },\n}",
      "5: limits.verify.windw: unknown field; did you mean `window`? (a duration, such as \"15m\")"),
    Mistake(
      "policies/phone_otp.lua",
      "local function limit(max)\n  return { on = \"verify\", per = \"phone\", max = max,\n    windw = \"1h\" }\nend\nreturn policy \"phone_otp\" { limits = { verify = limit(3) } }",
      "3: limits.verify.windw: unknown field; did you mean `window`? (a duration, such as \"15m\")"),
  ]

  static let gateways: [Mistake] = [
    Mistake(
      "gateway.lua", gateway("lisen = \"127.0.0.1:8080\","),
      "3: lisen: unknown field; did you mean `listen`? (an address, such as \"127.0.0.1:8080\")"),
    Mistake(
      "gateway.lua", gateway("listen = \"8080\","),
      "3: listen: \"8080\" is not a valid listen address, such as \"127.0.0.1:8080\" or \"[::1]:8080\""),
    Mistake(
      "gateway.lua", gateway("region = \"in\","),
      "3: region: \"in\" is not a country code of two capital letters (ISO 3166-1); did you mean `IN`?"),
    Mistake(
      "gateway.lua", gateway("store = \"mysql:x\","),
      "3: store: \"mysql:x\" is not a store; write \"sqlite:data/moongate.db\" or \"postgres://…\""),
    Mistake(
      "gateway.lua", gateway("key = \"secret\","),
      "3: key: must be a secret: use env \"NAME\", file \"path\" or credential \"name\" instead of the value itself"),
    Mistake(
      "gateway.lua", gateway("key = env \"NO_SUCH\","),
      "3: key: the environment variable is missing: NO_SUCH. Set it before the gateway starts"),
    Mistake(
      "gateway.lua", gateway("trusted_proxies = { \"127.0.0.1/33\" },"),
      "3: trusted_proxies[1]: \"127.0.0.1/33\" is not an address block, such as \"127.0.0.1/32\" or \"10.0.0.0/8\""),
    Mistake(
      "gateway.lua", gateway("risk_budget = \"0.1\","),
      "3: risk_budget: \"0.1\" is not a risk budget; write \"0.1% per 30d\""),
    Mistake(
      "gateway.lua", gateway("brand = { primary = \"teal\", support = \"javascript:alert(1)\" },"),
      "3: brand.primary: \"teal\" is not a colour, such as \"#0D7377\"",
      "3: brand.support: \"javascript:alert(1)\" must begin with mailto:, https:// or tel:"),
    Mistake(
      "gateway.lua", gateway("cookie_domain = \"example.com\","),
      "3: cookie_domain: public_url's host \"localhost\" is not example.com or below it, so browsers would reject the cookie"
    ),
    Mistake(
      "gateway.lua", domains("cookie_domain = \"example.com\",\ndomains = { \"example.com\", \"example.org\" },"),
      "3: cookie_domain: conflicts with `domains`, which replaces it; write domains = { \"example.com\", \"example.org\" }, and remove this line"
    ),
    Mistake(
      "gateway.lua", domains("cookie_domain = \"example.com\",\ndomains = { \"example.org\" },"),
      "3: cookie_domain: conflicts with `domains`, which replaces it; write domains = { \"example.com\", \"example.org\" }, and remove this line",
      "4: domains: public_url's host \"auth.example.com\" is not under any of them: users sign in there, so add its root domain"
    ),
    Mistake(
      "gateway.lua",
      domains(
        "domains = { \"example.com\",\n\"Example.org\",\n\"example.net:8443\",\n\".example.in\",\n\"com\",\n\"127.0.0.1\", \"co.uk\" },"
      ),
      "4: domains[2]: \"Example.org\" is not a domain, such as \"example.com\": lower case, without port or leading dot",
      "5: domains[3]: \"example.net:8443\" is not a domain, such as \"example.com\": lower case, without port or leading dot",
      "6: domains[4]: \".example.in\" is not a domain, such as \"example.com\": lower case, without port or leading dot",
      "7: domains[5]: \"com\" is not a domain, such as \"example.com\": lower case, without port or leading dot",
      "8: domains[6]: \"127.0.0.1\" is not a domain, such as \"example.com\": lower case, without port or leading dot",
      "8: domains[7]: \"co.uk\" is a public suffix, under which anyone can register a domain: browsers reject cookies for it; use your own domain"
    ),
    Mistake(
      "gateway.lua",
      domains(
        "domains = { \"example.com\",\n\"example.com\",\n\"shop.example.com\",\n\"a.example.org\", \"example.org\" },"),
      "4: domains[2]: \"example.com\" is listed twice",
      "5: domains[3]: \"shop.example.com\" is below \"example.com\", whose sessions are already valid there: remove it",
      "6: domains[5]: \"a.example.org\" is below \"example.org\", whose sessions are already valid there: remove \"a.example.org\""
    ),
    Mistake(
      "gateway.lua", domains("domains = {},"),
      "3: domains: is empty: name the root domains, as in { \"example.com\", \"example.org\" }"),
    Mistake(
      "gateway.lua", domains("cookie_domain = \"co.uk\","),
      "3: cookie_domain: \"co.uk\" is a public suffix, under which anyone can register a domain: browsers reject cookies for it; use your own domain"
    ),
    Mistake(
      "gateway.lua", gateway("tls = { cert = \"none.pem\", key = \"none.key\" },"),
      "3: tls.cert: none.pem: the file does not exist",
      "3: tls.key: none.key: the file does not exist"),
    Mistake(
      "gateway.lua", gateway("limits = { body_rate = \"1KiB\" },"),
      "3: limits.body_rate: \"1KiB\" is not a rate; write \"1KiB/10s\": at least 1B in each window of \"1s\" to \"60s\", or false for no limit"
    ),
    Mistake(
      "gateway.lua", gateway("limits = { body_rat = false },"),
      "3: limits.body_rat: unknown field; did you mean `body_rate`? (the minimum size of a request body in each window, such as \"1KiB/10s\", or false)"
    ),
    Mistake(
      "gateway.lua", gateway("limits = { per_ip = { requests = 100 } },"),
      "3: limits.per_ip.requests: must be a text in quotes, not the number 100"),
    Mistake(
      "gateway.lua",
      "return gateway {\n  public_url = \"http://localhost:8080/x\",\n  providers = {\n    phone_opt = {},\n    email_code = {},\n  },\n}",
      "2: public_url: \"http://localhost:8080/x\" is not an origin, such as \"https://auth.example.com\": scheme, host and port only",
      "4: providers.phone_opt: unknown provider `phone_opt`; did you mean `phone_otp`?",
      "5: providers.email_code.mail: is missing: how mail leaves, as in outbox()"),
    Mistake(
      "gateway.lua", "return gateway {\n  providers = { phone_otp = { sms = webhook { url = \"x\" } } },\n}",
      "1: public_url: is missing: the URL of the gateway in browsers, such as \"https://auth.example.com\"",
      "2: providers.phone_otp.sms.url: \"x\" is not a valid URL, such as \"https://sms.example.com/send\""),
    Mistake("gateway.lua", "return routes {}", " must return gateway { … }, but returns `routes`"),
    Mistake(
      "gateway.lua", "return gateway { service = os.getenv(\"X\") }",
      "1: `os` is not offered: a policy has no clock; use f.now"),
  ]

  static let flows: [Mistake] = [
    Mistake(
      "flows/login.lua", flow("{ \"phone_opt\" },"),
      "4: steps[1]: unknown provider \"phone_opt\"; did you mean `phone_otp`?"),
    Mistake(
      "flows/login.lua", flow("{ \"phone_otp\" },\n{ \"pin\" },"),
      "5: steps[2]: no provider of this step is configured: name `pin` under `providers` in gateway.lua, or remove the step"
    ),
    Mistake(
      "flows/login.lua", flow("any_of { \"pin\", \"google_oauth\" },"),
      "4: steps[1]: no provider of this step is configured: name `google_oauth` and `pin` under `providers` in gateway.lua, or remove the step"
    ),
    Mistake(
      "flows/login.lua", flow("{ \"phone_otp\",\nwhen = true },"),
      "5: steps[1].when: must be a function, as in function(f) return f.account.has_pin end, not true"),
    Mistake(
      "flows/login.lua", flow("{ \"phone_otp\", skipable = true },"),
      "4: steps[1].skipable: unknown field; did you mean `skippable`? (true or false)"
    ),
    Mistake(
      "flows/login.lua", flow(""), "3: steps: must be a list with at least one step, as in { { \"phone_otp\" } }"),
    Mistake(
      "flows/login.lua", flow("{ \"phone_otp\" }", "next = { new = \"//evil.example\" },"),
      "6: next.new: must be a path that begins with one /, such as \"/home\""),
    Mistake(
      "flows/login.lua", flow("{ \"phone_otp\" }", "session = { lifetme = \"1h\" },"),
      "6: session.lifetme: unknown field; did you mean `lifetime`? (a duration, such as \"15m\")"),
    Mistake(
      "flows/login.lua", "return flow \"login\" {\n  account = \"exsting\",\n  steps = { \"phone_otp\" },\n}",
      "2: account: \"exsting\" is not known; did you mean `existing`?"),
  ]

  static let routesFiles: [Mistake] = [
    Mistake(
      "routes.lua",
      routes("{ path = \"/**\", to = \"http://127.0.0.1:3000\" },\n{ path = \"/x\", to = \"http://127.0.0.1:3000\" },"),
      "3: this route can never match: routes.lua:2 matches all its requests first"),
    Mistake(
      "routes.lua", routes("{ path = \"x\",\nto = \"127.0.0.1:3000\" },"), "2: routes[1].path: \"x\" must begin with /",
      "3: routes[1].to: \"127.0.0.1:3000\" is not a valid upstream, such as \"http://127.0.0.1:3000\": http, https or h2c, a host, a port, and perhaps a path"
    ),
    Mistake(
      "routes.lua", routes("{ path = \"/x\", to = \"http://127.0.0.1:3000\",\nallow = true,\nflow = \"login\" },"),
      "4: routes[1].flow: a route with allow = true is open to all requests: remove one of the two"),
    Mistake(
      "routes.lua", routes("{ path = \"/x\", to = \"http://127.0.0.1:3000\", flow = \"logn\" },"),
      "2: routes[1].flow: there is no flows/logn.lua; did you mean `login`?"),
    Mistake(
      "routes.lua", routes("{ path = \"/x\", to = \"http://127.0.0.1:3000\", require = { passed = \"pin\" } },"),
      "2: routes[1].require.passed: gateway.lua does not configure the provider `pin`, so no session could pass"),
    Mistake(
      "routes.lua", routes("{ path = \"/x\", to = \"http://127.0.0.1:3000\", require = {} },"),
      "2: routes[1].require: has no requirement; write { group = \"ops\" }, { passed = \"pin\", within = \"5m\" } or { email_verified = true }"
    ),
    Mistake(
      "routes.lua",
      routes("{ host = \"Wallet.example.com\", path = \"/x\", to = \"http://127.0.0.1:3000\", allow = true },"),
      "2: routes[1].host: \"Wallet.example.com\" is not a host name in lower case, without port and trailing dot; did you mean `wallet.example.com`?"
    ),
    Mistake(
      "routes.lua", routes("{ host = \"wallet.example.com\", path = \"/x\", to = \"http://127.0.0.1:3000\" },"),
      "2: routes[1].host: no session can reach wallet.example.com: it is neither public_url's host (localhost) nor under cookie_domain"
    ),
    Mistake(
      "routes.lua", routes("{ path = \"/x\", to = \"http://127.0.0.1:3000\", methods = { \"get\" } },"),
      "2: routes[1].methods: \"get\" is not a method in upper case; did you mean `GET`?"),
    Mistake(
      "routes.lua",
      routes("{ path = \"/x\", to = \"http://127.0.0.1:3000\", headers = { [\"X_Forwarded.For\"] = \"1\" } },"),
      "2: routes[1].headers.X_Forwarded.For: the gateway itself sets or removes this header"),
    Mistake(
      "routes.lua", routes("{ path = \"/a**b\", to = \"http://127.0.0.1:3000\" },"),
      "2: routes[1].path: \"/a**b\" has ** within a segment; ** stands alone between slashes"),
    Mistake(
      "routes.lua", routes("{ path = \"/a//b\", to = \"http://127.0.0.1:3000\" },"),
      "2: routes[1].path: \"/a//b\" can match no path: requests with `//`, `.` or `..` are refused before routing"),
    Mistake(
      "routes.lua", routes("{ path = \"/caf%C3%A9/**\", to = \"http://127.0.0.1:3000\" },"),
      "2: routes[1].path: \"/caf%C3%A9/**\" can match no path: patterns match decoded paths; write \"/café/**\""),
    Mistake(
      "routes.lua", routes("{ path = \"/x\", to = \"http://127.0.0.1:3000\", body_rate = \"0B/1s\" },"),
      "2: routes[1].body_rate: \"0B/1s\" is not a rate; write \"1KiB/10s\": at least 1B in each window of \"1s\" to \"60s\", or false for no limit"
    ),
    Mistake(
      "routes.lua", routes("{ path = \"/x\", to = \"http://127.0.0.1:3000\", body_rate = \"1KiB/5m\" },"),
      "2: routes[1].body_rate: \"1KiB/5m\" is not a rate; write \"1KiB/10s\": at least 1B in each window of \"1s\" to \"60s\", or false for no limit"
    ),
    Mistake(
      "routes.lua", routes("{ path = \"/x\", to = \"http://127.0.0.1:3000\", body_rate = true },"),
      "2: routes[1].body_rate: must be a rate, such as \"1KiB/10s\", or false, not true"),
    Mistake(
      "routes.lua", routes("{ path = \"/x\", to = \"http://127.0.0.1:3000\", body_rate = 1024 },"),
      "2: routes[1].body_rate: must be a rate, such as \"1KiB/10s\", or false, not the number 1024"),
    Mistake(
      "routes.lua", routes("{ path = \"/x\", to = \"http://127.0.0.1:3000\", body = \"64MB\" },"),
      "2: routes[1].body: \"64MB\" is not a size; write \"64KiB\", \"64MiB\" or \"1GiB\""),
    Mistake(
      "routes.lua", routes("{ path = \"/x\" },"),
      "2: routes[1].to: is missing: an upstream, such as \"http://127.0.0.1:3000\""),
    Mistake("routes.lua", routes("{ path = \"/x\", to = {} },"), "2: routes[1].to: must name at least one upstream"),
  ]

  @Test(arguments: policies + gateways + flows + routesFiles) func isReported(_ mistake: Mistake) throws {
    let got = try TestFolder([mistake.file: mistake.text]).problems().filter { $0.hasPrefix(mistake.file) }
    #expect(got == mistake.problems)
  }

  @Test func tenMistakesAreTenLines() throws {
    let folder = try TestFolder([
      "gateway.lua":
        "return gateway {\n  lisen = \"127.0.0.1:8080\",\n  public_url = \"http://localhost:8080\",\n  regoin = \"IN\",\n  providers = { phone_otp = { sm = outbox() } },\n}",
      "routes.lua":
        "return routes {\n  { path = \"/**\", to = \"http://127.0.0.1:3000\", flw = \"login\" },\n  { path = \"/x\", too = \"http://127.0.0.1:3000\" },\n}",
      "flows/login.lua": "return flow \"login\" {\n  acount = \"existing\",\n  steps = { { \"phone_opt\" } },\n}",
      "policies/phone_otp.lua":
        "return policy \"phone_otp\" {\n  limits = {\n    verify = { on = \"verify\", per = \"phone\", max = 5,\n      windw = \"24h\" },\n    send = { on = \"sned\", per = \"phone\", max = 4, window = 15 },\n  },\n}",
    ])
    #expect(
      folder.problems() == [
        "flows/login.lua:2: acount: unknown field; did you mean `account`? (which accounts the flow accepts: \"existing\", \"new\" or \"any\")",
        "flows/login.lua:3: steps[1]: unknown provider \"phone_opt\"; did you mean `phone_otp`?",
        "gateway.lua:2: lisen: unknown field; did you mean `listen`? (an address, such as \"127.0.0.1:8080\")",
        "gateway.lua:4: regoin: unknown field; did you mean `region`? (a country in two letters, such as \"IN\")",
        "gateway.lua:5: providers.phone_otp.sm: unknown field; did you mean `sms`? (how SMS leave, as in outbox())",
        "policies/phone_otp.lua:4: limits.verify.windw: unknown field; did you mean `window`? (a duration, such as \"15m\")",
        "policies/phone_otp.lua:5: limits.send.on: \"sned\" is not known; did you mean `send`?",
        "policies/phone_otp.lua:5: limits.send.window: a bare number is not a duration; write \"15s\" for seconds or \"15m\" for minutes",
        "routes.lua:2: routes[1].flw: unknown field; did you mean `flow`? (the name of a flow)",
        "routes.lua:3: routes[2].too: unknown field; did you mean `to`? (an upstream, such as \"http://127.0.0.1:3000\")",
      ])
  }

  @Test(arguments: [
    (
      "policies/phone_opt.lua", "return policy \"phone_opt\" {}",
      "policies/phone_opt.lua: unknown provider `phone_opt`; did you mean `phone_otp`?"
    ),
    (
      "flows/Log in.lua", "return flow \"x\" {}",
      "flows/Log in.lua: a flow's name consists of lower-case letters, digits and _"
    ),
    ("tests/x.lua", "return tests {", "tests/x.lua:1: unexpected symbol near <eof>"),
  ]) func filesOfTheWrongName(_ file: String, _ text: String, _ problem: String) throws {
    #expect(try TestFolder([file: text]).problems() == [problem])
  }

  @Test func warningsChangeNothing() throws {
    let folder = try TestFolder([
      "gateway.lua": TestFolder.gateway.replacing("http://localhost:8080", with: "http://auth.example.com")
        .replacing("outbox()", with: "outbox { allow_public = true }"),
      "routs.lua": "return routes {}",
      "policies/phone_otp.lua":
        "return policy \"phone_otp\" {\n  limits = {\n    a = { on = \"verify\", per = \"email\", max = 5, window = \"1h\", lock = { \"1h\", \"15m\" } },\n  },\n  code = { ttl = \"30s\" },\n}",
    ])
    let warnings = try folder.generation().warnings.map(\.description)
    #expect(
      warnings == [
        "gateway.lua:2: public_url: codes, PINs and cookies would be sent unencrypted: use https outside this machine",
        "gateway.lua:4: providers.email_code.mail: outbox sends nothing and shows every code on the admin listener, and public_url is http://auth.example.com: for tests only",
        "gateway.lua:4: providers.phone_otp.sms: outbox sends nothing and shows every code on the admin listener, and public_url is http://auth.example.com: for tests only",
        "policies/phone_otp.lua:2: limits: no limit on send counts per phone, email, identifier or account: requests for one account are unlimited; add a limit with per = \"identifier\"",
        "policies/phone_otp.lua:2: limits: the default limits `hard`, `send`, `send_day`, `send_ip`, `send_network`, `send_prefix`, `sms_global` and `verify` are replaced and no longer in effect",
        "policies/phone_otp.lua:3: limits.a.lock: a lock is shorter than the one before it: sort the list in ascending order",
        "policies/phone_otp.lua:3: limits.a.per: `phone_otp` knows no email, so this limit never applies",
        "policies/phone_otp.lua:5: code.ttl: is shorter than the longest wait of timers.resend_after: a code expires before a new one can be requested",
        "routs.lua: is not read; did you mean `routes.lua`?",
      ], "\(warnings)")
  }

  @Test func secretsNeverShow() throws {
    let folder = try TestFolder([
      "gateway.lua": TestFolder.gateway.replacing("mail = outbox()", with: "mail = outbox(), api_key = env \"KEY\"")
        .replacing("region", with: "key = env \"MASTER\", region")
    ])
    guard case .success(let generation) = folder.load(environment: ["KEY": "hunter2-api", "MASTER": "hunter2-master"])
    else {
      Issue.record("\(folder.problems())")
      return
    }
    #expect(
      generation.gateway.providers[ProviderName(test: "email_code")]?.secrets["api_key"]?.reveal() == "hunter2-api")
    #expect(!"\(generation.gateway)".contains("hunter2") && !String(reflecting: generation.gateway).contains("hunter2"))
  }
}
