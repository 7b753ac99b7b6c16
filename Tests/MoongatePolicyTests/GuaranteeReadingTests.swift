import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// Reading guarantees.lua, and the problems of invalid statements with their lines.
@Suite struct GuaranteeReadingTests {
  struct Mistake: Sendable, CustomTestStringConvertible {
    let text: String
    let problems: [String]
    var testDescription: String { problems.first ?? text }

    init(_ body: String, _ problems: String...) {
      text = body
      self.problems = problems.map { "guarantees.lua:\($0)" }
    }
  }

  private static func one(_ body: String) -> String {
    "return guarantees {\n  guarantee \"it holds\" {\n\(body)\n  },\n}"
  }

  static let mistakes: [Mistake] = [
    Mistake("return routes {}", " must return guarantees { … }, but returns `routes`"),
    Mistake("return guarantee \"x\" {}", " must return guarantees { … }, but returns `guarantee`"),
    Mistake("return 5", " must return guarantees { … }, but returns the number 5"),
    Mistake("return guarantees { \"x\" ", "1: '}' expected near <eof>"),
    Mistake(
      "return guarantees {\n  { route = \"/admin/**\", factors = 2 },\n}",
      "2: must be guarantee \"administration takes two factors\" { route = \"/admin/**\", factors = 2 }, not a table"),
    Mistake(
      "return guarantees {\n  \"administration takes two factors\",\n}",
      "2: must be guarantee \"administration takes two factors\" { route = \"/admin/**\", factors = 2 }, not \"administration takes two factors\""
    ),
    Mistake(
      "return guarantees {\n  guarantee \"administration takes two factors\",\n}",
      "2: a guarantee needs a table after its statement, as in guarantee \"administration takes two factors\" { route = \"/admin/**\", factors = 2 }"
    ),
    Mistake(
      "return guarantees {\n  guarantee \" \" { route = \"/**\", factors = 1 },\n}",
      "2: a guarantee needs a statement in words, as in guarantee \"administration takes two factors\" { route = \"/admin/**\", factors = 2 }"
    ),
    Mistake(
      "return guarantees {\n  guarantee \"a\" { route = \"/**\", factors = 1 },\n  guarantee \"a\" { route = \"/x\", factors = 1 },\n}",
      "3: says \"a\" again, first in line 2: give each its own words"),
    Mistake(
      "return guarantees {\n  first = guarantee \"a\" { route = \"/**\", factors = 1 },\n}",
      "1: guarantees takes a list: guarantees { guarantee \"administration takes two factors\" { route = \"/admin/**\", factors = 2 }, … }"
    ),
    Mistake(
      "return guarantees {\n  guarante \"a\" { route = \"/**\", factors = 1 },\n}",
      "2: unknown name `guarante`; did you mean `guarantee`?"),
    Mistake(
      one(""),
      "2: guarantees nothing: state what sessions must have passed, as in session = { passed = \"pin\" }, or name a route"
    ),
    Mistake(
      one("account = { has_pin = true },"),
      "2: guarantees nothing: state what sessions must have passed, as in session = { passed = \"pin\" }, or name a route"
    ),
    Mistake(
      one("rout = \"/admin/**\", factors = 2,"),
      "3: factors: applies only to a guarantee with `route` or `app`; for sessions as they begin, write session = { factors = … }",
      "3: rout: unknown field; did you mean `route`? (a pattern of paths, such as \"/admin/**\")"),
    Mistake(one("route = \"admin\",\nfactors = 2,"), "3: route: \"admin\" must begin with /"),
    Mistake(
      one("route = \"/a**\",\nfactors = 2,"),
      "3: route: \"/a**\" has ** within a segment; ** stands alone between slashes"),
    Mistake(one("route = 5,\nfactors = 2,"), "3: route: must be a text in quotes, not the number 5"),
    Mistake(
      one("route = \"/**\", host = \"Admin.example.com\",\nfactors = 2,"),
      "3: host: \"Admin.example.com\" is not a host name in lower case, without port and trailing dot; did you mean `admin.example.com`?"
    ),
    Mistake(
      one("route = \"/**\","), "2: guarantees nothing: write passed = \"pin\" or factors = 2, or group = \"ops\""),
    Mistake(one("route = \"/**\",\nfactors = 0,"), "4: factors: must be a whole number from 1 to 9, not the number 0"),
    Mistake(one("route = \"/**\",\nfactors = \"two\","), "4: factors: must be a whole number from 1 to 9, not \"two\""),
    Mistake(
      one("route = \"/**\",\nfactors = 1.5,"), "4: factors: must be a whole number from 1 to 9, not the number 1.5"),
    Mistake(
      one("route = \"/**\",\npassed = \"pni\","), "4: passed: unknown provider \"pni\"; did you mean `pin`?"),
    Mistake(
      one("route = \"/**\",\npassed = 7,"),
      "4: passed: must name a provider in quotes, or several, as in any_of { \"pin\", \"totp\" }, not the number 7"),
    Mistake(
      one("route = \"/**\",\npassed = { \"pin\" },"),
      "4: passed: must name a provider in quotes, or several, as in any_of { \"pin\", \"totp\" }, not a table"),
    Mistake(
      one("route = \"/**\",\npassed = any_of {},"),
      "4: passed: any_of takes a list of providers, as in any_of { \"pin\", \"totp\" }"),
    Mistake(
      one("route = \"/**\",\npassed = any_of { \"pin\", \"topt\" },"),
      "4: passed: unknown provider \"topt\"; did you mean `totp`?"),
    Mistake(
      one("route = \"/**\",\nfactors = 2, within = \"5m\","),
      "4: within: requires `passed`: it is measured from the time when that provider was passed"),
    Mistake(
      one("route = \"/**\", passed = \"pin\",\nwithin = 5,"),
      "4: within: a bare number is not a duration; write \"5s\" for seconds or \"5m\" for minutes"),
    Mistake(
      one("route = \"/**\", passed = \"pin\",\nwithin = \"5 minutes\","),
      "4: within: \"5 minutes\" is not a duration; did you mean \"5m\"?"),
    Mistake(
      one(
        "route = \"/**\", factors = 2,\naccount = { has_pin = true },\nclient = { new_device = true },\nsession = { passed = \"pin\" },"
      ),
      "4: account: a guarantee with `route` covers every session that the route accepts: remove this",
      "5: client: a guarantee with `route` covers every session that the route accepts: remove this",
      "6: session: a guarantee with `route` covers every session that the route accepts: remove this; write `passed` or `factors` beside `route`"
    ),
    Mistake(
      one("account = { has_pin = true },\npassed = \"pin\","),
      "2: guarantees nothing: state what sessions must have passed, as in session = { passed = \"pin\" }, or name a route",
      "4: passed: applies only to a guarantee with `route` or `app`; for sessions as they begin, write session = { passed = … }"
    ),
    Mistake(
      one("session = { passed = \"pin\" },\nhost = \"a.example.com\",\nwithin = \"5m\","),
      "4: host: applies only to a guarantee with `route`",
      "5: within: applies only to a guarantee with `route` or `app`"),
    Mistake(one("session = \"pin\","), "3: session: must be a table, as in `{ … }`, not \"pin\""),
    Mistake(one("session = {},"), "3: session: guarantees nothing: write passed = \"pin\" or factors = 2"),
    Mistake(
      one("session = {\npassd = \"pin\" },"), "3: session: guarantees nothing: write passed = \"pin\" or factors = 2",
      "4: session.passd: unknown field; did you mean `passed`? (the name of a provider, or any_of { … })"),
    Mistake(
      one("session = { passed = \"pin\",\nwithin = \"5m\" },"),
      "4: session.within: unknown field; available: `factors` and `passed`"),
    Mistake(one("account = true,\nsession = { factors = 2 },"), "3: account: must be a table, as in `{ … }`, not true"),
    Mistake(
      one("account = { has_pni = true },\nsession = { factors = 2 },"),
      "3: account.has_pni: unknown field; did you mean `has_pin`? (true or false)"),
    Mistake(
      one("account = { has_pin = \"yes\" },\nsession = { factors = 2 },"),
      "3: account.has_pin: must be true or false, not \"yes\""),
    Mistake(
      one("account = { age = 5 },\nsession = { factors = 2 },"),
      "3: account.age: unknown field; available: `email_verified`, `exists`, `factors`, `has_email`, `has_pin` and `phone_verified`"
    ),
    Mistake(
      one("account = { factors = { topt = true } },\nsession = { factors = 2 },"),
      "3: account.factors.topt: unknown provider \"topt\"; did you mean `totp`?"),
    Mistake(
      one("account = { factors = { \"totp\" } },\nsession = { factors = 2 },"),
      "3: account.factors: \"totp\" is not a field; write fields as `name = value`"),
    Mistake(
      one("account = { has_pin = true,\nfactors = { pin = false } },\nsession = { factors = 2 },"),
      "4: account.factors.pin: contradicts `has_pin`"),
    Mistake(
      one("account = { email_verified = true, has_email = false },\nsession = { factors = 2 },"),
      "3: account: these facts contradict each other: a true fact requires an existing account, and a verified address requires an address"
    ),
    Mistake(
      one("account = { exists = false, has_pin = true },\nsession = { factors = 2 },"),
      "3: account: these facts contradict each other: a true fact requires an existing account, and a verified address requires an address"
    ),
    Mistake(
      one("client = { new_devce = true },\nsession = { factors = 2 },"),
      "3: client.new_devce: unknown field; did you mean `new_device`? (true or false)"),
    Mistake(
      one("client = { new_device = 1 },\nsession = { factors = 2 },"),
      "3: client.new_device: must be true or false, not the number 1"),
    Mistake(
      one("session = { factors = 2 },\nsession = { factors = 1 },"),
      "4: session: is set twice in one table, first in line 3: rename or remove one of them"),
  ]

  @Test(arguments: mistakes) func isRefused(_ mistake: Mistake) throws {
    let found = try GuaranteeFolder(["guarantees.lua": mistake.text]).problems()
    #expect(found == mistake.problems, "\(found)")
  }

  @Test func unconfiguredProviderIsRefused() throws {
    let folder = try GuaranteeFolder([
      "gateway.lua": TestFolder.gateway,
      "guarantees.lua": "return guarantees { guarantee \"a\" { route = \"/**\", passed = \"pin\" } }",
    ])
    #expect(
      folder.problems() == [
        "guarantees.lua:1: passed: gateway.lua does not configure the provider `pin`, so no session could pass it"
      ])
  }

  /// Only configured providers have facts, so such a guarantee would cover no account.
  @Test(arguments: ["has_pin = true", "has_pin = false", "factors = { pin = true }"])
  func factOfAnUnconfiguredProviderIsRefused(_ fact: String)
    throws
  {
    let folder = try GuaranteeFolder([
      "gateway.lua": TestFolder.gateway,
      "guarantees.lua": "return guarantees { guarantee \"a\" { account = { \(fact) }, session = { factors = 1 } } }",
    ])
    let told =
      fact.hasPrefix("has_pin")
      ? "account.has_pin: gateway.lua does not configure a PIN provider, so no account has a PIN"
      : "account.factors.pin: gateway.lua does not configure the provider `pin`, so no session could pass it"
    #expect(folder.problems() == ["guarantees.lua:1: \(told)"])
  }

  @Test func fileIsOptionalAndPartOfTheGeneration() throws {
    let without = try GuaranteeFolder([:]).generation()
    let with = try GuaranteeFolder(["guarantees.lua": "return guarantees {}"]).generation()
    #expect(without.guarantees.isEmpty && with.guarantees.isEmpty)
    #expect(without.id != with.id)
    #expect(!with.warnings.contains { $0.location.file == "guarantees.lua" })
  }

  @Test func documentedFormsAreRead() throws {
    let generation = try GuaranteeFolder([
      "guarantees.lua": """
      return guarantees {
        guarantee "a passcode is asked for on a new device" { account = { has_pin = true }, client = { new_device = true }, session = { passed = "pin" } },
        guarantee "administration takes two factors"        { route = "/admin/**", factors = 2 },
        guarantee "nobody pays without a fresh code"         { route = "/pay/**", passed = "phone_otp", within = "5m" },
        guarantee "a second factor of any kind" { account = { factors = { totp = true } }, session = { passed = any_of { "totp", "pin" }, factors = 2 } },
      }
      """
    ]).generation()
    let pin = ProviderName(test: "pin")
    let totp = ProviderName(test: "totp")
    let phone = ProviderName(test: "phone_otp")
    let guarantees = generation.guarantees
    #expect(guarantees.map(\.location.line) == [2, 3, 4, 5])
    #expect(guarantees.map(\.demand.passed) == [[pin], [], [phone], [totp, pin]])
    #expect(guarantees.map(\.demand.factors) == [nil, 2, nil, 2])
    #expect(guarantees.map(\.demand.within) == [nil, nil, .seconds(300), nil])
    guard case .sessions(let facts) = guarantees[0].scope, case .route(nil, let pattern) = guarantees[1].scope else {
      Issue.record("\(guarantees)")
      return
    }
    #expect(
      facts[.keeps(pin)] == true && facts[.newDevice] == true && facts[.exists] == true && facts[.keeps(totp)] == nil)
    #expect(pattern.text == "/admin/**")
  }
}
