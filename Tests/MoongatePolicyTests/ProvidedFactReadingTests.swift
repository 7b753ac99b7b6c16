import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// `f.providers.NAME.FACT` in policies.
@Suite struct ProvidedFactReadingTests {
  private static let send = FunctionName("policies/phone_otp.send")

  private func verdict(_ body: String, _ told: [ProviderName: [String: String]]) throws -> Verdict {
    let folder = try TestFolder([
      "policies/phone_otp.lua": "return policy \"phone_otp\" { send = function(f) \(body) end }"
    ])
    var facts = Facts.test()
    facts.flow = FlowFacts(name: "login", passed: [], reported: told)
    let generation = try folder.generation()
    return try generation.makeEvaluator().verdict(of: Self.send, given: facts)
  }

  private let phone = ProviderName(test: "phone_otp")
  private let mail = ProviderName(test: "email_code")

  @Test func factsAreReadByTheirKinds() throws {
    let body = "if f.providers.phone_otp.country == \"IN\" then return deny \"home\" end return allow"
    #expect(try verdict(body, [phone: ["country": "IN"]]) == .deny("home"))
    #expect(try verdict(body, [phone: ["country": "US"]]) == .allow)
    #expect(try verdict(body, [mail: ["country": "IN"]]) == .allow, "a fact belongs to its own provider")
    #expect(try verdict("return f.providers.email_code.domain == nil and allow or deny \"there\"", [:]) == .allow)
  }

  @Test func factsAreReadByTheProvidersName() throws {
    let body = "if f.phone_otp.country == \"IN\" then return deny \"home\" end return allow"
    #expect(try verdict(body, [phone: ["country": "IN"]]) == .deny("home"))
    #expect(try verdict(body, [mail: ["country": "IN"]]) == .allow)
  }

  /// Attack: an instance is called `account`, so that its facts appear in place of the gateway's.
  @Test func aProviderOfAReservedNameHasTheLongPathAlone() throws {
    for name in ["account", "phone", "limits", "providers", "session"] {
      let descriptor = TestFolder.providers[0].instance(named: try #require(ProviderName(rawValue: name)))
      let facts = DeclaredFact.all(of: [descriptor])
      #expect(facts.contains { $0.path == "providers.\(name).country" })
      #expect(facts.allSatisfy { if case .named = $0.place { false } else { true } }, "\(facts.map(\.path))")
    }
  }

  @Test func identifiersFactsKeepTheirMeaning() throws {
    // Attack: a provider reports a country under its own name, and the policy reads the gateway's fact.
    #expect(
      try verdict("return f.phone.country == nil and allow or deny \"shadowed\"", [phone: ["country": "IN"]]) == .allow)
  }

  @Test(arguments: [
    ("f.providers.phone_otp.contry", "unknown fact `f.providers.phone_otp.contry`; did you mean `country`?"),
    ("f.providers.phone_opt.country", "unknown fact `f.providers.phone_opt`; did you mean `phone_otp`?"),
    (
      "f.providers.totp.digits",
      "`f.providers.totp.digits`: gateway.lua does not configure `totp`, so it reports no facts"
    ),
    ("f.phone_otp.contry", "unknown fact `f.phone_otp.contry`; did you mean `country`?"),
    ("f.phone_opt.country", "unknown fact `f.phone_opt`; did you mean `phone_otp`?"),
    ("f.totp.digits", "`f.totp.digits`: gateway.lua does not configure `totp`, so it reports no facts"),
  ]) func unknownFactsAreRefusedWhereTheyAreRead(_ path: String, _ message: String) throws {
    let policy =
      "return policy \"phone_otp\" {\n  send = function(f)\n    if \(path) then return deny \"no\" end\n    return allow\n  end,\n}"
    #expect(try TestFolder(["policies/phone_otp.lua": policy]).problems() == ["policies/phone_otp.lua:3: \(message)"])
  }

  @Test func routesCannotReadFlowFacts() throws {
    let routes = """
      return routes {
        { path = "/**", to = "http://127.0.0.1:3000", decide = function(f) return f.providers.phone_otp.country and allow or allow end },
      }
      """
    let problems = try TestFolder(["routes.lua": routes]).problems()
    #expect(problems.count == 1 && problems[0].hasPrefix("routes.lua:2: unknown fact `f.providers`"), "\(problems)")
  }

  @Test func editorsKnowThem() {
    let text = EditorTypes(providers: TestFolder.providers).text
    #expect(
      text.contains(
        "---@class (exact) moongate.Facts.providers\n---@field phone_otp moongate.Facts.providers.phone_otp"))
    #expect(
      text.contains(
        "---@class (exact) moongate.Facts.providers.phone_otp\n---@field country string? the number's country in two letters"
      ))
    #expect(text.contains("---@field providers moongate.Facts.providers"))
    #expect(
      text.contains(
        "---@class (exact) moongate.Facts.phone_otp\n---@field country string? the number's country in two letters"))
    #expect(text.contains("---@field phone_otp moongate.Facts.phone_otp"))
  }

  /// The prover does not know what a provider will report, so such a condition can have either result.
  @Test func proverTreatsProvidedFactsAsUnknown() throws {
    let files: [String: String?] = [
      "flows/login.lua": """
      return flow "login" {
        account = "existing",
        steps = { { "phone_otp" }, { "pin", when = function(f) return f.providers.phone_otp.country ~= "IN" end } },
      }
      """,
      "guarantees.lua":
        "return guarantees { guarantee \"a passcode always\" { account = { exists = true }, session = { passed = \"pin\" } } }",
    ]
    #expect(try GuaranteeFolder(files).refutations().count == 1)
  }

  /// Attack on the prover: a fact with two paths is assumed to be true for one and false for the other, or always
  /// false.
  @Test func proverTakesBothPathsForOneFact() throws {
    let login = { (when: String) -> [String: String?] in
      [
        "gateway.lua": GuaranteeFolder.gateway.replacing("pin = {}", with: "pin = {}, passkey = {}"),
        "flows/login.lua":
          "return flow \"login\" { account = \"existing\", steps = { { \"phone_otp\" }, { \"pin\", when = function(f) return \(when) end } } }",
        "guarantees.lua":
          "return guarantees { guarantee \"a passcode always\" { account = { exists = true }, session = { passed = \"pin\" } } }",
      ]
    }
    for when in ["f.passkey.uv", "not f.passkey.uv", "f.providers.passkey.uv", "not f.providers.passkey.uv"] {
      #expect(try GuaranteeFolder(login(when)).refutations().count == 1, "\(when)")
    }
    #expect(try GuaranteeFolder(login("f.passkey.uv == f.providers.passkey.uv")).refutations() == [])
  }
}
