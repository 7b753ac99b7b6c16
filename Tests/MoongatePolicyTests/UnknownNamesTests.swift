import MoongateCore
import Testing

@testable import MoongatePolicy

/// Unknown names in functions are reported before any function is called.
@Suite struct UnknownNamesTests {
  private static func problems(_ file: String, _ text: String) throws -> [String] {
    try TestFolder([file: text]).problems()
  }

  private static func policy(_ body: String, _ before: String = "") -> String {
    "\(before)\nreturn policy \"phone_otp\" { send = function(f)\n\(body)\nend }"
  }

  static let mistakes: [(body: String, problem: String)] = [
    ("return alow", "unknown name `alow`; did you mean `allow`?"),
    (
      "if f.phone.contry ~= 'IN' then return deny 'x' end return allow",
      "unknown fact `f.phone.contry`; did you mean `country`?"
    ),
    (
      "if false then return strats_with('a', 'b') end return allow",
      "unknown name `strats_with`; did you mean `starts_with`?"
    ),
    ("return f.acount.exists and allow or deny 'x'", "unknown fact `f.acount`; did you mean `account`?"),
    ("return f.limits.sned.used > 1 and deny 'x' or allow", "unknown fact `f.limits.sned`; did you mean `send`?"),
    (
      "return f.flow.passed.pinn and allow or deny 'x'",
      "`f.flow.passed.pinn`: unknown provider `pinn`; did you mean `pin`?"
    ),
    ("return f.request.method == 'GET' and allow or deny 'x'", "unknown fact `f.request`"),
    (
      "return deny 'Not Served'",
      "`Not Served` is not a valid reason: use at most 48 lower-case letters, digits and _, and none of the gateway's own codes"
    ),
    (
      "return deny(\"policy_error\")",
      "`policy_error` is not a valid reason: use at most 48 lower-case letters, digits and _, and none of the gateway's own"
    ),
    (
      "return require_also 'email_cod'",
      "require_also names `email_cod`, which gateway.lua does not configure; did you mean `email_code`?"
    ),
    (
      "return hour(f.now, 'Asia/Kolkatta') < 6 and allow or deny 'x'",
      "hour: unknown time zone `Asia/Kolkatta`; use a name such as `Asia/Kolkata` or `UTC`"
    ),
    (
      "return f.account.age > duration '15' and allow or deny 'x'",
      "`15` is not a duration such as \"90s\", \"10m\", \"1h30m\" or \"7d\""
    ),
    (
      "return cidr('10.0.0.0/99', f.client.ip) and allow or deny 'x'",
      "cidr: `10.0.0.0/99` is not an address block such as 10.0.0.0/8"
    ),
    ("return os.time() > 0 and allow or deny 'x'", "`os` is not offered: a policy has no clock; use f.now"),
    (
      "return math.random() > 0 and allow or deny 'x'",
      "`random` is not offered: a policy must decide the same for the same facts"
    ),
    ("return string.strat('x') and allow or deny 'x'", "`string.strat` is not offered"),
    ("seen = true return allow", "globals are read-only: write `local seen = …`"),
    ("allow = nil return deny 'x'", "globals are read-only: write `local allow = …`"),
    ("_ENV = { allow = allow } return allow", "`_ENV` is not offered: name the global itself"),
    ("local _ENV = {} return allow", "`_ENV` is not offered: name the global itself"),
    (
      "local c = f.client return c.new_devic and deny 'x' or allow",
      "unknown fact `f.client.new_devic`; did you mean `new_device`?"
    ),
    (
      "local g = f local a = g.account return a.has_pinn and allow or deny 'x'",
      "unknown fact `f.account.has_pinn`; did you mean `has_pin`?"
    ),
    ("for i = 1, 3 do if i > 2 then return f.nw end end return allow", "unknown fact `f.nw`; did you mean `now`?"),
    ("return (f.phone.e164 == one) and allow or deny 'x'", "unknown name `one`"),
    ("return pcall(function() return f.phon.e164 end) and allow", "unknown fact `f.phon`; did you mean `phone`?"),
    ("do local x = 1 end return x and allow or deny 'x'", "unknown name `x`"),
    (
      "local function walk(c) return c.netwrok end return walk(f.client) and allow",
      "unknown fact `f.client.netwrok`; did you mean `network`?"
    ),
    (
      "return f .phone\n.contry == 'IN' and allow or deny 'x'", "unknown fact `f.phone.contry`; did you mean `country`?"
    ),
  ]

  @Test(arguments: mistakes) func isReportedWithItsLine(_ body: String, _ problem: String) throws {
    let problems = try Self.problems("policies/phone_otp.lua", Self.policy(body))
    #expect(problems.count == 1, "\(problems)")
    #expect(problems.first?.hasPrefix("policies/phone_otp.lua:3: \(problem)") ?? false, "\(problems)")
  }

  /// Names that are valid or cannot be resolved are not reported: a valid folder must never be refused.
  @Test(arguments: [
    ("", "local t = { send = function(x) return x.whatever end } return t.send { whatever = 1 } and allow"),
    ("local function pick(x) return x.name end", "return pick { name = 'a' } == 'a' and allow or deny 'x'"),
    ("local function pick(x) return x.name end", "local g = pick return g { name = 1 } and pick(f.flow) and allow"),
    ("local function pick(x) return x.client end", "return pick(f) and pick { client = 1 } and allow"),
    ("local function is(n) return function(x) return x == n end end", "return is(1)(1) and allow or deny 'x'"),
    ("local limits = { IN = 1 }", "return limits[f.phone.country or 'IN'] and allow or deny 'x'"),
    ("local a <const>, b = 1, 2", "local a, c = b, a return c and allow or deny 'x'"),
    ("", "local f = { phone = { contry = 1 } } return f.phone.contry and allow"),
    ("", "f = { any = 1 } return f.any and allow"),
    ("", "local function g(...) local a, b = ... return a, select('#', ...) end return g(f) and allow"),
    ("", "local t = {} function t.x(f) return f.y end function t:z() return self.y end return t.x { y = 1 } and allow"),
    ("", "repeat local done = true until done return allow"), ("", "goto out do local x = 1 end ::out:: return allow"),
    ("", "for k, v in pairs(f.flow.passed) do if k == v then return deny(k) end end return allow"),
    ("", "local s = 'a'..'b'..'c' return #s > 2 and allow or deny 'x'"),
    ("", "local n = 7 // 2 << 1 >> 1 ~ 3 & 1 | 2 return n ~= -n and not not n and allow"),
    ("", "local s = [[ alow f.phone.contry ]] --[[ alow ]] -- alow\nreturn s and allow"),
    ("", "return (f.phone.e164 or ''):sub(1, 3) == '+91' and allow or deny 'x'"),
    ("", "if f.flow.passed.google_oauth then return deny 'x' elseif f.now then return allow else return allow end"),
    ("", "return deny('a' .. '_b')"), ("", "local why = 'Odd' return why == 'Odd' and allow or deny(why)"),
    ("", "local t = { 'a'; ['b'] = 2, c = function(z) return z.q end, { d = 1 }, } return #t > 0 and allow"),
    ("", "while f.now < 0 do break end return table.concat({ 'a' }, ',') and math.max(1, 2) and allow"),
  ]) func validCodeGivesNoProblem(_ before: String, _ body: String) throws {
    #expect(try Self.problems("policies/phone_otp.lua", Self.policy(body, before)) == [])
  }

  @Test func argumentsOfFunctionsInOtherFilesAreFollowed() throws {
    let text = """
      local function night(f) return hour(f.nwo, "UTC") < 6 end
      local function closed(f) return night(f) end
      local function at_least(age) return function(f) return f.account.agee > age end end

      return policy "phone_otp" {
        limits = {
          send = { on = "send", per = "phone", window = "1h", max = vary(1, 4, function(f) return closed(f) and 1 or f.clock.suspct end) },
          verify = { on = "verify", per = "phone", window = "1h", max = 3, lock = "1h" },
        },
        verify = at_least(3),
      }
      """
    #expect(
      try Self.problems("policies/phone_otp.lua", text) == [
        "policies/phone_otp.lua:1: unknown fact `f.nwo`; did you mean `now`?",
        "policies/phone_otp.lua:3: unknown fact `f.account.agee`; did you mean `age`?",
        "policies/phone_otp.lua:7: unknown fact `f.clock.suspct`; did you mean `suspect`?",
      ])
  }

  @Test func routesAndFlowsHaveSeparateFacts() throws {
    let routes = """
      local function read_only(f) return f.request.mehtod == "GET" and allow or deny "maintenance" end
      return routes {
        { path = "/a/**", to = "http://127.0.0.1:3000", decide = read_only },
        { path = "/**", to = "http://127.0.0.1:3000", decide = function(f) return f.session.passed.phone_opt and allow or require_also "phone_opt" end },
      }
      """
    #expect(
      try Self.problems("routes.lua", routes) == [
        "routes.lua:1: unknown fact `f.request.mehtod`; did you mean `method`?",
        "routes.lua:4: `f.session.passed.phone_opt`: unknown provider `phone_opt`; did you mean `phone_otp`?",
        "routes.lua:4: require_also names `phone_opt`, which gateway.lua does not configure; did you mean `phone_otp`?",
      ])
    let flow = """
      return flow "login" { account = "existing", steps = {
        { "phone_otp" }, { "email_code", when = function(f) return f.account.has_emial end },
      } }
      """
    #expect(
      try Self.problems("flows/login.lua", flow) == [
        "flows/login.lua:2: unknown fact `f.account.has_emial`; did you mean `has_email`?"
      ])
  }

  /// A misspelled constructor is an error, and hides no other mistake in its file.
  @Test func misspelledConstructorDoesNotHideOtherProblems() throws {
    let gateway = """
      return gateway {
        public_ulr = "http://localhost:8080",
        region = "in",
        providers = { phone_otp = { sms = outbx() }, email_code = { mail = otubox() } },
      }
      """
    #expect(
      try Self.problems("gateway.lua", gateway) == [
        "gateway.lua:2: public_ulr: unknown field; did you mean `public_url`? (the URL of the gateway in browsers, such as \"https://auth.example.com\")",
        "gateway.lua:3: region: \"in\" is not a country code of two capital letters (ISO 3166-1); did you mean `IN`?",
        "gateway.lua:4: unknown name `otubox`; did you mean `outbox`?",
        "gateway.lua:4: unknown name `outbx`; did you mean `outbox`?",
      ])
    #expect(
      try Self.problems("routes.lua", "return rutes_of_mine { }") == ["routes.lua:1: unknown name `rutes_of_mine`"])
  }

  /// Nesting as deep as Lua allows, and deeper: no crash, no hang and no report.
  @Test(arguments: [50, 190, 5_000]) func nestingIsBounded(_ depth: Int) {
    let opened = String(repeating: "{ f(function(a) return (", count: depth)
    let closed = String(repeating: ") end) }", count: depth)
    let names = LuaNames(Array("local f = 1 return \(opened)x\(closed)".utf8))
    #expect(names.globals.map(\.path) == (depth < 100 ? [["x"]] : []))
  }

  /// The analysis of a megabyte of complex text takes no longer than a file may take to load.
  @Test func longTextsAreReadInTime() throws {
    let chain = (1..<10_000).map { "do local function g\($0)(f) return f.nwo end g\($0)(f) end" }.joined(
      separator: "\n")
    let texts = (1..<10_000).map { "local _ = duration(\"\($0)s\")" }.map { "do \($0) end" }.joined(separator: "\n")
    for text in [Self.policy("\(chain) return allow"), Self.policy("\(texts) return allow")] {
      let start = ContinuousClock.now
      _ = try Self.problems("policies/phone_otp.lua", text)
      #expect(ContinuousClock.now - start < .seconds(20))
    }
  }
}
