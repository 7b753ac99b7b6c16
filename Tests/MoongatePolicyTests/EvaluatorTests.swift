import Foundation
import MoongateCore
import MoongatePolicy
import MoongateSDK
import MoongateTesting
import Testing

/// Functions of facts, with the production loader and evaluators.
@Suite struct EvaluatorTests {
  static let send = FunctionName("policies/phone_otp.send")
  static let decide = FunctionName("routes[1].decide")

  private static func limits(_ max: String = "5", window: String = "\"24h\"") -> String {
    "limits = { send = { on = \"send\", per = \"phone\", max = 4, window = \"15m\" }, verify = { on = \"verify\", per = \"phone\", max = \(max), window = \(window) } },"
  }

  private static func evaluator(send body: String) throws -> any PolicyEvaluator {
    try TestFolder([
      "policies/phone_otp.lua": "return policy \"phone_otp\" {\n\(limits())\nsend = function(f)\n\(body)\nend,\n}"
    ]).generation()
      .makeEvaluator()
  }

  private static func evaluator(decide body: String) throws -> any PolicyEvaluator {
    try TestFolder([
      "routes.lua":
        "return routes {\n{ path = \"/**\", to = \"http://127.0.0.1:3000\", decide = function(f)\n\(body)\nend },\n}"
    ])
    .generation()
    .makeEvaluator()
  }

  private static func evaluator(when body: String) throws -> any PolicyEvaluator {
    try TestFolder([
      "flows/login.lua":
        "return flow \"login\" { account = \"any\", steps = { { \"phone_otp\", when = function(f)\n\(body)\nend } } }"
    ]
    ).generation()
      .makeEvaluator()
  }

  static let facts = Facts.test {
    $0.action = .send
    $0.provider = ProviderName(test: "phone_otp")
    $0.flow = FlowFacts(name: "login", passed: [ProviderName(test: "pin"), ProviderName(test: "email_code")])
    $0.identifier = Identifier(
      kind: .phone, value: "+919999999999", display: "", attributes: ["country": "IN", "type": "mobile"])
    $0.account = AccountFacts(
      exists: true, id: "ac_1", age: .seconds(90), idle: .seconds(5), hasPIN: true, isPhoneVerified: true)
    $0.client = ClientFacts(
      address: ClientAddress(bytes: [203, 0, 113, 7]) ?? .unspecified, userAgent: "curl/8", isNewDevice: false,
      networkChanged: true)
    $0.limits = [
      LimitFacts(name: "verify", used: 2, max: 5, lockedUntil: ManualClock.start + .seconds(60)),
      LimitFacts(name: "send", used: 0, max: 4, lockedUntil: nil),
    ]
    $0.clockIsSuspect = true
  }

  static let requestFacts = Facts.test {
    $0.request = RequestFacts(method: "DELETE", host: "localhost", path: "/a%20b", query: "x=1")
    $0.session = SessionFacts(
      account: "ac_1", passed: [ProviderName(test: "phone_otp"): ManualClock.start], age: .seconds(7), aal: 1)
  }

  private static func fault(_ verdict: Verdict) -> String? {
    if case .fault(let fault) = verdict { "\(fault.kind.rawValue) \(fault)" } else { nil }
  }

  @Test(
    arguments: [
      ("return allow", .allow), ("return deny \"country_not_served\"", .deny("country_not_served")),
      ("return require_also \"email_code\"", .requireAlso(ProviderName(test: "email_code"))),
      ("if f.phone.country ~= \"IN\" then return deny \"elsewhere\" end return allow", .allow),
    ] as [(String, Verdict)]) func decides(_ body: String, _ verdict: Verdict) throws
  {
    let evaluator = try Self.evaluator(send: body)
    for _ in 0..<3 { #expect(evaluator.verdict(of: Self.send, given: Self.facts) == verdict) }
  }

  @Test(arguments: [
    "f.now == 1795176000", "f.action == 'send'", "f.provider == 'phone_otp'", "f.flow.name == 'login'",
    "f.flow.passed.pin == true",
    "f.flow.passed.password == nil",
    "f.identifier == '+919999999999'", "f.phone.e164 == '+919999999999'", "f.phone.country == 'IN'",
    "f.phone.type == 'mobile'",
    "f.email.address == nil",
    "f.email.domain == nil", "f.account.exists == true", "f.account.id == 'ac_1'", "f.account.age == 90",
    "f.account.idle == 5",
    "f.account.has_pin == true",
    "f.account.has_email == false", "f.account.email_verified == false", "f.account.phone_verified == true",
    "f.client.ip == '203.0.113.7'",
    "f.client.network == '203.0.113.0/24'", "f.client.user_agent == 'curl/8'", "f.client.new_device == false",
    "f.client.network_changed == true",
    "f.clock.suspect == true", "f.limits.verify.used == 2", "f.limits.verify.max == 5",
    "f.limits.verify.locked_until == 1795176060",
    "f.limits.send.used == 0",
    "f.limits.send.locked_until == nil", "math.type(f.now) == 'integer'", "hour(f.now, 'Asia/Kolkata') == 17",
    "hour(f.now, 'UTC') == 12",
    "hour(-1, 'UTC') == 23",
    "(function() local s = '' for k, v in pairs(f.flow.passed) do s = s .. k .. tostring(v) end return s end)() == 'email_codetruepintrue'",
    "(function() local s = '' for k in pairs(f.phone) do s = s .. k end return s end)() == 'countrye164type'",
  ]) func factsReachTheFunction(_ condition: String) throws {
    let evaluator = try Self.evaluator(send: "if \(condition) then return allow end return deny 'wrong'")
    #expect(evaluator.verdict(of: Self.send, given: Self.facts) == .allow)
  }

  @Test(arguments: [
    "f.request.method == 'DELETE'", "f.request.host == 'localhost'", "f.request.path == '/a%20b'",
    "f.request.query == 'x=1'",
    "f.session.account == 'ac_1'",
    "f.session.passed.phone_otp == f.now", "f.session.passed.pin == nil", "f.session.age == 7", "f.session.aal == 1",
    "f.now > 0",
    "f.client.ip == '203.0.113.7'",
    "(function() for k, v in pairs(f.session.passed) do return k .. v end end)() == 'phone_otp1795176000'",
  ]) func requestFactsReachDecide(_ condition: String) throws {
    let evaluator = try Self.evaluator(decide: "if \(condition) then return allow end return deny 'wrong'")
    #expect(evaluator.verdict(of: Self.decide, given: Self.requestFacts) == .allow)
  }

  // The text is built at run time, so that `check` cannot find the mistakes.
  @Test(arguments: [
    (
      "return f.phone['contry']",
      "error policies/phone_otp.lua:4: unknown fact `f.phone.contry`; did you mean `country`?"
    ),
    (
      "return f.limits['verfy'].used",
      "error policies/phone_otp.lua:4: unknown fact `f.limits.verfy`; did you mean `verify`?"
    ),
    (
      "return f['request'].method",
      "error policies/phone_otp.lua:4: unknown fact `f.request`; available: `account`, `action`, `client`, `clock`, `email`, `email_code`, `flow`, `identifier`, `limits`, `now`, `phone`, `phone_otp`, `provider` and `providers`"
    ),
    ("error('boom')", "error policies/phone_otp.lua:4: boom"),
    (
      "local zone = 'Europe/Amsterdm' return hour(f.now, zone)",
      "error policies/phone_otp.lua:4: hour: unknown time zone `Europe/Amsterdm`; did you mean `Europe/Amsterdam`?"
    ),
    (
      "local zone = 'IST' return hour(f.now, zone)",
      "error policies/phone_otp.lua:4: hour: unknown time zone `IST`; use a name such as `Asia/Kolkata` or `UTC`"
    ),
    (
      "return hour(math.maxinteger, 'UTC')",
      "error policies/phone_otp.lua:4: hour: 9223372036854775807 is not a valid time in Unix seconds"
    ),
    (
      "",
      "result policies/phone_otp.lua:3: must return allow, deny \"reason\" or require_also \"provider\", but returned nothing: end every branch of the function with a return"
    ),
    (
      "return true",
      "result policies/phone_otp.lua:3: must return allow, deny \"reason\" or require_also \"provider\", but returned true"
    ),
    (
      "return 'allow'",
      "result policies/phone_otp.lua:3: must return allow, deny \"reason\" or require_also \"provider\", but returned the text \"allow\""
    ),
    (
      "return {}",
      "result policies/phone_otp.lua:3: must return allow, deny \"reason\" or require_also \"provider\", but returned a table"
    ),
    (
      "return deny",
      "result policies/phone_otp.lua:3: must return allow, deny \"reason\" or require_also \"provider\", but returned a function"
    ),
    (
      "return deny('Not' .. ' OK')",
      "result policies/phone_otp.lua:3: `Not OK` is not a valid reason: use at most 48 lower-case letters, digits and _, and none of the gateway's own codes"
    ),
    (
      "return deny('invalid' .. '_code')",
      "result policies/phone_otp.lua:3: `invalid_code` is not a valid reason: use at most 48 lower-case letters, digits and _, and none of the gateway's own codes"
    ),
    (
      "return deny('' .. '')",
      "result policies/phone_otp.lua:3: `` is not a valid reason: use at most 48 lower-case letters, digits and _, and none of the gateway's own codes"
    ),
    (
      "return require_also('emial' .. '_code')",
      "result policies/phone_otp.lua:3: require_also names `emial_code`, which gateway.lua does not configure; did you mean `email_code`?"
    ),
    ("while true do end", "steps policies/phone_otp.lua:4: stopped after 100000 steps"),
    (
      "local s = 'x'\nwhile true do s = s .. s end",
      "memory policies/phone_otp.lua:5: stopped after asking for more than 1048576 bytes"
    ),
    (
      "while true do pcall(function() while true do end end) end",
      "steps policies/phone_otp.lua:4: stopped after 100000 steps"
    ),
  ]) func everythingElseIsAFault(_ body: String, _ fault: String) throws {
    let evaluator = try Self.evaluator(send: body)
    for _ in 0..<2 { #expect(Self.fault(evaluator.verdict(of: Self.send, given: Self.facts)) == fault) }
  }

  @Test func decideHasATenthOfTheSteps() throws {
    let evaluator = try Self.evaluator(decide: "for i = 1, 20000 do end return allow")
    #expect(
      Self.fault(evaluator.verdict(of: Self.decide, given: Self.requestFacts))
        == "steps routes.lua:3: stopped after 10000 steps")
    let patient = try Self.evaluator(send: "for i = 1, 20000 do end return allow")
    #expect(patient.verdict(of: Self.send, given: Self.facts) == .allow)
  }

  @Test func aMissingFunctionIsAFault() throws {
    let evaluator = try Self.evaluator(send: "return allow")
    #expect(
      Self.fault(evaluator.verdict(of: FunctionName("policies/phone_otp.verify"), given: Self.facts))
        == "error unknown function policies/phone_otp.verify")
  }

  // MARK: conditions

  @Test(arguments: [
    ("return true", true), ("return false", false), ("return nil", false), ("return f.flow.passed.password", false),
    ("return f.flow.passed.pin", true),
    ("return f.account.has_pin and not f.client.new_device", true),
  ]) func conditions(_ body: String, _ holds: Bool) throws {
    let evaluator = try Self.evaluator(when: body)
    #expect(try evaluator.condition(of: FunctionName("flows/login.steps[1].when"), given: Self.facts) == holds)
  }

  @Test(arguments: [
    ("return 1", "true or false, but returned the number 1"), ("return allow", "true or false, but returned allow"),
  ])
  func conditionsOfAnotherType(_ body: String, _ sentence: String) throws {
    let evaluator = try Self.evaluator(when: body)
    let fault = #expect(throws: PolicyFault.self) {
      try evaluator.condition(of: FunctionName("flows/login.steps[1].when"), given: Self.facts)
    }
    #expect(fault?.kind == .result && fault?.message == "must return " + sentence)
  }

  // MARK: vary

  private static func varying(max: String, window: String = "\"24h\"") throws -> (any PolicyEvaluator, Limit) {
    let generation = try TestFolder([
      "policies/phone_otp.lua": "return policy \"phone_otp\" { \(limits(max, window: window)) }"
    ]).generation()
    let limit = try #require(generation.policies[ProviderName(test: "phone_otp")]?.limits.first { $0.name == "verify" })
    return (try generation.makeEvaluator(), limit)
  }

  @Test(arguments: [
    ("3", 3), ("7", 5), ("-1", 2), ("3.9", 3), ("math.huge", 5), ("-math.huge", 2), ("math.maxinteger", 5),
    ("math.mininteger", 2),
    ("f.limits.verify.used + 1", 3), ("f.client.new_device and 2 or 4", 4),
  ]) func wholeNumbersAreClamped(_ result: String, _ value: Int) throws {
    let (evaluator, limit) = try Self.varying(max: "vary(2, 5, function(f) return \(result) end)")
    #expect(limit.max == .varying(lowest: 2, highest: 5, FunctionName("policies/phone_otp.limits.verify.max")))
    #expect(try evaluator.value(of: limit.max, given: Self.facts) == value)
  }

  @Test(arguments: [
    ("\"30m\"", 1800), ("\"1s\"", 600), ("\"9d\"", 86_400), ("duration \"20m\"", 1200), ("700.5", 700),
    ("math.huge", 86_400), ("-1", 600),
    ("math.maxinteger", 86_400),
  ]) func durationsAreClamped(_ result: String, _ seconds: Int64) throws {
    let (evaluator, limit) = try Self.varying(
      max: "5", window: "vary(\"10m\", \"24h\", function(f) return \(result) end)")
    let value = try evaluator.value(of: try #require(limit.window), given: Self.facts)
    #expect(value.components.seconds == seconds)
  }

  @Test(arguments: ["0/0", "nil", "\"5\"", "true", "{}", "allow"]) func otherResultsAreFaults(_ result: String) throws {
    let (evaluator, limit) = try Self.varying(max: "vary(2, 5, function(f) return \(result) end)")
    #expect(throws: PolicyFault.self) { try evaluator.value(of: limit.max, given: Self.facts) }
    let (other, second) = try Self.varying(max: "5", window: "vary(\"10m\", \"24h\", function(f) return \(result) end)")
    #expect(throws: PolicyFault.self) { try other.value(of: try #require(second.window), given: Self.facts) }
  }

  @Test func itemsOfAListMayVary() throws {
    let generation = try TestFolder([
      "policies/phone_otp.lua":
        "return policy \"phone_otp\" { timers = { resend_after = { \"60s\", vary(\"60s\", \"5m\", function(f) return f.client.new_device and \"5m\" or \"2m\" end) } } }"
    ]).generation()
    let policy = try #require(generation.policies[ProviderName(test: "phone_otp")])
    let name = FunctionName("policies/phone_otp.timers.resend_after[2]")
    #expect(policy.resendAfter == [.fixed(.seconds(60)), .varying(lowest: .seconds(60), highest: .seconds(300), name)])
    #expect(try generation.makeEvaluator().value(of: policy.resendAfter[1], given: Self.facts) == .seconds(120))
  }

  // MARK: states

  @Test func nothingIsLeftForTheNextCall() throws {
    let folder = try TestFolder([
      "policies/phone_otp.lua": """
      local calls, seen = 0, {}
      return policy "phone_otp" {
        send = function(f) calls = calls + 1 if calls > 1 then return deny "again" end return allow end,
        verify = function(f) seen[f.client.ip] = true return allow end,
      }
      """
    ])
    let evaluator = try folder.generation().makeEvaluator()
    for _ in 0..<3 {
      #expect(evaluator.verdict(of: Self.send, given: Self.facts) == .allow)
      #expect(
        Self.fault(evaluator.verdict(of: FunctionName("policies/phone_otp.verify"), given: Self.facts))
          == "error policies/phone_otp.lua:4: this is read-only: a call cannot store anything for the next one")
    }
  }

  @Test func functionsAreFoundByFileAndName() throws {
    let folder = try TestFolder([
      "policies/phone_otp.lua": "return policy \"phone_otp\" { send = function(f) return deny \"phone\" end }",
      "policies/email_code.lua":
        "local function no(r) return function(f) return deny(r) end end\nreturn policy \"email_code\" { verify = no \"b\", send = no \"a\" }",
      "flows/login.lua":
        "return flow \"login\" { account = \"any\", steps = { { \"phone_otp\" }, { \"email_code\", skippable = true, when = function(f) return true end } } }",
    ])
    let evaluator = try folder.generation().makeEvaluator()
    #expect(evaluator.verdict(of: Self.send, given: Self.facts) == .deny("phone"))
    #expect(evaluator.verdict(of: FunctionName("policies/email_code.send"), given: Self.facts) == .deny("a"))
    #expect(evaluator.verdict(of: FunctionName("policies/email_code.verify"), given: Self.facts) == .deny("b"))
    #expect(try evaluator.condition(of: FunctionName("flows/login.steps[2].when"), given: Self.facts))
  }

  @Test func verdictsDoNotDependOnEarlierCalls() throws {
    let generation = try TestFolder([
      "policies/phone_otp.lua":
        "return policy \"phone_otp\" { send = function(f) local t = {} for i = 1, f.account.age * 100 do t[i] = 'x' .. i end return deny('n' .. #t) end }"
    ]).generation()
    func verdicts(_ ages: [Int]) throws -> [Int: Verdict] {
      let evaluator = try generation.makeEvaluator()
      var verdicts: [Int: Verdict] = [:]
      for age in ages {
        verdicts[age] = evaluator.verdict(of: Self.send, given: .test { $0.account.age = .seconds(age) })
      }
      return verdicts
    }
    let ages = Array(40..<120)
    #expect(try verdicts(ages) == verdicts(ages.reversed()))
  }

  @Test func threadsUseSeparateEvaluators() async throws {
    let generation = try TestFolder([
      "policies/phone_otp.lua":
        "return policy \"phone_otp\" { send = function(f) return deny('n' .. f.account.age) end }"
    ]).generation()
    try await withThrowingTaskGroup(of: Bool.self) { group in
      for age in 0..<8 {
        group.addTask {
          let evaluator = try generation.makeEvaluator()
          return (0..<500).allSatisfy { _ in
            evaluator.verdict(of: Self.send, given: .test { $0.account.age = .seconds(age) }) == .deny("n\(age)")
          }
        }
      }
      for try await right in group { #expect(right) }
    }
  }
}
