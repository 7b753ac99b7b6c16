import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import PhoneOTP
import Testing

@testable import MoongatePolicy

/// `clock`, `client { known = true }`, `token` and `guarantee` in cases.
@Suite struct CaseCircumstancesTests {
  private func report(_ cases: String, _ files: [String: String?] = [:]) async throws -> CaseReport {
    let folder = try TestFolder(
      files.merging(["tests/a.lua": "return tests {\n\(cases)\n}", "flows/enter.lua": CaseRunnerTests.enter]) {
        first, _ in first
      })
    switch ConfigurationLoader(providers: TestFolder.providers.map(DescribedProvider.init), environment: [:]).read(
      folder: folder.scratch.path)
    {
    case .success(let loaded):
      let runner = CaseRunner(
        loaded.generation, providers: try ProviderRegistry([PhoneOTP()]), makeStore: { try SQLiteStore.memory() })
      return try await runner.run(loaded.cases)
    case .failure(let refused): throw TestFolder.Refused(problems: refused.problems.map(\.description))
    }
  }

  private static func policy(_ function: String) -> String {
    """
    return policy "phone_otp" { unknown_account = "reveal", send = \(function), limits = {
      send = { on = "send", per = "phone", max = 9, window = "15m" },
      verify = { on = "verify", per = "phone", max = 5, window = "24h", lock = "15m" },
    } }
    """
  }

  @Test func caseClockSetsTheTimeOfPolicies() async throws {
    let night = Self.policy(
      "function(f) if hour(f.now, \"Asia/Kolkata\") >= 23 then return deny \"closed_at_night\" end return allow end")
    let report = try await report(
      """
      case "closed at half past eleven" {
        clock "2026-01-01T23:30+05:30", flow "enter", phone "+919999999999", send(), expect { code = "closed_at_night" },
        clock "2026-01-02T06:00+05:30", flow "enter", send(), expect { status = 200 },
      },
      """, ["policies/phone_otp.lua": night])
    let holds = report.holds
    #expect(holds, "\(report.text(colour: false))")
  }

  @Test func clockOfACaseMovesOnlyForward() async throws {
    let report = try await report(
      """
      case "back" {
        flow "enter", phone "+919999999999", send(), expect { status = 200 }, clock "2026-01-01T23:30+05:30", expect { status = 200 },
      },
      """)
    #expect(
      report.outcomes.first?.failure?.summary.contains("the clock can only advance") == true,
      "\(report.text(colour: false))")
  }

  @Test(arguments: [
    "", "23:30", "2026-01-01", "2026-01-01T23:30", "2026-01-01 23:30+05:30", "2026-02-30T00:00Z", "2026-01-01T24:00Z",
    "2026-01-01T23:60Z",
    "2026-01-01T23:30+5:30", "2026-01-01T23:30+25:00", "2026-01-01T23:30:61Z", "tomorrow", "1767290400",
  ]) func aWrongMomentIsRefused(_ text: String) throws {
    #expect(CaseReader.moment(text) == nil)
    let tests = "return tests { case \"a\" { clock \"\(text)\", flow \"login\", expect { status = 200 } } }"
    let problems = try TestFolder(["tests/a.lua": tests]).problems()
    #expect(problems.count == 1 && problems[0].contains("write date, time and the offset from UTC"), "\(problems)")
  }

  @Test func offsetsAreTakenFromTheMoment() {
    #expect(CaseReader.moment("2026-01-01T23:30+05:30") == Timestamp(milliseconds: 1_767_290_400_000))
    #expect(CaseReader.moment("2026-01-01T18:00:00Z") == Timestamp(milliseconds: 1_767_290_400_000))
    #expect(CaseReader.moment("2026-01-01T12:30-05:30") == Timestamp(milliseconds: 1_767_290_400_000))
  }

  @Test func aKnownDeviceIsNotNew() async throws {
    let known = Self.policy("function(f) if f.client.new_device then return deny \"new_device\" end return allow end")
    let report = try await report(
      """
      case "known and new" {
        phone "+919999999999", account { exists = true },
        client { known = true }, flow "enter", send(), expect { status = 200 },
        client { known = false }, flow "enter", send(), expect { code = "new_device" },
      },
      case "nobody to know" { client { known = true }, flow "enter", phone "+919999999999", send(), expect { status = 200 } },
      """, ["policies/phone_otp.lua": known])
    #expect(report.outcomes.map(\.holds) == [true, false], "\(report.text(colour: false))")
    #expect(report.outcomes.last?.failure?.summary.contains("needs an account") == true)
  }

  @Test func aProgramAsksWithAToken() async throws {
    let routes = """
      return routes {
        { path = "/ops/**", to = "http://127.0.0.1:3000", require = { group = "ops" }, tokens = true },
        { path = "/ci/**", to = "http://127.0.0.1:3000", tokens = { "ci" } },
        { path = "/**", to = "http://127.0.0.1:3000" },
      }
      """
    let report = try await report(
      """
      case "tokens" {
        token "ci", request { path = "/ci/1" }, expect { status = 200 },
        request { path = "/ops/1" }, expect { status = 403 },
        request { path = "/people" }, expect { status = 401 },
        token { name = "other", groups = { "ops" } }, request { path = "/ops/1" }, expect { status = 200 },
        request { path = "/ci/1" }, expect { status = 401 },
      },
      """, ["routes.lua": routes, "accounts.lua": "return accounts { groups = { ops = members() } }"])
    let holds = report.holds
    #expect(holds, "\(report.text(colour: false))")
  }

  @Test func guaranteesAreCheckedAgainstTheSession() async throws {
    let statements = """
      return guarantees {
        guarantee "a code was entered" { session = { passed = "phone_otp" } },
        guarantee "two factors" { session = { factors = 2 } },
      }
      """
    let report = try await report(
      """
      case "one factor" {
        flow "enter", phone "+919999999999", send(), guarantee "a code was entered",
      },
      case "signed in" { flow "enter", phone "+919999999999", send(), right(), guarantee "a code was entered" },
      case "two" { flow "enter", phone "+919999999999", send(), right(), guarantee "two factors" },
      """, ["guarantees.lua": statements])
    #expect(report.outcomes.map(\.holds) == [false, true, false], "\(report.text(colour: false))")
    #expect(report.outcomes[0].failure?.summary.contains("no user is signed in here") == true)
    #expect(report.outcomes[2].failure?.summary.contains("it passed phone_otp") == true)
  }

  @Test func anUnknownStatementIsRefused() throws {
    let problems = try TestFolder(["tests/a.lua": "return tests { case \"a\" { flow \"login\", guarantee \"none\" } }"])
      .problems()
    #expect(problems.count == 1 && problems[0].contains("guarantees.lua has no statement"), "\(problems)")
  }
}

/// Messages with the right line and advice.
@Suite struct MessageOfMistakeTests {
  @Test(arguments: [
    ("3min", "3m"), ("2 hours", "2h"), ("1w", "7d"), ("90 Sec", "90s"), ("1day", "1d"),
  ]) func aDurationInOtherWordsIsSuggested(_ text: String, _ meant: String) throws {
    let problems = try TestFolder([
      "policies/phone_otp.lua": "return policy \"phone_otp\" {\n  code = { ttl = \"\(text)\" },\n}"
    ]).problems()
    #expect(
      problems == ["policies/phone_otp.lua:2: code.ttl: \"\(text)\" is not a duration; did you mean \"\(meant)\"?"],
      "\(problems)")
  }

  @Test(arguments: [
    ("  code = { length = 6 }\n  message = \"{code}\",", 2), ("  message = \"{code}\"\n\n  code = { length = 6 },", 2),
    ("  send = function(f)\n    return allow\n  end\n  message = \"{code}\",", 4),
    ("  code = {\n    length = 6\n    ttl = \"10m\",\n  },", 3),
  ]) func missingCommaIsReportedAtItsPosition(_ body: String, _ line: Int) throws {
    let problems = try TestFolder(["policies/phone_otp.lua": "return policy \"phone_otp\" {\n\(body)\n}"]).problems()
    #expect(
      problems.count == 1
        && problems[0].hasPrefix("policies/phone_otp.lua:\(line): is a comma missing after this field?"), "\(problems)")
  }

  @Test func otherSyntaxErrorsAreReportedAsLuaReportsThem() throws {
    let problems = try TestFolder([
      "policies/phone_otp.lua": "return policy \"phone_otp\" {\n  send = function(f) return allow\n}"
    ]).problems()
    #expect(problems.count == 1 && !problems[0].contains("comma"), "\(problems)")
  }
}
