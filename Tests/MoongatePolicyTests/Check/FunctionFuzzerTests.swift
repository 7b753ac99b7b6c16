import MoongateCore
import MoongateSDK
import PIN
import PhoneOTP
import Testing

@testable import MoongatePolicy

/// The sweep finds functions that fail with possible facts, and reports nothing else.
@Suite struct FunctionFuzzerTests {
  private func faults(_ files: [String: String]) throws -> [String] {
    let generation = try TestFolder(files).generation()
    let sweep = try #require(FunctionFuzzer(generation, providers: try ProviderRegistry([PhoneOTP()])))
    return sweep.run().faults.map(\.problem.description)
  }

  private func faults(send body: String) throws -> [String] {
    try faults(["policies/phone_otp.lua": "return policy \"phone_otp\" { send = function(f)\n\(body)\nend }"])
  }

  @Test(arguments: [
    (
      "if f.phone.country == 'IR' then error('x') end return allow",
      "policies/phone_otp.lua:2: x, where f.phone.country is \"IR\""
    ),
    ("if hour(f.now, 'UTC') == 3 then return nil end return allow", "policies/phone_otp.lua:1: must return allow"),
    (
      "if f.clock.suspect and f.client.new_device and f.account.exists then return 1 end return allow",
      "policies/phone_otp.lua:1: must return allow"
    ),
    (
      "if f.limits.send.used >= f.limits.send.max then return deny(f.account.id) end return allow",
      "policies/phone_otp.lua:2: deny takes a string"
    ),
    (
      "if f.limits.send.locked_until then return f.limits.send.locked_until.x end return allow",
      "policies/phone_otp.lua:2: attempt to index a number"
    ),
    (
      "local served = { IN = 1, US = 2 } if served[f.phone.country] == 1 then return 'x' end return allow",
      "policies/phone_otp.lua:1: must return"
    ),
    ("if cidr('10.0.0.0/8', f.client.ip) then return {} end return allow", "policies/phone_otp.lua:1: must return"),
    (
      "if f.client.user_agent:find('x') then return deny 'x' end return allow",
      "policies/phone_otp.lua:2: attempt to index a nil value"
    ),
    ("if f.client.network_changed then while true do end end return allow", "policies/phone_otp.lua:2: "),
  ]) func failingFunctionsAreFound(_ body: String, _ problem: String) throws {
    let faults = try faults(send: body)
    #expect(faults.count == 1 && faults[0].hasPrefix(problem), "\(faults)")
  }

  @Test(arguments: [
    "return allow", "if f.phone.e164:sub(1, 3) == '+91' then return deny 'x' end return allow",
    "if f.account.exists and f.account.age < 60 then return deny 'x' end return allow",
    "if f.account.age and f.account.age < 60 then return deny 'x' end return allow",
    "if not f.client.new_device and f.account.age < 60 then return deny 'x' end return allow",
    "if f.phone.country:lower() == 'in' then return deny 'x' end return allow",
    "if f.limits.send.used > 3 then return deny 'x' end return allow",
    "if f.client.user_agent and f.client.user_agent:find('curl') then return deny 'x' end return allow",
  ]) func impossibleSituationsAreNotTried(_ body: String) throws { #expect(try faults(send: body) == []) }

  @Test func stepsRoutesAndGroupsAreSweptToo() throws {
    let faults = try faults([
      "flows/login.lua": """
      return flow "login" {
        account = "existing",
        steps = {
          { "phone_otp" },
          { "email_code", when = function(f) return f.account.has_email and not f.account.email_verified and 1 end },
        },
      }
      """,
      "routes.lua": """
      return routes {
        { path = "/pay/**", to = "http://127.0.0.1:3000",
          decide = function(f) if f.request.method == "DELETE" then return deny end return allow end },
        { path = "/mail/**", to = "http://127.0.0.1:3000", decide = function(f) if ends_with(f.session.email, ".org") then return deny "x" end return allow end },
      }
      """,
      "accounts.lua": """
      return accounts {
        groups = { staff = function(f) return ends_with(f.email.address, "@example.com") end, ops = function(f) return f.account.has_pin end },
        claims = { plan = function(f) if f.account.phone_verified then return {} end end },
      }
      """,
    ])
    #expect(
      faults.map { String($0.prefix(60)) } == [
        "accounts.lua:2: argument 1 must be a string, not nil, where ",
        "accounts.lua:3: must return a text, a number, true or false,",
        "flows/login.lua:5: must return true or false, but returned t",
        "routes.lua:3: must return allow, deny \"reason\" or require_al",
        "routes.lua:4: argument 1 must be a string, not nil, where f.",
      ], "\(faults)")
  }

  /// Attack on the loader: functions that run until their budget is exhausted would delay a reload for minutes, because
  /// each is called with many facts.
  @Test func functionsThatNeverEndAreLeftAfterTheFirstTime() throws {
    let reads = [
      "client.new_device", "client.network_changed", "clock.suspect", "account.has_pin", "account.has_email",
      "account.email_verified",
      "account.phone_verified", "account.age", "client.user_agent", "client.ip", "now", "phone.country", "phone.type",
    ]
    let loop = reads.map { "local _ = f.\($0)" }.joined(separator: " ") + " while true do end return 'x'"
    let resends = (1...12).map { _ in "vary('1m', '2m', function(f) \(loop) end)" }.joined(separator: ",\n")
    let policy = "return policy \"phone_otp\" {\n timers = { resend_after = {\n\(resends) } } }"
    let began = ContinuousClock.now
    let faults = try faults(["policies/phone_otp.lua": policy])
    #expect(
      faults.count == 12 && faults.allSatisfy { $0.contains("steps") || $0.contains("instructions") }, "\(faults)")
    // It takes some milliseconds. Without the defence, it would take ten seconds, the time limit for slow functions.
    #expect(ContinuousClock.now - began < .seconds(4))
  }

  /// Attack: a user sends a path for which the pattern of a `decide` searches again and again, so that it is stopped.
  @Test(arguments: [
    (#"f.request.path:match("^/t/(.-)/.*/edit$")"#, "f.request.path has 400"),
    (#"f.request.query:find("a.*b.*c.*d")"#, "f.request.query has 4000 characters"),
    (#"(f.client.user_agent or ""):match("Chrome(.-) .*y$")"#, "f.client.user_agent has 400"),
  ])
  func longTextsThatStopAFunctionAreWarnedAbout(_ call: String, _ expected: String) throws {
    let folder = try TestFolder([
      "routes.lua": """
      return routes {
        { path = "/**", to = "http://127.0.0.1:3000", decide = function(f)
          if \(call) then return deny "no" end
          return allow
        end },
      }
      """
    ])
    let swept = try #require(FunctionFuzzer(try folder.generation(), providers: try ProviderRegistry([PhoneOTP()])))
      .run()
    #expect(swept.faults.isEmpty)
    #expect(
      swept.warnings.count == 1
        && swept.warnings.allSatisfy { "\($0)".hasPrefix("routes.lua:3: ") && $0.message.contains(expected) },
      "\(swept.warnings)")
  }

  @Test func longTextsThatAreBoundedAreNotWarnedAbout() throws {
    let folder = try TestFolder([
      "routes.lua": """
      return routes {
        { path = "/**", to = "http://127.0.0.1:3000", decide = function(f)
          if f.request.path:sub(1, 60):match("^/t/(.-)/.*/edit$") or f.request.path:find("^/admin/") then
            return deny "no"
          end
          return allow
        end },
      }
      """
    ])
    let swept = try #require(FunctionFuzzer(try folder.generation(), providers: try ProviderRegistry([PhoneOTP()])))
      .run()
    #expect(swept.faults.isEmpty && swept.warnings.isEmpty, "\(swept)")
  }

  /// `vary` is evaluated before counters are read, so limits have no counters yet. Its results are checked against
  /// their bounds.
  @Test func varyIsSwept() throws {
    let folder = try TestFolder([
      "policies/phone_otp.lua": """
      return policy "phone_otp" { limits = {
        send = { on = "send", per = "phone", window = "15m", max = vary(1, 4, function(f) return hour(f.now, "UTC") < 6 and 0 or 4 end) },
        verify = { on = "verify", per = "phone", max = 5, window = "24h", lock = vary("5m", "1h", function(f) return f.account.exists and "1h" end) },
      } }
      """
    ])
    let swept = try #require(FunctionFuzzer(try folder.generation(), providers: try ProviderRegistry([PhoneOTP()])))
      .run()
    #expect(swept.warnings.map(\.path) == ["limits.send.max"])
    #expect(
      swept.faults.map { "\($0.location): \($0.facts)" } == ["policies/phone_otp.lua:3: f.account.exists is false"])
  }
}
