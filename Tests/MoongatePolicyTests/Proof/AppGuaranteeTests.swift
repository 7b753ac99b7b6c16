import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// Guarantees about apps: read like those of routes, and proved by the same search.
@Suite struct AppGuaranteeTests {
  private static let flows: [String: String?] = [
    "flows/login.lua": GuaranteeRefusalTests.flow("login", "existing", "{ \"phone_otp\" }"),
    "flows/step_up.lua": GuaranteeRefusalTests.flow("step_up", "existing", "any_of { \"totp\", \"pin\" }"),
    "accounts.lua":
      "return accounts { groups = { ops = members(), staff = function(f) return f.account.email_verified end } }",
  ]

  private static func apps(_ settings: String) -> String {
    "return apps {\n  grafana = app { public = true, redirect_uris = { \"https://grafana.example.com/in\" },\n\(settings) },\n}"
  }

  private static func refutations(_ app: String, _ guarantee: String) throws -> [String] {
    try GuaranteeFolder(
      flows.merging([
        "apps.lua": apps(app), "guarantees.lua": GuaranteeRefusalTests.guarantee("Grafana is safe", guarantee),
      ]) { $1 }
    ).refutations()
  }

  @Test func requirementOfAnAppIsProved() throws {
    #expect(try Self.refutations("require = { passed = \"totp\" }", "app = \"grafana\", factors = 2") == [])
    #expect(
      try Self.refutations("require = { passed = \"totp\", within = \"5m\" }", "app = \"grafana\", passed = \"totp\"")
        == []
    )
    #expect(
      try Self.refutations(
        "require = { passed = \"totp\", within = \"5m\" }", "app = \"grafana\", passed = \"totp\", within = \"5m\"")
        == [])
    #expect(try Self.refutations("require = { group = \"ops\" }", "app = \"grafana\", group = \"ops\"") == [])
    #expect(
      try Self.refutations(
        "decide = function(f) return f.session.groups.ops and allow or deny \"ops_only\" end",
        "app = \"grafana\", group = \"ops\"") == [])
    #expect(
      try Self.refutations(
        "decide = function(f) return require_also \"totp\" end", "app = \"grafana\", passed = \"totp\"")
        == [])
  }

  @Test func appWithoutRequirementIsACounterexample() throws {
    let found = try Self.refutations("", "app = \"grafana\", factors = 2")
    #expect(
      found == [
        "guarantees.lua:2: guarantee \"Grafana is safe\" does not hold. In flow \"login\", phone_otp is passed "
          + "(flows/login.lua:4). The session has passed phone_otp. It may sign in to the app `grafana` (apps.lua:2), "
          + "which has no other requirement: that is 1 of 2 factors. Facts: f.account.exists = true, "
          + "f.account.phone_verified = true"
      ])
  }

  @Test func groupAndAgeAreChecked() throws {
    let group = try Self.refutations("require = { group = \"staff\" }", "app = \"grafana\", group = \"ops\"")
    #expect(group.count == 1 && group[0].contains("it need not be in the group \"ops\""), "\(group)")
    let age = try Self.refutations(
      "require = { passed = \"totp\", within = \"1h\" }", "app = \"grafana\", passed = \"totp\", within = \"5m\"")
    #expect(age.count == 1 && age[0].contains("it can have passed totp up to 1h ago"), "\(age)")
  }

  /// Attack: a session ends within hours, but tokens with `offline_access` are refreshed for months by what was passed
  /// in it. Its lifetime must not prove how old a factor can be.
  @Test func sessionThatHasEndedIsAnyTimeOld() throws {
    let guarantee = "app = \"grafana\", passed = \"totp\", within = \"365d\""
    #expect(try Self.refutations("require = { passed = \"totp\" }", guarantee) == [])
    let offline = "scopes = { \"openid\", \"offline_access\" },"
    let found = try Self.refutations("\(offline) require = { passed = \"totp\" }", guarantee)
    #expect(
      found.count == 1
        && found[0].contains("it can have passed totp any time ago: tokens outlive it (`offline_access`)"),
      "\(found)")
    #expect(try Self.refutations("\(offline) require = { passed = \"totp\", within = \"8h\" }", guarantee) == [])
    // The age does not matter here.
    #expect(
      try Self.refutations(
        "\(offline) require = { passed = \"totp\" }", "app = \"grafana\", passed = \"totp\", factors = 2") == [])
  }

  private static let billing = """
    return apps {
      billing = app {
        keys = "https://billing.example.com/jwks.json", grants = { "client_credentials" }, scopes = { "invoices:read" },
      },
    }
    """

  /// A program that gets tokens for itself is no way for users to sign in.
  @Test func appWithoutUsersIsNoEntryPoint() throws {
    let folder = try GuaranteeFolder(Self.flows.merging(["apps.lua": Self.billing]) { $1 })
    #expect(EntryPointTable(try folder.generation(), providers: try ProviderRegistry(ShippedProviders.all)).apps == [])
    let files: [String: String?] = [
      "apps.lua": Self.billing,
      "guarantees.lua": GuaranteeRefusalTests.guarantee("Billing is safe", "app = \"billing\", factors = 2"),
    ]
    let problems = try GuaranteeFolder(Self.flows.merging(files) { $1 }).problems()
    #expect(
      problems == [
        "guarantees.lua:2: app: no user signs in to the app \"billing\": its only grant is `client_credentials`"
      ])
  }

  /// Attack: someone who has the SIM alone resets the PIN by a code to it, and signs in to an app that requires two
  /// factors.
  @Test func factorThatAnotherOneResetsIsNoSecondFactor() throws {
    let found = try Self.refutations("require = { factors = 2 }", "app = \"grafana\", factors = 2")
    #expect(found.count == 1 && found[0].contains("because phone_otp alone can reset pin"), "\(found)")
    let gateway = """
      return gateway {
        public_url = "http://localhost:8080", region = "IN",
        providers = { phone_otp = { sms = outbox() }, totp = { issuer = "Moongate" } },
      }
      """
    let files: [String: String?] = [
      "gateway.lua": gateway, "apps.lua": Self.apps("require = { factors = 2 }"),
      "flows/step_up.lua": GuaranteeRefusalTests.flow("step_up", "existing", "{ \"totp\" }"),
      "guarantees.lua": GuaranteeRefusalTests.guarantee("Grafana is safe", "app = \"grafana\", factors = 2"),
    ]
    #expect(try GuaranteeFolder(Self.flows.merging(files) { $1 }).refutations() == [])
  }

  @Test func tableOfEntryPointsHasApps() throws {
    let apps = """
      return apps {
        open = app { public = true, redirect_uris = { "https://open.example.com/in" } },
        vault = app {
          public = true, redirect_uris = { "https://vault.example.com/in" },
          require = { passed = "totp", group = any_of { "ops", "staff" } },
        },
        gone = app {
          public = true, redirect_uris = { "https://gone.example.com/in" },
          decide = function(f) return deny "closed" end,
        },
      }
      """
    let generation = try GuaranteeFolder(Self.flows.merging(["apps.lua": apps]) { $1 }).generation()
    let table = EntryPointTable(generation, providers: try ProviderRegistry(ShippedProviders.all))
    #expect(
      table.apps == [
        AppEntryPoint(app: "gone", factors: nil, group: nil),
        AppEntryPoint(app: "open", factors: ["phone_otp"], group: nil),
        AppEntryPoint(app: "vault", factors: ["phone_otp", "totp"], group: "\"ops\" or \"staff\""),
      ])
    let lines = table.text(colour: false).split(separator: "\n")
    #expect(lines.contains("vault  phone_otp + totp, in the group \"ops\" or \"staff\""), "\(lines)")
  }

  @Test(arguments: [
    ("app = \"grafanna\", factors = 2", "2: app: apps.lua defines no app \"grafanna\"; did you mean `grafana`?"),
    (
      "app = \"grafana\", route = \"/**\", factors = 2",
      "2: route: a guarantee with `app` covers every session that the app accepts: remove this"
    ),
    (
      "app = \"grafana\", session = { passed = \"totp\" }, factors = 2",
      "2: session: a guarantee with `app` covers every session that the app accepts: remove this; write `passed` or `factors` beside `app`"
    ),
    ("app = \"grafana\"", "2: guarantees nothing: write passed = \"pin\" or factors = 2, or group = \"ops\""),
    (
      "factors = 2",
      "2: factors: applies only to a guarantee with `route` or `app`; for sessions as they begin, write session = { factors = … }"
    ),
  ]) func mistakeIsReported(body: String, problem: String) throws {
    let files: [String: String?] = [
      "apps.lua": Self.apps(""), "guarantees.lua": GuaranteeRefusalTests.guarantee("Grafana is safe", body),
    ]
    let problems = try GuaranteeFolder(Self.flows.merging(files) { $1 }).problems()
    #expect(problems.first == "guarantees.lua:\(problem)", "\(problems)")
  }
}
