import MoongateCore
import MoongateSDK
import Testing

@testable import MoongatePolicy

/// Guarantees that hold are proved. Proofs that exceed the budget are refused.
@Suite struct GuaranteeProofTests {
  private typealias Make = GuaranteeRefusalTests

  private static let everyEntryPoint: [String: String?] = [
    "flows/login.lua": Make.flow("login", "existing", "any_of { \"phone_otp\", \"email_code\", \"google_oauth\" }"),
    "flows/enter.lua": Make.flow("enter", "any", "any_of { \"phone_otp\", \"google_oauth\" }"),
    "flows/login_password.lua": Make.flow("login_password", "existing", "{ \"password\" }"),
    "flows/password_reset.lua": Make.flow("password_reset", "existing", "{ \"email_code\" }", "{ \"password\" }"),
    "flows/register_email.lua": Make.flow(
      "register_email", "new", "{ \"password\" }", "{ \"email_code\", skippable = true }"),
    "flows/join_phone.lua": Make.flow("join_phone", "existing", "{ \"phone_otp\" }"),
    "flows/step_up.lua": Make.flow(
      "step_up", "existing", "any_of { \"phone_otp\", \"email_code\", \"pin\", \"totp\", \"password\" }"),
    "flows/totp_set.lua": Make.flow("totp_set", "existing", "{ \"totp\" }"),
  ]

  private static func refutations(_ files: [String: String?]) throws -> [String] {
    try GuaranteeFolder(everyEntryPoint.merging(files) { $1 }).refutations()
  }

  @Test func accountRequirementProtectsEveryEntryPoint() throws {
    let files: [String: String?] = [
      "accounts.lua":
        "return accounts { sign_in = { { \"totp\", when = function(f) return f.account.factors.totp end } } }",
      "guarantees.lua": Make.guarantee(
        "the app protects the account",
        "account = { factors = { totp = true } }, session = { passed = \"totp\", factors = 2 }"),
    ]
    #expect(try Self.refutations(files) == [])
    // Without the requirement, each of them opens the account.
    #expect(try Self.refutations(files.merging(["accounts.lua": nil]) { $1 }).count == 1)
  }

  /// Attack: somebody registers by an identity of their own before registration is closed, and joins their account to
  /// another one by a code to its number afterwards.
  @Test(arguments: ["open", "closed"]) func anAccountOfEarlierIsJoined(_ registration: String) throws {
    var files: [String: String?] = Self.everyEntryPoint.mapValues { _ in nil }
    files["flows/login.lua"] = Make.flow("login", "existing", "{ \"google_oauth\" }")
    files["flows/enter.lua"] = Make.flow("enter", "any", "{ \"google_oauth\" }")
    files["accounts.lua"] = "return accounts { registration = \"\(registration)\" }"
    files["guarantees.lua"] = Make.guarantee(
      "no code to a number opens it",
      "account = { phone_verified = true }, session = { passed = any_of { \"google_oauth\", \"email_code\" } }")
    #expect(try Self.refutations(files) == [])
    files["flows/join_phone.lua"] = Self.everyEntryPoint["flows/join_phone.lua"]
    #expect(try Self.refutations(files).count == 1)
  }

  @Test func documentedGuaranteesHold() throws {
    #expect(
      try Self.refutations([
        "accounts.lua": """
        return accounts {
          sign_in = { { "pin", when = function(f) return f.client.new_device and f.account.has_pin end } },
        }
        """,
        "routes.lua": Make.routes(
          "path = \"/admin/**\", require = { passed = \"totp\" }",
          "path = \"/pay/**\", require = { passed = \"phone_otp\", within = \"5m\" }",
          "path = \"/**\""),
        "guarantees.lua": """
        return guarantees {
          guarantee "a passcode is asked for on a new device" { account = { has_pin = true }, client = { new_device = true }, session = { passed = "pin" } },
          guarantee "administration takes two factors"        { route = "/admin/**", factors = 2 },
          guarantee "nobody pays without a fresh code"         { route = "/pay/**", passed = "phone_otp", within = "5m" },
        }
        """,
      ]) == [])
  }

  /// Attack: the prover counts the short lifetime only, and a user who stays signed in for 90 days gets in with a proof
  /// of last month.
  @Test func aRememberedSessionIsAsOldAsItsLifetimeAllows() throws {
    func refutations(_ session: String) throws -> [String] {
      try GuaranteeFolder([
        "flows/login.lua": Make.flow("login", "existing", "{ \"phone_otp\" }", session: session),
        "routes.lua": Make.routes("path = \"/pay/**\""),
        "guarantees.lua": Make.guarantee("once a day", "route = \"/pay/**\", passed = \"phone_otp\", within = \"24h\""),
      ]).refutations()
    }
    #expect(try refutations("") == [])
    let found = try refutations(" session = { remember = { lifetime = \"90d\", idle = \"30d\" } },")
    let oldest = Duration.seconds(90 * 86_400 + 16 * 60)
    #expect(found.count == 1 && found[0].contains("up to \(oldest.asWritten) ago"), "\(found)")
  }

  private static let keys = GuaranteeFolder.gateway.replacing("pin = {},", with: "pin = {}, passkey = {},")

  /// Attack: a route that asks for `aal >= 2` counts as two providers, and one passkey has that level.
  @Test(arguments: ["f.session.aal >= 2", "f.session.aal == 2 and not f.session.passed.totp"])
  func assuranceLevelIsNoProofOfTwoProviders(condition: String) throws {
    let files: [String: String?] = [
      "gateway.lua": Self.keys,
      "flows/keys.lua": Make.flow("keys", "existing", "{ \"passkey\" }"),
      "routes.lua": Make.routes(
        "path = \"/admin/**\", decide = function(f) if \(condition) then return allow end return deny \"no\" end",
        "path = \"/**\""),
      "guarantees.lua": Make.guarantee("two providers", "route = \"/admin/**\", factors = 2"),
    ]
    let refutations = try GuaranteeFolder(files).refutations()
    #expect(refutations.count == 1 && refutations[0].contains("passkey is passed"), "\(refutations)")
    // Without a provider that proves several factors at once, and without one that another can reset, two providers are
    // what it takes.
    guard condition.hasSuffix("2") else { return }
    var without = files
    without["flows/keys.lua"] = nil
    without["gateway.lua"] = GuaranteeFolder.gateway.replacing("pin = {}, password = {}, ", with: "")
    #expect(try GuaranteeFolder(without).refutations() == [])
  }

  /// The prover's assurance levels are those of sessions, for each provider and each pair of them.
  @Test func assuranceLevelsAreThoseOfSessions() throws {
    let registry = try ProviderRegistry(ShippedProviders.all)
    let names = registry.all.map(\.descriptor.name)
    let now = Timestamp(milliseconds: 0)
    func steps(_ passed: [ProviderName]) -> [[PassedStep]] {
      passed.reduce([[]]) { found, name in
        let flags = registry.descriptor(name)?.mayProveSeveralFactors ?? false ? [false, true] : [false]
        return found.flatMap { steps in
          flags.map { steps + [PassedStep(provider: name, at: now, isMultiFactor: $0)] }
        }
      }
    }
    for passed in names.map({ [$0] }) + names.flatMap({ one in names.map { [one, $0] } }) {
      let held = Set(steps(passed).map { Session.assuranceLevel(of: $0) })
      #expect(Set(registry.assuranceLevels(ofPassing: passed)) == held, "\(passed)")
    }
    #expect(registry.assuranceLevels(ofPassing: ["passkey"]) == [1, 2])
    #expect(registry.assuranceLevels(ofPassing: ["pin"]) == [1])
  }

  /// Attack: someone who has the SIM alone resets the PIN by a code to it, and passes both.
  @Test func factorThatAnotherOneResetsIsNoSecondFactor() throws {
    let files: [String: String?] = [
      "routes.lua": Make.routes("path = \"/admin/**\", require = { passed = \"pin\" }", "path = \"/**\""),
      "guarantees.lua": Make.guarantee("two factors", "route = \"/admin/**\", factors = 2"),
    ]
    let refutations = try GuaranteeFolder(files).refutations()
    #expect(refutations.count == 1, "\(refutations)")
    #expect(refutations[0].contains("that is 1 of 2 factors, because phone_otp alone can reset pin"), "\(refutations)")
    // The PIN is asked for on a new device, so the SIM alone opens no session in which the PIN could be reset.
    let asked =
      "return accounts { sign_in = { { \"pin\", when = function(f) return f.client.new_device and f.account.has_pin end } } }"
    #expect(try GuaranteeFolder(files.merging(["accounts.lua": asked]) { $1 }).refutations() == [])
    // An authenticator app cannot be reset.
    let app = Make.routes("path = \"/admin/**\", require = { passed = \"totp\" }", "path = \"/**\"")
    #expect(try GuaranteeFolder(files.merging(["routes.lua": app]) { $1 }).refutations() == [])
  }

  @Test func existsFalseMeansWithoutAnAccount() throws {
    let statement = Make.guarantee(
      "registration proves a number", "account = { exists = false }, session = { passed = \"phone_otp\" }")
    let phone = Make.flow("enter", "any", "{ \"phone_otp\" }")
    let files: [String: String?] = ["guarantees.lua": statement, "flows/enter.lua": phone]
    #expect(try GuaranteeFolder(files).refutations() == [])
    #expect(try Self.refutations(["guarantees.lua": statement]).count == 1)
  }

  @Test func functionsAreAskedWithEveryFactThatTheyRead() throws {
    // True only for one account in 64, which sampling would miss.
    let files: [String: String?] = [
      "flows/login.lua": Make.flow(
        "login", "existing", "{ \"phone_otp\" }",
        """
        { "pin", when = function(f)
              local a = f.account
              return a.has_pin and not (a.has_email and a.email_verified and a.factors.totp and a.factors.password and not f.client.new_device)
            end }
        """),
      "guarantees.lua": Make.guarantee(
        "a passcode is asked for", "account = { has_pin = true }, session = { passed = \"pin\" }"),
    ]
    let refutation = try #require(try GuaranteeFolder(files).refutations().first)
    #expect(
      refutation.hasSuffix(
        "Facts: f.account.exists = true, f.account.phone_verified = true, f.account.email_verified = true, f.account.factors.password = true, f.account.factors.pin = true, f.account.factors.totp = true, f.client.new_device = false"
      ), "\(refutation)")
  }

  @Test func factThatIsNotReadIsNotNamed() throws {
    let files: [String: String?] = [
      "guarantees.lua": Make.guarantee("two factors", "account = { exists = true }, session = { factors = 2 }")
    ]
    let refutation = try #require(try GuaranteeFolder(files).refutations().first)
    #expect(refutation.hasSuffix("Facts: f.account.exists = true, f.account.phone_verified = true"), "\(refutation)")
  }

  @Test func requiredFactorCanBePassedBeforeItsStep() throws {
    // The code requires the PIN first, and after the PIN, the app is not required.
    let files: [String: String?] = [
      "flows/login.lua": Make.flow(
        "login", "existing", "{ \"phone_otp\" }", "{ \"email_code\" }",
        "{ \"totp\", when = function(f) return not f.flow.passed.pin end }"),
      "policies/email_code.lua": """
      return policy "email_code" {
        send = function(f) if f.account.has_pin and f.email.domain == "example.com" then return require_also "pin" end return allow end,
      }
      """,
      "guarantees.lua": Make.guarantee(
        "the app", "account = { factors = { totp = true } }, session = { passed = \"totp\" }"),
    ]
    let refutation = try #require(try GuaranteeFolder(files).refutations().first)
    #expect(
      refutation.contains("phone_otp is passed (flows/login.lua:4), then pin is passed (policies/email_code.lua:2)"),
      "\(refutation)")
  }

  @Test func tooMuchWorkIsRefusedWithTheBound() throws {
    // Nine choices of two providers each, in any order, with functions that read everything.
    let step =
      "{ any_of { \"phone_otp\", \"email_code\", \"pin\", \"password\", \"totp\", \"google_oauth\" }, skippable = true, when = function(f) for _ in pairs(f.account.factors) do end return f.account.has_email or f.client.network_changed or f.clock.suspect or f.account.age > 5 end }"
    var files: [String: String?] = [
      "guarantees.lua": Make.guarantee("ten factors", "session = { factors = 1 }")
    ]
    for index in 0..<10 {
      let steps = ["{ \"phone_otp\" }"] + Array(repeating: step, count: 8)
      files["flows/door\(index).lua"] =
        "return flow \"door\(index)\" { account = \"any\", steps = { \(steps.joined(separator: ", ")) } }"
    }
    let start = ContinuousClock.now
    let refutations = try GuaranteeFolder(files).refutations()
    #expect(
      refutations == [
        "guarantees.lua:2: guarantee \"ten factors\" is not proved: the search exceeded 100,000 situations. Use functions that read fewer facts, flows with fewer steps and choices, or fewer statements"
      ])
    // The budget limits work, not time. This only checks that it is far from a minute.
    #expect(ContinuousClock.now - start < .seconds(60))
  }
}
