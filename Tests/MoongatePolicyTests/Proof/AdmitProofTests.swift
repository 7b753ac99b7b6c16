import MoongateCore
import MoongateSDK
import Testing

@testable import MoongatePolicy

/// Guarantees about configurations with `admit` and with steps that depend on groups. The prover may only count a
/// refusal that is certain.
@Suite struct AdmitProofTests {
  private typealias Make = GuaranteeRefusalTests

  private static let totp = Make.guarantee(
    "the app protects the account", "account = { factors = { totp = true } }, session = { passed = \"totp\" }")

  struct Rule: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let accounts: String
    var flows: [String: String?] = [:]
    /// What the counterexample says; nil if the guarantee holds.
    let counterexample: String?
  }

  private static let passesApp: [String: String?] = [
    "flows/login.lua": Make.flow(
      "login", "existing", "{ \"phone_otp\" }", "{ \"totp\", skippable = true }")
  ]

  static let rules: [Rule] = [
    Rule(
      testDescription: "a refusal of sessions without the app",
      accounts:
        "admit = function(f) if f.account.factors.totp and not f.flow.passed.totp then return deny \"app\" end return allow end",
      flows: passesApp, counterexample: nil),
    Rule(
      testDescription: "a refusal of some of them",
      accounts:
        "admit = function(f) if f.client.new_device and not f.flow.passed.totp then return deny \"app\" end return allow end",
      flows: passesApp, counterexample: "f.client.new_device = false"),
    Rule(
      testDescription: "a refusal that depends on the time",
      accounts: "admit = function(f) if hour(f.now, \"UTC\") < 25 then return deny \"night\" end return allow end",
      counterexample: "The new session has passed phone_otp"),
    // Attack on the proof: the site proves the address too, so the domain is not certainly missing.
    Rule(
      testDescription: "a refusal by the domain of an address that a site proves",
      accounts:
        "admit = function(f) if f.email.domain ~= \"example.org\" then return deny \"domain\" end return allow end",
      flows: ["flows/login.lua": Make.flow("login", "existing", "{ \"google_oauth\" }")],
      counterexample: "The new session has passed google_oauth"),
    Rule(
      testDescription: "a refusal of every account",
      accounts: "admit = function(f) return f.account.exists and deny(\"no\") or allow end", counterexample: nil),
    Rule(
      testDescription: "a step for members of a list",
      accounts:
        "groups = { admins = members() }, sign_in = { { \"totp\", when = function(f) return f.account.groups.admins end } }",
      counterexample: "f.account.groups[\"admins\"] = false"),
    Rule(
      testDescription: "a step for members of a computed group",
      accounts:
        "groups = { app = function(f) return f.account.factors.totp end }, sign_in = { { \"totp\", when = function(f) return f.account.groups.app end } }",
      counterexample: nil),
    Rule(
      testDescription: "a group of groups",
      accounts:
        "groups = { app = function(f) return f.account.factors.totp end, ops = members(), any = function(f) return f.account.groups.app or f.account.groups.ops end }, sign_in = { { \"totp\", when = function(f) return f.account.groups.any end } }",
      counterexample: nil),
    Rule(
      testDescription: "a group by what the session has passed",
      accounts:
        "groups = { strong = function(f) return not f.session.passed.phone_otp end }, sign_in = { { \"totp\", when = function(f) return not f.account.groups.strong end } }",
      counterexample: "The new session has passed phone_otp"),
    Rule(
      testDescription: "a group by the domain of the address",
      accounts:
        "groups = { staff = function(f) return f.email.domain ~= \"example.org\" end }, sign_in = { { \"totp\", when = function(f) return f.account.groups.staff end } }",
      counterexample: "The new session has passed phone_otp"),
    Rule(
      testDescription: "a group that fails refuses",
      accounts:
        "groups = { bad = function(f) error(\"bad\") end }, admit = function(f) if f.account.exists then return f.account.groups.bad and allow end return allow end",
      counterexample: nil),
    Rule(
      testDescription: "a fact beside a group that fails",
      accounts:
        "groups = { bad = function(f) error(\"bad\") end }, admit = function(f) if f.client.new_device then return allow end return f.account.groups.bad and allow end",
      counterexample: "f.client.new_device = true"),
  ]

  @Test(arguments: rules) func onlyCertainRefusalsCount(_ rule: Rule) throws {
    let files: [String: String?] = [
      "guarantees.lua": Self.totp, "accounts.lua": "return accounts { \(rule.accounts) }",
    ]
    let found = try GuaranteeFolder(files.merging(rule.flows) { $1 }).refutations()
    guard let counterexample = rule.counterexample else {
      #expect(found.isEmpty, "\(found)")
      return
    }
    #expect(found.count == 1 && found[0].contains(counterexample), "\(found)")
  }

  /// Attack on the proof: `admit` refuses new accounts outside of a group, and is believed to refuse all, although an
  /// invitation leads into the group.
  @Test func invitedAccountIsInItsGroups() throws {
    let two = Make.guarantee("two factors", "session = { factors = 2 }")
    var files: [String: String?] = [
      "guarantees.lua": two, "flows/login.lua": nil,
      "flows/enter.lua": Make.flow("enter", "any", "{ \"google_oauth\" }"), "routes.lua": nil,
    ]
    let admit = { (test: String) in
      """
      return accounts {
        groups = { staff = members(), team = function(f) return f.account.groups.staff end },
        admit = function(f) if f.account.exists or not (\(test)) then return deny "no" end return allow end,
      }
      """
    }
    for (test, count) in [("f.account.groups.staff", 1), ("f.account.groups.team", 1), ("f.account.factors.totp", 0)] {
      files["accounts.lua"] = admit(test)
      let found = try GuaranteeFolder(files).refutations()
      #expect(found.count == count, "\(test): \(found)")
    }
  }

  /// Attack: an account that is not admitted is entered by joining its number to an account that is.
  @Test func joinedAccountIsAsked() throws {
    let two = Make.guarantee("two factors", "account = { exists = true }, session = { factors = 2 }")
    var files: [String: String?] = [
      "guarantees.lua": two, "flows/login.lua": nil,
      "flows/enter.lua": Make.flow("enter", "any", "{ \"google_oauth\" }"),
      "flows/join_phone.lua": Make.flow("join_phone", "existing", "{ \"phone_otp\" }"),
      "routes.lua": nil,
    ]
    let admit = { (body: String) in "return accounts { admit = function(f) \(body) end }" }
    files["accounts.lua"] = admit("return allow")
    #expect(try GuaranteeFolder(files).refutations().count == 1)
    files["accounts.lua"] = admit("if f.account.exists then return deny \"closed\" end return allow")
    let found = try GuaranteeFolder(files).refutations()
    #expect(found.isEmpty, "\(found)")
  }
}
