import MoongateCore
import MoongateSDK
import Testing

@testable import MoongatePolicy

/// Broken guarantees: each problem names the flow, the steps with their lines, and the facts.
@Suite struct GuaranteeRefusalTests {
  struct Broken: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let files: [String: String?]
    let sentences: [String]

    init(_ name: String, _ files: [String: String?], _ sentences: String...) {
      testDescription = name
      self.files = files
      self.sentences = sentences
    }
  }

  static func flow(_ name: String, _ account: String, _ steps: String..., session: String = "") -> String {
    let lines = steps.map { "    \($0)," }.joined(separator: "\n")
    let purpose = TestFolder.purpose(of: name)
    return
      "return flow \"\(name)\" {\n  \(purpose)account = \"\(account)\",\(session)\n  steps = {\n\(lines)\n  },\n}"
  }

  static func guarantee(_ statement: String, _ body: String) -> String {
    "return guarantees {\n  guarantee \"\(statement)\" { \(body) },\n}"
  }

  static func routes(_ routes: String...) -> String {
    "return routes {\n" + routes.map { "  { \($0), to = \"http://127.0.0.1:3000\" },\n" }.joined() + "}"
  }

  private static let totp = guarantee(
    "the app protects the account", "account = { factors = { totp = true } }, session = { passed = \"totp\" }")
  private static let admin = guarantee("administration takes two factors", "route = \"/admin/**\", factors = 2")

  static let broken: [Broken] = [
    Broken(
      "another flow opens the same accounts",
      [
        "guarantees.lua": totp, "flows/login.lua": flow("login", "existing", "{ \"phone_otp\" }", "{ \"totp\" }"),
        "flows/enter.lua": flow("enter", "any", "any_of { \"phone_otp\", \"google_oauth\" }"),
      ],
      "guarantees.lua:2: guarantee \"the app protects the account\" does not hold. In flow \"enter\", phone_otp is passed "
        + "(flows/enter.lua:4). The new session has passed phone_otp: it has not passed totp. Facts: f.account.exists = true, "
        + "f.account.phone_verified = true, f.account.factors.totp = true"),
    Broken(
      "the step may be skipped",
      [
        "guarantees.lua": totp,
        "flows/login.lua": flow("login", "existing", "{ \"phone_otp\" }", "{ \"totp\", skippable = true }"),
      ],
      "guarantees.lua:2: guarantee \"the app protects the account\" does not hold. In flow \"login\", phone_otp is passed "
        + "(flows/login.lua:4), then totp is skipped (flows/login.lua:5, `skippable`). The new session has passed phone_otp: it "
        + "has not passed totp. Facts: f.account.exists = true, f.account.phone_verified = true, f.account.factors.totp = true"
    ),
    Broken(
      "the step has a condition that does not always hold",
      [
        "guarantees.lua": totp,
        "flows/login.lua": flow(
          "login", "existing", "{ \"phone_otp\" }", "{ \"totp\", when = function(f) return f.client.new_device end }"),
      ],
      "guarantees.lua:2: guarantee \"the app protects the account\" does not hold. In flow \"login\", phone_otp is passed "
        + "(flows/login.lua:4), then totp does not apply (flows/login.lua:5): `when` (flows/login.lua:5) answers false. The new session "
        + "has passed phone_otp: it has not passed totp. Facts: f.account.exists = true, f.account.phone_verified = true, "
        + "f.account.factors.totp = true, f.client.new_device = false"),
    Broken(
      "the step has another choice",
      [
        "guarantees.lua": totp,
        "flows/login.lua": flow("login", "existing", "{ \"phone_otp\" }", "any_of { \"totp\", \"email_code\" }"),
      ],
      "guarantees.lua:2: guarantee \"the app protects the account\" does not hold. In flow \"login\", phone_otp is passed "
        + "(flows/login.lua:4), then email_code is passed (flows/login.lua:5). The new session has passed phone_otp and "
        + "email_code: it has not passed totp. Facts: f.account.exists = true, f.account.phone_verified = true, f.account.has_email = "
        + "true, f.account.factors.totp = true"),
    Broken(
      "registration gives one factor",
      [
        "guarantees.lua": guarantee("every session has two factors", "session = { factors = 2 }"),
        "flows/login.lua": flow("login", "existing", "{ \"phone_otp\" }", "{ \"pin\" }"),
        "flows/register.lua": flow("register", "new", "{ \"phone_otp\" }"),
      ],
      "guarantees.lua:2: guarantee \"every session has two factors\" does not hold. In flow \"register\", phone_otp is passed "
        + "(flows/register.lua:4). The new session has passed phone_otp: that is 1 of 2 factors. Facts: f.account.exists = false"
    ),
    Broken(
      "Google signs in where accounts are registered",
      [
        "guarantees.lua": guarantee(
          "people prove their number", "account = { phone_verified = true }, session = { passed = \"phone_otp\" }"),
        "flows/register.lua": flow("register", "new", "any_of { \"phone_otp\", \"google_oauth\" }"),
      ],
      "guarantees.lua:2: guarantee \"people prove their number\" does not hold. In flow \"register\", google_oauth is passed "
        + "(flows/register.lua:4). The new session has passed google_oauth: it has not passed phone_otp. Facts: f.account.exists = "
        + "true, f.account.phone_verified = true, the account has a federated identity"),
    Broken(
      "a password is reset by a code",
      [
        "guarantees.lua": totp, "flows/login.lua": flow("login", "existing", "{ \"phone_otp\" }", "{ \"totp\" }"),
        "flows/password_reset.lua": flow("password_reset", "existing", "{ \"email_code\" }", "{ \"password\" }"),
      ],
      "guarantees.lua:2: guarantee \"the app protects the account\" does not hold. In flow \"password_reset\", email_code is passed "
        + "(flows/password_reset.lua:4), then password is set (flows/password_reset.lua:5), which passes nothing. The new session "
        + "has passed email_code: it has not passed totp. Facts: f.account.exists = true, f.account.email_verified = true, "
        + "f.account.factors.totp = true"),
    Broken(
      "a policy asks for a factor only sometimes",
      [
        "guarantees.lua": guarantee(
          "a passcode is asked for", "account = { has_pin = true }, session = { passed = \"pin\" }"),
        "policies/phone_otp.lua": """
        return policy "phone_otp" {
          verify = function(f)
            if f.account.has_pin and f.client.new_device then return require_also "pin" end
            return allow
          end,
        }
        """,
      ],
      "guarantees.lua:2: guarantee \"a passcode is asked for\" does not hold. In flow \"login\", phone_otp is passed "
        + "(flows/login.lua:3). The new session has passed phone_otp: it has not passed pin. Facts: f.account.exists = true, "
        + "f.account.phone_verified = true, f.account.factors.pin = true, f.client.new_device = false"),
    Broken(
      "accounts.lua takes another factor instead",
      [
        "guarantees.lua": guarantee(
          "a passcode is asked for", "account = { has_pin = true }, session = { passed = \"pin\" }"),
        "accounts.lua": """
        return accounts {
          sign_in = {
            { any_of { "pin", "email_code" }, when = function(f) return f.account.has_pin end },
          },
        }
        """,
      ],
      "guarantees.lua:2: guarantee \"a passcode is asked for\" does not hold. In flow \"login\", phone_otp is passed "
        + "(flows/login.lua:3), then email_code is passed (accounts.lua:3). The new session has passed phone_otp and email_code: "
        + "it has not passed pin. Facts: f.account.exists = true, f.account.phone_verified = true, f.account.email_verified = true, "
        + "f.account.factors.pin = true"),
    Broken(
      "the function reads an undecided fact",
      [
        "guarantees.lua": totp,
        "accounts.lua": """
        return accounts {
          sign_in = {
            { "totp", when = function(f) return f.account.factors.totp and f.account.age > duration("30d") end },
          },
        }
        """,
      ],
      "guarantees.lua:2: guarantee \"the app protects the account\" does not hold. In flow \"login\", phone_otp is passed "
        + "(flows/login.lua:3), then totp does not apply (accounts.lua:3): `when` (accounts.lua:3) reads facts that can have any value, "
        + "so it may answer false. The new session has passed phone_otp: it has not passed totp. Facts: f.account.exists = true, "
        + "f.account.phone_verified = true, f.account.factors.totp = true"),
    Broken(
      "the route requires nothing", ["guarantees.lua": admin, "routes.lua": routes("path = \"/admin/**\"")],
      "guarantees.lua:2: guarantee \"administration takes two factors\" does not hold. In flow \"login\", phone_otp is passed "
        + "(flows/login.lua:3). The session has passed phone_otp. It passes the route at routes.lua:2 (GET /admin), which has no "
        + "other requirement: that is 1 of 2 factors. Facts: f.account.exists = true, f.account.phone_verified = true"),
    Broken(
      "an earlier route matches some of its paths",
      [
        "guarantees.lua": admin,
        "flows/step_up.lua": flow("step_up", "existing", "any_of { \"phone_otp\", \"totp\" }"),
        "routes.lua": routes(
          "path = \"/*/help\", methods = { \"POST\" }", "path = \"/admin/**\", require = { passed = \"totp\" }",
          "path = \"/**\""),
      ],
      "guarantees.lua:2: guarantee \"administration takes two factors\" does not hold. In flow \"login\", phone_otp is passed "
        + "(flows/login.lua:3). The session has passed phone_otp. It passes the route at routes.lua:2 (POST /admin/help), which has no "
        + "other requirement: that is 1 of 2 factors. Facts: f.account.exists = true, f.account.phone_verified = true"),
    Broken(
      "the route requires the factor by which people sign in",
      [
        "guarantees.lua": admin,
        "flows/login.lua": flow("login", "existing", "any_of { \"phone_otp\", \"email_code\" }"),
        "routes.lua": routes("path = \"/admin/**\", require = { passed = \"phone_otp\" }"),
      ],
      "guarantees.lua:2: guarantee \"administration takes two factors\" does not hold. In flow \"login\", phone_otp is passed "
        + "(flows/login.lua:4). The session has passed phone_otp. It passes the route at routes.lua:2 (GET /admin), which requires "
        + "phone_otp: that is 1 of 2 factors. Facts: f.account.exists = true, f.account.phone_verified = true"),
    Broken(
      "the route is open",
      [
        "guarantees.lua": admin,
        "routes.lua": routes(
          "path = \"/admin/style.css\", allow = true", "path = \"/**\", require = { passed = \"totp\" }"),
      ],
      "guarantees.lua:2: guarantee \"administration takes two factors\" does not hold. The route at routes.lua:2 is open to everyone "
        + "(`allow = true`), and takes GET /admin/style.css without a session"),
    Broken(
      "the route is open to a network",
      [
        "guarantees.lua": admin,
        "routes.lua": routes(
          "path = \"/admin/**\", allow = { networks = { \"10.0.0.0/8\", \"192.0.2.7\" } }, require = { passed = \"totp\" }"
        ),
      ],
      "guarantees.lua:2: guarantee \"administration takes two factors\" does not hold. The route at routes.lua:2 is open to clients of "
        + "10.0.0.0/8, 192.0.2.7/32 (`allow.networks`), and takes GET /admin from them without a session"),
    Broken(
      "an open route takes an encoded slash",
      [
        "guarantees.lua": guarantee("salaries take two factors", "route = \"/reports/*/salaries\", factors = 2"),
        "flows/login.lua": flow("login", "existing", "{ \"phone_otp\" }", "{ \"totp\" }"),
        "routes.lua": routes(
          "path = \"/reports/*\", allow = true, encoded = { \"slash\" }",
          "path = \"/reports/**\", require = { passed = \"totp\" }"
        ),
      ],
      "guarantees.lua:2: guarantee \"salaries take two factors\" does not hold. The route at routes.lua:2 is open to everyone "
        + "(`allow = true`), and takes GET /reports/%2Fsalaries without a session"),
    Broken(
      "the route's decide allows it",
      [
        "guarantees.lua": guarantee("administration takes the app", "route = \"/admin/**\", passed = \"totp\""),
        "flows/step_up.lua": flow("step_up", "existing", "any_of { \"phone_otp\", \"pin\", \"totp\" }"),
        "routes.lua": routes(
          "path = \"/admin/**\", decide = function(f) if f.session.aal >= 2 then return allow end return require_also \"totp\" end"
        ),
      ],
      "guarantees.lua:2: guarantee \"administration takes the app\" does not hold. In flow \"login\", phone_otp is passed "
        + "(flows/login.lua:3). In flow \"pin_change\", pin is passed (Plugins/PIN/flows/pin_change.lua:8). The session has passed "
        + "phone_otp and pin. It passes the route at routes.lua:2 (GET /admin), where `decide` (routes.lua:2) allows it: it has not "
        + "passed totp. Facts: f.account.exists = true, f.account.factors.pin = true"),
    Broken(
      "the route allows an older proof",
      [
        "guarantees.lua": guarantee(
          "nobody pays without a fresh code", "route = \"/pay/**\", passed = \"phone_otp\", within = \"5m\""),
        "routes.lua": routes("path = \"/pay/**\", require = { passed = \"phone_otp\", within = \"10m\" }"),
      ],
      "guarantees.lua:2: guarantee \"nobody pays without a fresh code\" does not hold. In flow \"login\", phone_otp is passed "
        + "(flows/login.lua:3). The session has passed phone_otp. It passes the route at routes.lua:2 (GET /pay), which requires "
        + "phone_otp within 10m: it can have passed phone_otp up to 10m ago. Facts: f.account.exists = true, f.account.phone_verified = "
        + "true"),
    Broken(
      "the route sets no age limit",
      [
        "guarantees.lua": guarantee(
          "nobody pays without a fresh code", "route = \"/pay/**\", passed = \"phone_otp\", within = \"5m\""),
        "routes.lua": routes("path = \"/pay/**\""),
      ],
      "guarantees.lua:2: guarantee \"nobody pays without a fresh code\" does not hold. In flow \"login\", phone_otp is passed "
        + "(flows/login.lua:3). The session has passed phone_otp. It passes the route at routes.lua:2 (GET /pay), which has no other "
        + "requirement: it can have passed phone_otp up to 12h16m ago. Facts: f.account.exists = true, f.account.phone_verified = true"
    ),
    Broken(
      "no route matches such a path",
      [
        "guarantees.lua": guarantee("administration takes two factors", "route = \"/amdin/**\", factors = 2"),
        "routes.lua": routes("path = \"/admin/**\""),
      ],
      "guarantees.lua:2: guarantee \"administration takes two factors\" covers no request: no route of routes.lua matches a path of "
        + "\"/amdin/**\""),
  ]

  @Test(arguments: broken) func isRefusedWithTheShortestWay(_ broken: Broken) throws {
    let found = try GuaranteeFolder(broken.files).refutations()
    #expect(found == broken.sentences, "\(found.joined(separator: "\n"))")
  }
}
