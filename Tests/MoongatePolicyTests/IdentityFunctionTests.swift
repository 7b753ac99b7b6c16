import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// The function `identity` of a policy: what it receives, what it may return, and what is refused.
@Suite struct IdentityFunctionTests {
  private static let site = ProviderDescriptor(
    name: "site", beginFields: [], submitFields: [], settings: [],
    policy: PolicySource(
      file: "site.lua",
      text: """
        return policy "site" { limits = { verify = { on = "verify", per = "ip", max = 60, window = "1h" } } }
        """), identifierKinds: [.federated], mapsClaims: true)

  private static func load(_ policy: String) throws -> Result<any PolicyGeneration, RefusedConfiguration> {
    let gateway = TestFolder.gateway.replacing("email_code =", with: "site = {}, email_code =")
    let folder = try TestFolder(["gateway.lua": gateway, "policies/site.lua": policy])
    return folder.load(TestFolder.providers + [site])
  }

  private static func policy(_ body: String) -> String {
    "return policy \"site\" {\n  identity = function(f)\n\(body)\n  end,\n}"
  }

  /// Calls the function.
  private static func verdict(_ body: String, _ claims: [String: JSONClaim] = [:]) throws -> IdentityVerdict {
    let generation = try load(policy(body)).get()
    let function = try #require(generation.policies["site"]?.identity)
    return try generation.makeEvaluator().identity(of: function, from: claims)
  }

  private static func fault(_ body: String, _ claims: [String: JSONClaim] = [:]) throws -> PolicyFault? {
    do {
      let answer = try verdict(body, claims)
      Issue.record("\(answer)")
      return nil
    } catch let fault as PolicyFault {
      return fault
    }
  }

  private static func problems(_ policy: String) throws -> [String] {
    if case .failure(let refused) = try load(policy) { return refused.problems.map(\.description) }
    return []
  }

  private static let claims: [String: JSONClaim] = [
    "email": .text("asha@example.com"), "email_verified": .flag(true), "given_name": .text("Asha"),
    "roles": .list([.text("ops"), .text("dev")]), "age": .number(41), "rate": .number(1.5), "gone": .null,
    "realm_access": .object(["roles": .list([.text("admin")])]), "text": .text("a\u{0}\"]]\n\\"),
  ]

  @Test func claimsBecomeAnIdentity() throws {
    let body = """
        return {
          email = f.claims.email, email_verified = f.claims.email_verified, first_name = f.claims.given_name,
          last_name = f.claims.family_name, groups = f.claims.roles,
          data = { age = f.claims.age, rate = f.claims.rate, admin = f.claims.realm_access.roles[1] == "admin",
            gone = f.claims.gone },
        }
      """
    #expect(
      try Self.verdict(body, Self.claims)
        == .mapped(
          MappedIdentity(
            email: "asha@example.com", isEmailVerified: true, firstName: "Asha", groups: ["ops", "dev"],
            data: ["age": "41", "rate": "1.5", "admin": "true"])))
  }

  @Test func groupsCanBeNamesOfATable() throws {
    let body = "local g = {} for _, r in ipairs(f.claims.roles) do g[r] = r ~= \"dev\" end return { groups = g }"
    #expect(try Self.verdict(body, Self.claims) == .mapped(MappedIdentity(groups: ["ops"])))
    #expect(try Self.verdict("return {}") == .mapped(MappedIdentity()))
  }

  @Test func denyHasItsReason() throws {
    let body = "if f.claims.department == \"guests\" then return deny \"not_staff\" end return {}"
    #expect(try Self.verdict(body, ["department": .text("guests")]) == .deny("not_staff"))
    #expect(try Self.verdict(body, ["department": .text("sales")]) == .mapped(MappedIdentity()))
  }

  /// Attack: a claim with quotes, brackets, zero bytes and Lua text in it becomes code, or ends early.
  @Test func textsArriveAsTheyAre() throws {
    #expect(
      try Self.verdict("return { first_name = f.claims.text }", Self.claims)
        == .mapped(MappedIdentity(firstName: "a\u{0}\"]]\n\\")))
    let odd: [String: JSONClaim] = ["\"] = 1, x = [\"": .text("y"), "": .text("z"), "__index": .flag(true)]
    let body = "local n = 0 for k, v in pairs(f.claims) do n = n + #k end return { data = { n = n } }"
    #expect(try Self.verdict(body, odd) == .mapped(MappedIdentity(data: ["n": "21"])))
  }

  /// Attack: one sign-in leaves something behind for the next one.
  @Test func callsShareNothing() throws {
    let kept = "local seen = {}\n" + Self.policy("seen[1] = f.claims.email return {}")
    let keeping = try Self.load(kept).get()
    let name = try #require(keeping.policies["site"]?.identity)
    #expect(throws: PolicyFault.self) { try keeping.makeEvaluator().identity(of: name, from: Self.claims) }
    let generation = try Self.load(Self.policy("f.claims.email = \"changed\" return { email = f.claims.email }")).get()
    let function = try #require(generation.policies["site"]?.identity)
    let evaluator = try generation.makeEvaluator()
    let changed = try evaluator.identity(of: function, from: Self.claims)
    #expect(changed == .mapped(MappedIdentity(email: "changed")), "the claims are a copy of its own")
    #expect(Self.claims["email"] == .text("asha@example.com"))
  }

  @Test(
    arguments: [
      ("return nil", "must return a table"), ("return allow", "must return a table"),
      ("return \"asha@example.com\"", "but returned a text"), ("return { \"a\" }", "returned a list"),
      ("return { emial = \"a\" }", "unknown field `emial`; did you mean `email`?"),
      ("return { email = 7 }", "email must be a text"),
      // Attack: "false" is a text, and true in Lua.
      ("return { email_verified = \"false\" }", "email_verified must be true or false"),
      ("return { groups = \"admins\" }", "groups must be a list of texts"),
      ("return { groups = { 1 } }", "groups must be a list of texts"),
      ("return { groups = { ops = \"false\" } }", "groups.ops must be true or false"),
      ("return { data = { \"a\" } }", "data must be a table"),
      ("return { data = { a = {} } }", "data.a must be a text"),
      ("return { data = { a = function() end } }", "a result cannot contain a function"),
      ("return { groups = { string.rep(\"x\", 257) } }", "longer than 256 bytes"),
      ("return { data = { a = string.rep(\"x\", 65537) } }", "longer than 65536 bytes"),
      ("local g = {} for i = 1, 501 do g[i] = \"g\" .. i end return { groups = g }", "more than 500 groups"),
      ("return { groups = f.claims.a.b.c }", "attempt to index"), ("while true do end", "stopped after"),
      ("local t = {} t.t = t return { data = t }", "nested more than"), ("return deny(\"Not\" .. \" OK\")", "reason"),
    ])
  func anythingElseIsAFault(body: String, message: String) throws {
    let fault = try #require(try Self.fault("    " + body, Self.claims))
    #expect(fault.message.contains(message), "\(fault.message)")
    #expect(fault.location?.file == "policies/site.lua")
  }

  /// Attack (or accident): an error message with a claim in it, which people who read logs may not be allowed to see.
  @Test func messagesContainNoClaims() throws {
    let fault = try Self.fault("error(\"no \" .. f.claims.email)", Self.claims)
    #expect(fault?.message == "no [redacted]")
    let told = try Self.fault("return { groups = f.claims.email }", Self.claims)
    #expect(told?.message.contains("asha") == false)
  }

  /// Attack: a site sends a huge or deep claim, which uses up memory or the stack.
  @Test func hugeClaimsAreStopped() throws {
    var deep = JSONClaim.text("x")
    for _ in 0..<40 { deep = .list([deep]) }
    #expect(try Self.fault("return {}", ["deep": deep])?.message.contains("nested more than") == true)
    let wide = JSONClaim.list(Array(repeating: .text(String(repeating: "x", count: 100)), count: 300_000))
    #expect(try Self.fault("return {}", ["wide": wide]) != nil)
  }

  // MARK: reading

  @Test func policyWithoutClaimsCannotHaveIt() throws {
    let folder = try TestFolder([
      "policies/email_code.lua": "return policy \"email_code\" { identity = function(f) return {} end }"
    ])
    #expect(
      folder.problems() == [
        "policies/email_code.lua:1: identity: `email_code` passes no claims of another site: remove it"
      ])
    #expect(
      try Self.problems("return policy \"site\" { identity = \"email\" }").first?.contains("must be a function") == true
    )
  }

  @Test func otherFactsAreUnknown() throws {
    #expect(
      try Self.problems(Self.policy("    if f.account.exists then return {} end return { email = f.claims.mail }")) == [
        "policies/site.lua:3: unknown fact `f.account.exists`; `identity` receives `f.claims` only"
      ])
    #expect(try Self.problems(Self.policy("    local c = f.claims return { email = c.anything.at.all }")) == [])
  }
}
