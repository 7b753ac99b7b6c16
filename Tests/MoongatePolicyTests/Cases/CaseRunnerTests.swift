import Foundation
import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import PhoneOTP
import Testing

@testable import MoongatePolicy

/// Cases on the real engine.
@Suite struct CaseRunnerTests {
  private func report(
    _ cases: String, _ files: [String: String?] = [:], timeLimit: Duration? = nil, watchesBranches: Bool = false
  ) async throws -> CaseReport {
    let all = files.merging(["tests/a.lua": "return tests {\n\(cases)\n}", "flows/enter.lua": Self.enter]) { first, _ in
      first
    }
    let folder = try TestFolder(all)
    switch ConfigurationLoader(providers: TestFolder.providers.map(DescribedProvider.init), environment: [:]).read(
      folder: folder.scratch.path)
    {
    case .success(let loaded):
      let runner = CaseRunner(
        loaded.generation, providers: try ProviderRegistry([PhoneOTP()]), makeStore: { try SQLiteStore.memory() })
      return try await runner.run(loaded.cases, timeLimit: timeLimit, watchesBranches: watchesBranches)
    case .failure(let refused): throw TestFolder.Refused(problems: refused.problems.map(\.description))
    }
  }

  static let enter =
    "return flow \"enter\" { account = \"any\", steps = { { \"phone_otp\" } }, next = { new = \"/new\", returning = \"/home\" } }"

  @Test func usersWhoStaySignedInHaveTheLongerTimes() async throws {
    let login = """
      return flow "login" { account = "existing", steps = { "phone_otp" },
        session = { remember = { lifetime = "90d", idle = "30d" } } }
      """
    let signIn = "phone \"+919999999999\", account { exists = true }, flow \"login\", send(), right(),"
    let report = try await report(
      """
      case "remembered" {
        client { remember = true }, \(signIn)
        wait "29d", request { path = "/" }, expect { status = 200 },
        wait "30d", request { path = "/" }, expect { status = 401 },
      },
      case "not remembered" {
        \(signIn) wait "61m", request { path = "/" }, expect { status = 401 },
      },
      case "changed" {
        client { remember = true }, phone "+919999999999", account { exists = true }, flow "login", send(),
        client { remember = false }, right(), wait "61m", request { path = "/" }, expect { status = 401 },
      },
      """,
      [
        "flows/login.lua": login,
        "routes.lua": "return routes { { path = \"/**\", to = \"http://127.0.0.1:3000\" } }",
      ])
    let (holds, text) = (report.holds, report.text(colour: false))
    #expect(holds, "\(text)")
  }

  @Test func aCaseOfFiveWrongCodesAndALockPasses() async throws {
    let report = try await report(
      """
      case "five wrong codes lock for 15 minutes" {
        flow "login", phone "+919999999999", account { exists = true },
        send(), wrong(), wrong(), wrong(), wrong(), wrong(),
        expect { status = 429, code = "too_many_attempts", retry_after = "15m" },
        wait "15m", flow "login", phone "+919999999999", send(), right(), expect { status = "complete" },
      },
      """)
    let text = report.text(colour: false)
    let holds = report.holds
    #expect(holds, "\(text)")
    #expect(report.text(colour: false) == "The only case passes.")
    #expect(
      report.text(colour: false, isVerbose: true)
        == "tests/a.lua\n✓ five wrong codes lock for 15 minutes\n\nThe only case passes.")
  }

  /// Attack: SMS pumping over many numbers, networks and prefixes.
  @Test func ceilingsHoldPumpingOverNetworksAndPrefixes() async throws {
    let policy = """
      return policy "phone_otp" { unknown_account = "reveal", limits = {
        send = { on = "send", per = "phone", max = 4, window = "15m" },
        send_network = { on = "send", per = "network", max = 2, window = "1h" },
        send_prefix = { on = "send", per = "prefix", max = 2, window = "1h" },
        sms_global = { on = "send", per = "global", max = 5, window = "1h" },
        verify = { on = "verify", per = "phone", max = 5, window = "24h", lock = "15m" },
      } }
      """
    let report = try await report(
      """
      case "one network, many prefixes" {
        client { ip = "198.51.100.1" }, flow "enter", phone "+919000000001", send(), expect { messages = 1 },
        client { ip = "198.51.100.2" }, flow "enter", phone "+919111100001", send(), expect { messages = 2 },
        client { ip = "198.51.100.3" }, flow "enter", phone "+919222200001", send(),
        expect { status = 429, code = "rate_limited", retry_after = "1h", messages = 2 },
        client { ip = "203.0.113.3" }, flow "enter", phone "+919222200001", send(), expect { messages = 3 },
      },
      case "many networks, one prefix" {
        client { ip = "198.51.100.1" }, flow "enter", phone "+919000000001", send(), expect { messages = 1 },
        client { ip = "203.0.113.1" }, flow "enter", phone "+919000000002", send(), expect { messages = 2 },
        client { ip = "192.0.2.1" }, flow "enter", phone "+919000000003", send(), expect { status = 429, code = "rate_limited", messages = 2 },
        flow "enter", phone "+919222200001", send(), expect { messages = 3 },
      },
      case "many networks, many prefixes" {
        client { ip = "10.0.0.1" }, flow "enter", phone "+919000000001", send(), client { ip = "10.0.1.1" }, flow "enter", phone "+919111100001", send(),
        client { ip = "10.0.2.1" }, flow "enter", phone "+919222200001", send(), client { ip = "10.0.3.1" }, flow "enter", phone "+919333300001", send(),
        client { ip = "10.0.4.1" }, flow "enter", phone "+919444400001", send(), expect { messages = 5 },
        client { ip = "10.0.5.1" }, flow "enter", phone "+919555500001", send(), expect { status = 429, code = "rate_limited", messages = 5 },
        wait "1h", flow "enter", send(), expect { messages = 6 },
      },
      """, ["policies/phone_otp.lua": policy])
    let text = report.text(colour: false)
    let holds = report.holds
    #expect(holds, "\(text)")
    let lines = report.coverage.limits
    #expect(
      lines.filter { $0.limit != "verify" && $0.limit != "send" }.allSatisfy { $0.charged && $0.refused }, "\(lines)")
  }

  @Test func everyExpectationIsOfTheAnswerBefore() async throws {
    let report = try await report(
      """
      case "all" {
        phone "+919999999999", client { ip = "198.51.100.1", user_agent = "x" },
        flow "enter", expect { status = "pending", step = "phone_otp", messages = 0, locked = false },
        send(), expect { status = 200, attempts_left = 5, resends_left = 3, messages = 1 },
        wrong(), expect { status = 401, code = "invalid_code", attempts_left = 4 },
        resend(), expect { status = 429, code = "resend_too_soon", retry_after = "60s" },
        wait { until_resend = true }, resend(), expect { messages = 2, resends_left = 2 },
        right(), expect { status = "complete", next = "/new" },
        flow "enter", send { until_sent = true }, right(), expect { status = "complete", next = "/home" },
        flow "enter", send { until_sent = true }, wrong { until_locked = true }, expect { locked = true, retry_after = "15m" },
        wait { until_unlocked = true }, flow "enter", send(), wait { until_expired = true }, right(), expect { status = 410, code = "code_expired" },
        flow "login", phone "nonsense", send(), expect { status = 422, field = "phone" },
        flow "login", phone "+919999999998", send(), expect { status = 404, code = "account_not_found" },
        skip(), expect { status = 409 },
      },
      case "an account has what is said of it" {
        phone "+919999999999", account { exists = true, locked = true }, flow "enter", send(), expect { status = 403, code = "disabled" },
      },
      """)
    let text = report.text(colour: false)
    let holds = report.holds
    #expect(holds, "\(text)")
  }

  @Test func aFailureShowsItsTrace() async throws {
    let report = try await report(
      """
      case "three wrong codes lock for an hour" {
        flow "login", phone "+919999999999", account { exists = true },
        send(), wrong(), wait "90s", wrong { until_locked = true },
        expect { status = 429,
          code = "denied", retry_after = "1h" },
      },
      case "nobody is let in without a code" {
        flow "enter", phone "+919999999999",
        right(), expect { status = 422 },
      },
      case "holds" { flow "enter", phone "+919999999999", send(), expect { status = 200 } },
      """)
    let text = report.text(colour: false)
    #expect(report.failures.count == 2)
    #expect(
      report.text(colour: false) == """
        ✗ three wrong codes lock for an hour
          tests/a.lua:2
            0s      flow "login"                   pending, phone_otp due
            0s      phone "+919999999999"
            0s      account { exists = true }
            0s      send()                         pending, phone_otp open
            0s      wrong()                        401 invalid_code, 4 left
            0s      wait "1m30s"                   1m30s
            +1m30s  wrong { until_locked = true }  429 too_many_attempts, retry after
                                                   15m, after 4 wrong ones
            +1m30s  expect { status = 429, code = "denied", retry_after = "1h" }

            tests/a.lua:5
              code         expected "denied"  was "too_many_attempts"
              retry_after  expected "1h"      was "15m"

        ✗ nobody is let in without a code
          tests/a.lua:8
            0s  flow "enter"           pending, phone_otp due
            0s  phone "+919999999999"
            0s  right()

            tests/a.lua:10
              no code has been sent to +919999999999

        2 of 3 cases fail.
        """, "\(text)")
    #expect(
      report.problems(after: .seconds(30)).map(\.description) == [
        "tests/a.lua:5: case \"three wrong codes lock for an hour\" fails: code should be \"denied\", but is \"too_many_attempts\"; "
          + "retry_after should be \"1h\", but is \"15m\"",
        "tests/a.lua:10: case \"nobody is let in without a code\" fails: no code has been sent to +919999999999",
      ])
  }

  @Test func policyWithoutALockIsReported() async throws {
    let report = try await report(
      "case \"x\" { flow \"enter\", phone \"+919999999999\", send(), wrong { until_locked = true }, expect { locked = true } },",
      [
        "policies/phone_otp.lua":
          "return policy \"phone_otp\" { limits = { send = { on = \"send\", per = \"phone\", max = 4, window = \"15m\" }, v = { on = \"verify\", per = \"phone\", max = 3000, window = \"1s\" } } }"
      ])
    #expect(report.failures.isEmpty)
    let none = try await self.report(
      "case \"x\" { flow \"enter\", phone \"+919999999999\", send(), wrong { until_locked = true }, expect { locked = true } },",
      [
        "policies/phone_otp.lua":
          "return policy \"phone_otp\" { limits = { send = { on = \"send\", per = \"phone\", max = 4, window = \"15m\" } } }"
      ],
      timeLimit: .seconds(1))
    #expect(none.problems(after: .seconds(1)).map(\.description).joined().contains("no lock") || none.unreached != nil)
  }

  @Test func timeIsBounded() async throws {
    let report = try await report("case \"late\" { flow \"enter\", expect { status = 200 } },", timeLimit: .zero)
    #expect(!report.holds)
    #expect(
      report.problems(after: .seconds(30)).map(\.description)
        == ["tests/a.lua:2: case \"late\" was not reached: the files in tests/ may take 30s together"])
  }

  @Test func coverageNamesWhatNoCaseTouched() async throws {
    let report = try await report(
      "case \"x\" { flow \"enter\", phone \"+919999999999\", send(), right(), expect { status = 200 } },",
      [
        "policies/phone_otp.lua": """
        return policy "phone_otp" {
          limits = {
            send = { on = "send", per = "phone", max = 4, window = "15m" },
            verify = { on = "verify", per = "phone", window = "24h", lock = "15m",
              max = vary(2, 5, function(f) return 5 end) },
            mail = { on = "send", per = "account", max = 4, window = "15m" },
          },
          send = function(f) if f.phone.country == "US" then return deny "no" end return allow end,
        }
        """,
        "flows/login.lua":
          "return flow \"login\" { account = \"existing\", steps = { \"phone_otp\", { \"email_code\", when = function(f) return true end } } }",
      ])
    #expect(report.holds)
    #expect(
      report.coverage.text(colour: false) == """
        coverage  ██████░░░░░░░░░░░░░░  4 of 13

          limit              charged  refused
          email_code.send    never    never    Plugins/EmailCode/policy.lua:4
          email_code.verify  never    never    Plugins/EmailCode/policy.lua:5
          phone_otp.mail     never    never    policies/phone_otp.lua:6
          phone_otp.send     yes      never    policies/phone_otp.lua:3
          phone_otp.verify   yes      never    policies/phone_otp.lua:4

          function                                calls  answered
          flows/login.steps[2].when                   0  never: flows/login.lua:1
          policies/phone_otp.limits.verify.max        3  5
          policies/phone_otp.send                     1  allow
        """)
    #expect(report.coverage.limits.filter { $0.provider == "phone_otp" }.map(\.charged) == [false, true, true])
    #expect(
      report.coverage.functions.map(\.function) == [
        "flows/login.steps[2].when", "policies/phone_otp.limits.verify.max", "policies/phone_otp.send",
      ])
    #expect(report.coverage.functions.map(\.answers) == [[], ["5"], ["allow"]])
  }

  @Test func coverageNamesTheWaysThatNoCaseWent() async throws {
    let report = try await report(
      """
      case "x" {
        flow "enter", phone "+919999999999", request { path = "/pay/1" }, expect { status = 401 },
        send(), right(), request { path = "/pay/1" }, expect { status = 200 },
        request { method = "DELETE", path = "/pay/1" }, expect { status = 403, code = "read_only" },
      },
      """,
      [
        "policies/phone_otp.lua": """
        local vip = { "+911111111111" }
        local function special(number)
          for _, known in ipairs(vip) do if known == number then return true end end
          return false
        end
        return policy "phone_otp" {
          send = function(f)
            if f.phone.country ~= "IN" and not special(f.phone.e164) then
              return deny "not_here"
            elseif f.phone.type == "voip" or f.clock.suspect then return deny "no_voip" else
              local name = f.account.id or "nobody"
              return name == "nobody" and allow or allow
            end
          end,
        }
        """,
        "routes.lua": """
        return routes {
          { path = "/pay/**", to = "http://127.0.0.1:3000",
            decide = function(f) if f.request.method == "DELETE" then return deny "read_only" end return allow end },
          { path = "/**", to = "http://127.0.0.1:3000" },
        }
        """,
      ], watchesBranches: true)
    let failures = report.failures.compactMap(\.failure?.summary)
    #expect(failures == [])
    let text = report.coverage.text(colour: false)
    #expect(
      text.hasSuffix(
        """

          function                   calls  answered
          policies/phone_otp.send        1  allow
          routes[1].decide               2  allow, deny "read_only"

          branch                                                    true     not true
          policies/phone_otp.lua:3   for _, known in ipairs(vip)    never
          policies/phone_otp.lua:3   if known == number             never    never
          policies/phone_otp.lua:8   f.phone.country ~= "IN"        never    yes
          policies/phone_otp.lua:8   if f.phone.country ~= "IN" a…  never    yes
          policies/phone_otp.lua:10  f.phone.type == "voip"         never    yes
          policies/phone_otp.lua:10  if f.phone.type == "voip" or…  never    yes
          policies/phone_otp.lua:11  f.account.id                   never    yes
          policies/phone_otp.lua:12  name == "nobody"               yes      never
          policies/phone_otp.lua:12  allow                          yes      never
        """), "\(text)")
    #expect(text.split(separator: "\n").allSatisfy { $0.count <= 80 }, "\(text)")
  }

  @Test func aRequestIsJudgedByItsRoute() async throws {
    let report = try await report(
      """
      case "a stranger" {
        request { path = "/x" }, expect { status = 401, code = "unauthenticated" },
        request { path = "/assets/a.css" }, expect { status = 200 },
        request { path = "//x" }, expect { status = 400 },
        request { host = "elsewhere.example", path = "/only" }, expect { status = 401 },
        request { method = "POST", path = "/get" }, expect { status = 404, code = "no_route" },
      },
      case "someone who signed in" {
        flow "enter", phone "+919999999999", send(), right(),
        request { path = "/x" }, expect { status = 200 },
        request { path = "/mail" }, expect { status = 403, code = "email_not_verified" },
        request { path = "/pay", query = "a=b" }, expect { status = 200 },
        wait "5m", request { path = "/pay" }, expect { status = 403, code = "step_up_required", step = "phone_otp" },
        request { path = "/broken" }, expect { status = 503, code = "policy_error" },
        wait "1h", request { path = "/x" }, expect { status = 401 },
      },
      case "shown" { request { method = "PUT", path = "/x", query = "q" }, expect { status = 200 } },
      """,
      [
        "routes.lua": """
        return routes {
          { path = "/assets/**", to = "http://127.0.0.1:3000", allow = true },
          { path = "/mail", to = "http://127.0.0.1:3000", require = { email_verified = true } },
          { path = "/pay", to = "http://127.0.0.1:3000", require = { passed = "phone_otp", within = "5m" } },
          { path = "/broken", to = "http://127.0.0.1:3000", decide = function(f) return f.session["ac"] end },
          { path = "/x", to = "http://127.0.0.1:3000" },
          { path = "/only", to = "http://127.0.0.1:3000" },
          { path = "/get", to = "http://127.0.0.1:3000", methods = { "GET" } },
        }
        """
      ])
    #expect(report.failures.map(\.name) == ["shown"], "\(report.text(colour: false))")
  }

  /// A failing function is reported once and first, however many cases it affects. A case that expects the failure
  /// passes.
  @Test func failingFunctionIsReportedOnce() async throws {
    let sends = "flow \"enter\", phone \"+919999999999\", send()"
    let report = try await report(
      """
      case "one" { \(sends), right(), expect { status = 200 } },
      case "two" { \(sends), expect { status = 200 } },
      case "wanted" { \(sends), expect { status = 503, code = "policy_error" }, expect { messages = 1 } },
      case "three" { \(sends), request { path = "/x" }, expect { status = 200 } },
      """,
      [
        "policies/phone_otp.lua":
          "return policy \"phone_otp\" {\n  send = function(f) return nil .. f.phone.country end }"
      ])
    let fault =
      "policies/phone_otp.lua:2: attempt to concatenate a nil value; check first that the value is not nil, as in "
      + "`f.account.exists and f.account.age > 60`"
    #expect(
      report.problems(after: .seconds(30)).map(\.description) == [
        "\(fault); 3 cases fail because of it, the first is \"one\" (tests/a.lua:2)",
        "tests/a.lua:4: case \"wanted\" fails: messages should be 1, but is 0",
      ])
    let text = report.text(colour: false)
    #expect(
      text.hasPrefix(
        """
        ✗ policies/phone_otp.lua:2: attempt to concatenate a nil value; check first that
          the value is not nil, as in `f.account.exists and f.account.age > 60`
          3 cases fail because of it:
            tests/a.lua:2  one
            tests/a.lua:3  two
            tests/a.lua:5  three

        ✗ wanted
          tests/a.lua:4
        """), "\(text)")
    #expect(text.hasSuffix("\n\n4 of 4 cases fail."), "\(text)")
    let all = report.text(colour: false, isVerbose: true)
    #expect(all.hasPrefix("tests/a.lua\n✗ one\n  tests/a.lua:2\n"), "\(all)")
    #expect(all.components(separatedBy: "attempt to concatenate").count > 4, "every case shows its cause: \(all)")
  }

  @Test func aResultOfVaryOutsideOfItsBoundsIsWarnedOf() async throws {
    let policy = """
      return policy "phone_otp" { limits = {
        send = { on = "send", per = "phone", window = "15m", max = vary(1, 4, function(f) return 9 end) },
        verify = { on = "verify", per = "phone", max = 5, window = "24h", lock = vary("5m", "1h", function(f) return "1m" end) },
      } }
      """
    let report = try await report(
      "case \"x\" { flow \"enter\", phone \"+919999999999\", send(), wrong(), expect { status = 401 } },",
      ["policies/phone_otp.lua": policy])
    #expect(
      Set(report.warnings.map(\.description)) == [
        "policies/phone_otp.lua:2: limits.send.max: the function of vary returned the number 9, which is outside its bounds, so 4 is "
          + "taken: widen the bounds or change the function",
        "policies/phone_otp.lua:3: limits.verify.lock: the function of vary returned the text \"1m\", which is outside its bounds, so "
          + "\"5m\" is taken: widen the bounds or change the function",
      ])
    #expect(report.holds && report.text(colour: false).contains("warning: policies/phone_otp.lua:2: limits.send.max"))
  }

  @Test func failingPolicyIsReportedWithItsLocation() async throws {
    let report = try await report(
      "case \"x\" { flow \"enter\", phone \"+919999999999\", send(), request { path = \"/x\" }, expect { status = 200 } },",
      ["policies/phone_otp.lua": "return policy \"phone_otp\" {\n  send = function(f) return f.phone[\"contry\"] end }"]
    )
    #expect(
      report.outcomes.first?.trace.map(\.outcome).contains(
        "503 policy_error, policies/phone_otp.lua:2: unknown fact `f.phone.contry`; did you mean `country`?") ?? false,
      "\(report.text(colour: false))")
    // If only one line is shown per case, that line names the function.
    #expect(
      report.problems(after: .seconds(30)).map(\.description) == [
        "policies/phone_otp.lua:2: unknown fact `f.phone.contry`; did you mean `country`?; case \"x\" fails because of it (tests/a.lua:2)"
      ])
    let sent = try await self.report(
      "case \"x\" { flow \"enter\", phone \"+919999999999\", send(), right(), expect { status = 200 } },",
      ["policies/phone_otp.lua": "return policy \"phone_otp\" {\n  send = function(f) return f.phone[\"contry\"] end }"]
    )
    #expect(
      sent.outcomes.first?.problem?.message == """
        case "x" fails: policies/phone_otp.lua:2: unknown fact `f.phone.contry`; did you mean `country`?; so no code has been sent to +919999999999
        """)
  }

  /// A refused flow sends nothing. The case that fails says why.
  @Test func missingCodeIsExplainedByTheLastRefusal() async throws {
    let report = try await report(
      "case \"x\" { flow \"register\", phone \"+919999999999\", send(), right(), expect { status = \"complete\" } },",
      [
        "accounts.lua": "return accounts { registration = \"invited\" }",
        "flows/register.lua":
          "return flow \"register\" { purpose = \"register\", account = \"new\", steps = { { \"phone_otp\" } } }",
      ])
    #expect(
      report.outcomes.first?.problem?.message == """
        case "x" fails: no code has been sent to +919999999999: the last answer was 403 invitation_required
        """)
  }

  /// `admit` sees the groups of `invited()`, as in a gateway.
  @Test func admitSeesTheGroupsOfAnInvitation() async throws {
    let register = "flow \"register\", phone \"+919999999999\", send(), right()"
    let report = try await report(
      """
      case "without the group" { invited(), \(register), expect { status = 403, code = "not_staff" } },
      case "with the group" { invited { groups = { "staff" } }, \(register), expect { status = "complete" } },
      """,
      [
        "accounts.lua": """
        return accounts {
          registration = "invited", groups = { staff = members() },
          admit = function(f) if f.account.groups.staff then return allow end return deny "not_staff" end,
          reasons = { not_staff = "Only for staff." },
        }
        """,
        "flows/register.lua":
          "return flow \"register\" { purpose = \"register\", account = \"new\", steps = { { \"phone_otp\" } } }",
      ])
    #expect(report.holds, "\(report.text(colour: false))")
  }

  /// The runner reads the flow of a case, which evaluates functions. These calls do not count for coverage.
  @Test func runnerCallsDoNotCountForCoverage() async throws {
    let files = [
      "flows/enter.lua":
        "return flow \"enter\" { account = \"any\", steps = { { \"phone_otp\" }, { \"email_code\", when = function(f) return false end } } }"
    ]
    var calls: [Int] = []
    for acts in [
      "send(), right()", "send(), wait { until_resend = true }, wait { until_expired = true }, resend(), right()",
    ] {
      let report = try await report(
        "case \"x\" { flow \"enter\", phone \"+919999999999\", \(acts), expect { status = \"complete\" } },", files)
      #expect(report.holds, "\(report.text(colour: false))")
      calls.append(report.coverage.functions.map(\.calls).reduce(0, +))
    }
    #expect(calls == [1, 1])
  }

  @Test func colourIsOnlyForTerminals() async throws {
    let report = try await report("case \"x\" { flow \"enter\", expect { status = 404 } },")
    #expect(!report.text(colour: false).contains("\u{1b}"))
    #expect(report.text(colour: true).contains("\u{1b}[31m✗\u{1b}[0m"))
  }
}
