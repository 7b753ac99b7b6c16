import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// What the function `claims` of an app may return.
@Suite struct AppClaimsTests {
  private static func generation(_ body: String) throws -> any PolicyGeneration {
    let text = """
      return apps { grafana = app {
        public = true, redirect_uris = { "https://grafana.example.com/in" },
        claims = function(f) \(body) end,
      } }
      """
    return try TestFolder([
      "apps.lua": text, "accounts.lua": "return accounts { groups = { ops = members(), staff = members() } }",
    ]).generation()
  }

  private static func claims(_ body: String) throws -> [String: JSONClaim] {
    let generation = try generation(body)
    let evaluator = try generation.makeEvaluator()
    let ops = try #require(GroupName(rawValue: "ops"))
    let session = SessionFacts(
      account: "ac_1", passed: ["phone_otp": Moment.now], age: .seconds(60), aal: 1, email: "asha@example.com",
      phone: nil, entitlements: Entitlements(groups: [ops]))
    let facts = Facts(
      now: Moment.now, client: ClientFacts(address: .unspecified), clockIsSuspect: false,
      request: RequestFacts(method: "GET", host: "localhost", path: App.requestPath, query: ""), session: session)
    return try evaluator.appClaims(of: FunctionName("apps.grafana.claims"), given: facts)
  }

  @Test func valuesAreRead() throws {
    let claims = try Self.claims(
      """
      return {
        role = f.session.groups.ops and "Admin" or "Viewer", level = 3, share = 0.5, active_since = nil,
        beta = true, roles = { "a", "b" }, none = {}, org = { name = "Example", ids = { 1, 2 } },
        big = 9007199254740993, ["https://example.com/is_ops"] = f.session.groups.staff == nil,
      }
      """)
    #expect(
      claims == [
        "role": .text("Admin"), "level": .number(3), "share": .number(0.5), "beta": .flag(true),
        "roles": .list([.text("a"), .text("b")]), "none": .list([]),
        "org": .object(["name": .text("Example"), "ids": .list([.number(1), .number(2)])]),
        "big": .integer(digits: "9007199254740993"), "https://example.com/is_ops": .flag(true),
      ])
  }

  @Test func functionMayReturnNothing() throws {
    #expect(try Self.claims("if f.session.groups.staff then return { role = \"Admin\" } end") == [:])
  }

  @Test(arguments: [
    ("return \"Admin\"", "must return a table of claims, as in { role = \"Admin\" }, but returned the text \"Admin\""),
    ("return allow", "must return a table of claims, as in { role = \"Admin\" }, but returned allow"),
    ("return { \"Admin\" }", "returned a list: write names, as in { role = \"Admin\" }"),
    // Attack: the function calls the user somebody else.
    (
      "local t = {}\nt.sub = \"root\"\nreturn t",
      "returned the claim `sub`, which the gateway itself writes: choose another name"
    ),
    (
      "local t = {}\nt[\"groups\"] = { \"admins\" }\nreturn t",
      "returned the claim `groups`, which the gateway itself writes: choose another name"
    ),
    (
      "local t = {}\nt[\"a b\"] = 1\nreturn t",
      "returned the claim `a b`, which is no name: use 1 to 128 letters, digits, `_`, `.`, `:`, `/` and `-`, beginning with a letter or `_`"
    ),
    ("return { role = { \"a\", b = 1 } }", "role must be a list or have names, but not both"),
    ("return { role = { { { { } } } } }", "role has tables nested more than 4 deep"),
    ("return { role = 0/0 }", "role must be a text, a number, true, false or a table, but is the number"),
    ("return { role = \"a\\nb\" }", "role must be a text of at most 1024 bytes without control characters"),
    ("return { role = (\"x\"):rep(1025) }", "role must be a text of at most 1024 bytes without control characters"),
    ("local t = {}\nfor i = 1, 65 do t[\"c\" .. i] = i end\nreturn t", "returned 65 claims; at most 64 are possible"),
    ("local t = {}\nfor i = 1, 60 do t[\"c\" .. i] = (\"x\"):rep(100) end\nreturn t", "returned claims of "),
    ("return { role = function() end }", "a result cannot contain a function"),
    ("error(\"no \" .. f.session.email)", "no [redacted]"),
  ]) func wrongResultIsAFault(body: String, message: String) throws {
    // A claim that is written out is found when the file is loaded; here, all are made at run time.
    do throws(any Error) {
      let claims = try Self.claims(body)
      Issue.record("returned \(claims)")
    } catch let fault as PolicyFault {
      #expect(fault.message.contains(message), "\(fault)")
      #expect(fault.location?.file == "apps.lua")
    }
  }

  /// The fuzzer calls `claims` and `decide` of apps as it calls other functions.
  @Test func rareFailureIsFoundByCheck() throws {
    let generation = try Self.generation(
      "local t = {}\nif f.session.aal == 2 then t.email = f.session.email end\nreturn t")
    let fuzzer = try #require(
      FunctionFuzzer(
        generation, providers: try ProviderRegistry(TestFolder.providers.map(DescribedProvider.init))))
    let faults = fuzzer.run().faults.map(\.problem.description)
    #expect(
      faults.count == 1 && faults[0].contains("returned the claim `email`, which the gateway itself writes"),
      "\(faults)")
  }
}
