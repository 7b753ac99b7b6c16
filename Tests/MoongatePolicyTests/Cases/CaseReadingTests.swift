import Foundation
import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongatePolicy

@Suite struct CaseReadingTests {
  private func cases(_ text: String) throws -> [PolicyCase] {
    let gateway = TestFolder.gateway.replacing("providers = { ", with: "providers = { pin = {}, ")
    let folder = try TestFolder(["gateway.lua": gateway, "tests/a.lua": text])
    switch ConfigurationLoader(providers: ShippedProviders.all, environment: [:]).read(folder: folder.scratch.path) {
    case .success(let loaded): return loaded.cases
    case .failure(let refused): throw TestFolder.Refused(problems: refused.problems.map(\.description))
    }
  }

  /// A complete example.
  @Test func theExampleIsRead() throws {
    let cases = try cases(
      """
      return tests {
        case "five wrong codes lock for 15 minutes" {
          flow "login", phone "+919999999999", account { exists = true },
          send(), wrong(), wrong(), wrong(), wrong(), wrong(),          -- or wrong { until_locked = true }
          expect { status = 429, code = "too_many_attempts", retry_after = "15m" },
          wait "15m", flow "login", phone "+919999999999", send(), right(), expect { status = "complete" },
        },
      }
      """)
    let one = try #require(cases.first)
    #expect(cases.count == 1)
    #expect(
      one.name == "five wrong codes lock for 15 minutes" && one.location == SourceLocation(file: "tests/a.lua", line: 2)
    )
    var locked = PolicyCase.Expectation()
    locked.status = .http(429)
    locked.code = "too_many_attempts"
    locked.retryAfter = .seconds(900)
    var complete = PolicyCase.Expectation()
    complete.status = .flow(.complete)
    #expect(
      one.acts.map(\.kind) == [
        .flow("login"), .identifier(.phone, "+919999999999"), .account(PolicyCase.AccountSetup()),
        .send(untilSent: false), .wrong(.times(1)),
        .wrong(.times(1)), .wrong(.times(1)), .wrong(.times(1)), .wrong(.times(1)), .expect(locked),
        .wait(.duration(.seconds(900))), .flow("login"),
        .identifier(.phone, "+919999999999"), .send(untilSent: false), .right, .expect(complete),
      ])
    #expect(one.acts.map(\.location.line) == [3, 3, 3, 4, 4, 4, 4, 4, 4, 5, 6, 6, 6, 6, 6, 6])
  }

  @Test func everyWordIsRead() throws {
    let one = try #require(
      try cases(
        """
        return tests { case "all" {
          client { ip = "203.0.113.7", user_agent = "curl" }, email "a@example.com", provider "email_code",
          account { exists = true, age = "30d", idle = "1d", phone = "+911", email = "b@example.com", phone_verified = false, has_pin = true, locked = true },
          flow "login", send { until_sent = true }, resend(), resend { until_sent = true }, wrong { until_locked = true }, wrong { times = 3 }, skip(),
          wait { until_unlocked = true }, wait { until_resend = true }, wait { until_expired = true },
          expect { status = 200, attempts_left = 4, resends_left = 2, field = "phone", messages = 1, step = "pin", locked = false, next = "/home" },
        } }
        """
      ).first)
    var account = PolicyCase.AccountSetup()
    account.age = .seconds(30 * 86_400)
    account.idle = .seconds(86_400)
    account.phone = "+911"
    account.email = "b@example.com"
    account.isPhoneVerified = false
    account.hasPIN = true
    account.isLocked = true
    #expect(one.acts.count == 15)
    #expect(one.acts[3].kind == .account(account))
    #expect(
      one.acts[5...8].map(\.kind) == [
        .send(untilSent: true), .resend(untilSent: false), .resend(untilSent: true), .wrong(.untilLocked),
      ])
    #expect(one.acts[11...].map(\.kind).first == .wait(.untilUnlocked))
  }

  /// Cases are Lua, so repeated parts can be locals.
  @Test func partsCanBeShared() throws {
    let cases = try cases(
      """
      local me = phone "+919999999999"
      local function start(name) return flow(name) end
      return tests {
        case "a" { start "login", me, send(), expect { status = 404 } },
        case "b" { start "login", me, send(), expect { status = 404 } },
      }
      """)
    #expect(cases.map(\.acts.count) == [4, 4])
    #expect(cases[1].acts[0].kind == .flow("login") && cases[1].acts[0].location.line == 5)
  }

  /// A flow that was deleted is one problem, however many cases begin it. Cases of a disabled flow are left out.
  @Test func missingFlowIsOneProblem() throws {
    let cases = (1...3).map { "case \"\($0)\" {\n flow \"enter\", send(), expect { status = \"pending\" } }" }
    var files: [String: String?] = [
      "flows/enter.lua": nil, "tests/a.lua": "return tests { \(cases.joined(separator: ",\n")) }",
      "tests/b.lua": "return tests { \(cases[0]) }",
    ]
    let sentence = "there is no flows/enter.lua: remove the cases that begin it, or bring the flow back"
    #expect(
      try TestFolder(files).problems() == [
        "tests/a.lua:2: flow: \(sentence). tests/a.lua:4, tests/a.lua:6, tests/b.lua:2 begin it too"
      ])
    files["flows/enter.lua"] = "return flow \"enter\" { enabled = false }"
    #expect(try TestFolder(files).problems() == [])
  }

  static let mistakes: [(String, String)] = [
    ("return tests {\n  phone \"1\" }", "tests/a.lua:2: must be case \"what it shows\" { … }, not phone"),
    ("return tests { case \"x\" }", "tests/a.lua:1: must be case \"what it shows\" { … }, not case"),
    (
      "return tests { case \"x\" {\n flow \"logn\", expect { status = 404 } } }",
      "tests/a.lua:2: flow: there is no flows/logn.lua; did you mean `login`?"
    ),
    (
      "return tests { case \"x\" {\n send(), flow \"login\", expect { status = 404 } } }",
      "tests/a.lua:2: must follow a flow: begin with flow \"login\""
    ),
    (
      "return tests { case \"x\" { flow \"login\",\n wait(5) } }",
      "tests/a.lua:2: wait takes a string or a table, as in wait \"…\""
    ),
    (
      "return tests { case \"x\" { flow \"login\",\n wait \"5\", expect { status = 404 } } }",
      "\"5\" is not a duration; write \"90s\", \"10m\", \"1h30m\" or \"7d\""
    ),
    (
      "return tests { case \"x\" { flow \"login\",\n expect {\n attempts_lft = 4 } } }",
      "tests/a.lua:3: expect.attempts_lft: unknown field; did you mean `attempts_left`?"
    ),
    (
      "return tests { case \"x\" { flow \"login\", expect {\n status = \"complte\" } } }",
      "tests/a.lua:2: expect.status: \"complte\" is not a status; did you mean `complete`?"
    ),
    ("return tests { case \"x\" { flow \"login\",\n expect {} } }", "tests/a.lua:2: expect: is empty"),
    ("return tests { case \"x\" {\n expect { status = 404 } } }", "tests/a.lua:2: expect: there is no answer yet"),
    ("return tests { case \"x\" {\n flow \"login\" } }", "tests/a.lua:1: case \"x\" has no expectation"),
    (
      "return tests { case \"x\" { flow \"login\",\n wrong, expect { status = 404 } } }",
      "tests/a.lua:2: a word without its (), text or table is not an act"
    ),
    (
      "return tests { case \"x\" { flow \"login\",\n wrong { untl_locked = true }, expect { status = 404 } } }",
      "tests/a.lua:2: wrong.untl_locked: unknown field; did you mean `until_locked`?"
    ),
    (
      "return tests { case \"x\" { flow \"login\", client {\n ip = \"300.1.1.1\" }, expect { status = 404 } } }",
      "tests/a.lua:2: client.ip: \"300.1.1.1\" is not an IP address"
    ),
    (
      "return tests { case \"x\" { flow \"login\", expect { status = 404 } },\n case \"x\" { flow \"login\", expect { status = 404 } } }",
      "tests/a.lua:2: case \"x\" already exists at line 1"
    ),
    (
      "return tests { case \"x\" { flow \"login\", outbox(),\n expect { status = 404 } } }",
      "tests/a.lua:1: `outbox` is not an act of a case"
    ),
    (
      "return tests { case \"x\" { provider \"pn\", flow \"login\", expect { status = 404 } } }",
      "tests/a.lua:1: provider: unknown provider \"pn\"; did you mean `pin`?"
    ),
    ("return routes {}", "tests/a.lua: must return tests { … }, but returns `routes`"),
  ]

  @Test(arguments: mistakes) func everyMistakeHasItsLine(_ text: String, _ problem: String) throws {
    let problems = try TestFolder(["tests/a.lua": text]).problems()
    #expect(problems.contains { $0.contains(problem) }, "\(problems)")
  }

  /// Cases of a provider that gateway.lua does not configure are left out. Misspelled names are still reported.
  @Test(arguments: [
    ("provider \"pin\", flow \"login\"", "gateway.lua does not configure `pin`"),
    ("account { factors = { pin = \"739154\" } }, flow \"login\"", "gateway.lua does not configure `pin`"),
    ("account { has_pin = true }, flow \"login\"", "gateway.lua does not configure a PIN provider"),
    ("account { password = \"x\" }, flow \"login\"", "gateway.lua does not configure a password provider"),
    ("flow \"forgotten\"", "the flow `forgotten` is disabled or its provider is not configured"),
    ("flow \"login\", send(), expect { step = \"pin\" }", "gateway.lua does not configure `pin`"),
  ])
  func aCaseOfAProviderThatIsNotConfiguredIsLeftOut(_ acts: String, _ why: String) throws {
    let folder = try TestFolder([
      "tests/a.lua":
        "return tests {\n case \"x\" { \(acts), expect { status = 404 } },\n case \"y\" { flow \"login\", expect { status = 200 } } }",
      "flows/forgotten.lua":
        "return flow \"forgotten\" { purpose = \"set\", provider = \"pin\", account = \"existing\", steps = { { \"pin\" } } }",
    ])
    let loaded = try ConfigurationLoader(providers: TestFolder.providers.map(DescribedProvider.init), environment: [:])
      .read(folder: folder.scratch.path).get()
    #expect(loaded.cases.map(\.name) == ["y"])
    let told = loaded.generation.warnings.map(\.description)
    #expect(told.contains("tests/a.lua:2: case \"x\" is left out: \(why)"), "\(told)")
  }

  /// Also changes a signature whose last byte is zero. Otherwise, one case in 256 would fail.
  @Test func spoiledSignatureAlwaysDiffers() {
    for last in UInt8.min...UInt8.max { #expect(CaseDevice.spoiled(Data([0x30, last])) != Data([0x30, last])) }
  }

  /// Without an identifier in the case, codes go to one of the account.
  @Test func caseWithoutIdentifierUsesTheAccountsIdentifier() throws {
    let cases = try cases(
      "return tests { case \"x\" { account { phone = \"+919999999999\" }, flow \"login\", send(), expect { status = 404 } } }"
    )
    #expect(cases.map(\.name) == ["x"])
  }
}
