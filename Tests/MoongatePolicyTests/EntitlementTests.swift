import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// `groups` and `claims` of accounts.lua in routes, functions, guarantees and cases.
@Suite struct EntitlementTests {
  private static let accounts = """
    return accounts {
      groups = {
        staff = function(f) return f.account.email_verified and ends_with(f.email.address, "@example.com") end,
        ops = members(),
        ["a,b"] = members(),
      },
      claims = {
        plan = function(f) return f.account.age > 31536000 and "veteran" or "new" end,
        strong = function(f) return f.session.aal == 2 end,
        none = function(f) return nil end,
      },
    }
    """

  private static func problems(_ files: [String: String?]) throws -> [String] {
    try TestFolder(["accounts.lua": accounts].merging(files) { $1 }).problems()
  }

  private static func routes(_ entries: String...) -> String {
    "return routes {\n\(entries.map { "  { \($0), to = \"http://127.0.0.1:3000\" },\n" }.joined())}"
  }

  private static func snapshot(
    email: String = "asha@example.com", verified: Bool = true, age: Duration = .zero, groups: Set<GroupName> = [],
    passed: [String] = ["phone_otp"]
  ) -> SessionSnapshot {
    let now = ManualClock.start
    let address = Identifier(
      kind: .email, value: email, display: email, attributes: ["domain": String(email.split(separator: "@").last ?? "")]
    )
    return SessionSnapshot(
      session: Session(
        id: "se_1", token: TokenHash(bytes: []), account: "ac_1", createdAt: now, expiresAt: now + .seconds(60),
        idle: .seconds(60), lastSeenAt: now,
        passed: passed.compactMap(ProviderName.init(rawValue:)).map { PassedStep(provider: $0, at: now) },
        userAgent: nil),
      account: Account(
        id: "ac_1", createdAt: now - age, lastSeenAt: now,
        identifiers: [HeldIdentifier(identifier: address, verifiedAt: verified ? now : nil)],
        groups: groups))
  }

  private static func entitlements(_ accounts: String, _ snapshot: SessionSnapshot) throws -> Entitlements {
    let generation = try TestFolder(["accounts.lua": accounts]).generation()
    let evaluator = try generation.makeEvaluator()
    return try generation.accounts.entitlements(of: snapshot, in: generation) { () throws(PolicyFault) in evaluator }
  }

  // MARK: evaluating

  @Test func groupsAreComputedFromVerifiedFactsAndReadFromTheStore() throws {
    let found = try Self.entitlements(
      Self.accounts,
      Self.snapshot(
        age: .seconds(40_000_000), groups: [try GroupName(test: "ops"), try GroupName(test: "gone")],
        passed: ["phone_otp", "pin"]))
    #expect(found.groups.map(\.rawValue) == ["ops", "staff"])
    #expect(found.claims == ["plan": .text("veteran"), "strong": .flag(true)])
  }

  /// Attack: an account claims `ceo@example.com`, and a function does not check whether the address is verified.
  @Test func claimedAddressIsNotUsedByGroups() throws {
    let accounts = "return accounts { groups = { staff = function(f) return f.email.address ~= nil end } }"
    #expect(try Self.entitlements(accounts, Self.snapshot()).groups.map(\.rawValue) == ["staff"])
    #expect(try Self.entitlements(accounts, Self.snapshot(verified: false)).groups == [])
  }

  /// A generation with a provider `site` of federated identities.
  private static func withSite(_ accounts: String) throws -> any PolicyGeneration {
    let site = ProviderDescriptor(
      name: "site", beginFields: [], submitFields: [], settings: [],
      policy: PolicySource(
        file: "site.lua",
        text: """
          return policy "site" { limits = { verify = { on = "verify", per = "ip", max = 60, window = "1h" } } }
          """), identifierKinds: [.federated])
    let gateway = TestFolder.gateway.replacing("email_code =", with: "site = {}, email_code =")
    return try TestFolder(["accounts.lua": accounts, "gateway.lua": gateway]).load(TestFolder.providers + [site]).get()
  }

  /// Groups and data of an identity at another site (`f.account.identities.NAME`).
  @Test func groupsAreComputedFromThoseOfAnIdentity() throws {
    let accounts = """
      return accounts {
        groups = {
          ops = function(f)
            local site = f.account.identities.site
            return site and site.groups["grafana-admins"]
          end,
          listed = function(f)
            local site = f.account.identities.site
            for name in pairs(site and site.groups or {}) do if name == "dev" then return true end end
            return false
          end,
          known = function(f)
            for name in pairs(f.account.identities) do if name == "site" then return true end end
            return false
          end,
        },
        claims = {
          floor = function(f) local site = f.account.identities.site return site and site.data.floor end,
        },
      }
      """
    let generation = try Self.withSite(accounts)
    let evaluator = try generation.makeEvaluator()
    func found(_ identity: Identifier?) throws -> Entitlements {
      var snapshot = Self.snapshot()
      if let identity {
        var account = snapshot.account
        account.identifiers.append(HeldIdentifier(identifier: identity, verifiedAt: ManualClock.start))
        snapshot = SessionSnapshot(session: snapshot.session, account: account)
      }
      return try generation.accounts.entitlements(of: snapshot, in: generation) { () throws(PolicyFault) in evaluator }
    }
    let identity = Identifier(
      kind: .federated, value: "site 7", display: "7", attributes: ["floor": "3"], groups: ["grafana-admins", "dev"])
    #expect(try found(identity).groups.map(\.rawValue) == ["known", "listed", "ops"])
    #expect(try found(identity).claims == ["floor": .text("3")])
    // Without an identity, it is nil.
    #expect(try found(nil).groups == [] && found(nil).claims == [:])
    let other = Identifier(kind: .federated, value: "site 7", display: "7", groups: ["grafana"])
    #expect(try found(other).groups.map(\.rawValue) == ["known"])
  }

  @Test(
    arguments: [
      "groups = { staff = function(f) return \"yes\" end }", "groups = { staff = function(f) error(\"no\") end }",
      "groups = { staff = function(f) while true do end end }", "claims = { plan = function(f) return {} end }",
      "claims = { plan = function(f) return 0/0 end }", "claims = { plan = function(f) return \"a\\nb\" end }",
      "groups = { ops = members() }, claims = { plan = function(f) return string.rep(\"x\", 257) end }",
    ]) func functionThatFailsIsAFault(_ body: String) throws
  {
    #expect(throws: PolicyFault.self) {
      try Self.entitlements("return accounts { \(body) }", Self.snapshot(groups: [try GroupName(test: "ops")]))
    }
  }

  @Test func headerEncodesCommasAndPercents() throws {
    let names = try ["ops", "a,b", "100%", "%2C"].map(GroupName.init(test:)).sorted()
    #expect(names.headerValue == "%252C,100%25,a%2Cb,ops")
    for name in ["", " a", "a ", "a\r\nX: y", "ä", "a\u{0}", String(repeating: "a", count: 65)] {
      #expect(GroupName(rawValue: name) == nil, "\(name)")
    }
  }

  // MARK: reading

  @Test func everyMistakeHasItsSentence() throws {
    let text = """
      return accounts {
        groups = { staff = true, ["é"] = members() },
        claims = { Plan = function(f) return 1 end, other = "x" },
      }
      """
    #expect(
      try Set(Self.problems(["accounts.lua": text])) == [
        "accounts.lua:2: groups.staff: must be members() or a function, as in function(f) return f.account.email_verified end, not true",
        "accounts.lua:2: groups[\"é\"]: \(GroupName.rule)",
        "accounts.lua:3: claims.Plan: a claim's name has 1 to 32 lower-case letters, digits and _, and begins with a letter",
        "accounts.lua:3: claims.other: must be a function, as in function(f) return f.account.has_pin end, not \"x\"",
      ])
    let facts =
      "return accounts {\n groups = { ops = function(f) return f.acount.age end,\n x = function(f) return f.client.ip end },\n}"
    let unknown = try Self.problems(["accounts.lua": facts])
    #expect(
      unknown.count == 2 && unknown[0].hasPrefix("accounts.lua:2: ") && unknown[0].contains("`f.acount`")
        && unknown[1].contains("`f.client`"))
  }

  @Test func tenThousandGroupsAreTooMany() throws {
    let many = { (count: Int) in
      "return accounts { groups = { \((0..<count).map { "g\($0) = members()" }.joined(separator: ", ")) } }"
    }
    #expect(try Self.problems(["accounts.lua": many(257)]).first?.contains("defines 257 groups; at most 256") == true)
    #expect(try !Self.problems(["accounts.lua": many(10_000)]).isEmpty)
    #expect(try Self.problems(["accounts.lua": many(256)]) == [])
    let long = (0..<100).map { "[\"\(String(repeating: "x", count: 60))\($0)\"] = members()" }.joined(separator: ", ")
    #expect(
      try Self.problems(["accounts.lua": "return accounts { groups = { \(long) } }"]).first?.contains(
        "more than 4096 bytes") == true)
    let claims = (0..<17).map { "c\($0) = function(f) return 1 end" }.joined(separator: ", ")
    #expect(
      try Self.problems(["accounts.lua": "return accounts { claims = { \(claims) } }"]).first?.contains("at most 16")
        == true)
  }

  /// Attack: a claim has the name of a member, and a service reads the first `"sub":` in the assertion.
  @Test(arguments: ["sub", "aud", "exp", "groups"]) func claimCannotBeCalledLikeAMemberOfTheAssertion(_ name: String)
    throws
  {
    let problems = try Self.problems([
      "accounts.lua": "return accounts { claims = { \(name) = function(f) return \"x\" end } }"
    ])
    #expect(problems == ["accounts.lua:1: claims.\(name): is a reserved member of the assertion; choose another name"])
  }

  @Test func groupThatIsNamedAndNotDefinedIsAnError() throws {
    let problems = try Self.problems([
      "routes.lua": Self.routes(
        "path = \"/a/**\", require = { group = \"opps\" }",
        "path = \"/b/**\", require = { group = any_of { \"staff\", \"billing\" } }",
        "path = \"/c/**\", decide = function(f) if f.session.groups.stuff or f.session.claims.plann then return allow end return deny \"no\" end"
      )
    ])
    #expect(
      Set(problems) == [
        "routes.lua:2: routes[1].require.group: accounts.lua does not define the group \"opps\"; did you mean `ops`?",
        "routes.lua:3: routes[2].require.group: accounts.lua does not define the group \"billing\"; add groups = { billing = members() } there, or use one of "
          + "`a,b`, `ops` and `staff`",
        "routes.lua:4: `f.session.claims.plann`: accounts.lua does not define the claim `plann`; did you mean `plan`?",
        "routes.lua:4: `f.session.groups.stuff`: accounts.lua does not define the group \"stuff\"; did you mean `staff`?",
      ])
  }

  @Test func routeRequiresAGroupTogetherWithAStep() throws {
    let generation = try TestFolder([
      "accounts.lua": Self.accounts,
      "routes.lua": Self.routes(
        "path = \"/a/**\", require = { group = any_of { \"ops\", \"a,b\" }, passed = \"phone_otp\", within = \"5m\" }",
        "path = \"/b/**\", require = { group = \"staff\", email_verified = true }",
        "path = \"/c/**\", require = { group = \"ops\" }"),
    ]).generation()
    let routes = generation.routes.routes
    #expect(routes[0].groups?.anyOf.map(\.rawValue) == ["ops", "a,b"])
    #expect(routes[0].requirement == .passed(ProviderName(test: "phone_otp"), within: .seconds(300)))
    #expect(routes[1].requirement == .emailVerified && routes[2].requirement == nil && routes[2].groups != nil)
  }

  @Test func decideSeesGroupsClaimsAndVerifiedIdentifiers() throws {
    let decide = """
      function(f)
        local names = ""
        for name, is in pairs(f.session.groups) do names = names .. name .. tostring(is) .. ";" end
        if names == "a,btrue;opstrue;" and f.session.groups.ops and not f.session.groups.staff and f.session.claims.plan == "new"
          and f.session.email == "asha@example.com" and f.session.phone == nil and f.session.email_verified then return allow end
        return deny "no"
      end
      """
    let generation = try TestFolder([
      "accounts.lua": Self.accounts, "routes.lua": Self.routes("path = \"/**\", decide = \(decide)"),
    ]).generation()
    let entitlements = Entitlements(
      groups: try ["ops", "a,b"].map(GroupName.init(test:)), claims: ["plan": .text("new")])
    let facts = Self.snapshot().facts(
      of: RequestFacts(method: "GET", host: "", path: "/", query: ""), by: ClientFacts(address: .unspecified),
      entitlements, at: ManualClock.start,
      clockIsSuspect: false)
    let evaluator = try generation.makeEvaluator()
    let function = FunctionName("routes[1].decide")
    #expect(evaluator.verdict(of: function, given: facts) == .allow)
    // `policy explain` shows the groups that were read, but no personal data.
    let read = try #require(evaluator.evidence(of: function, given: facts)).facts
    #expect(read.contains(PolicyEvidence.Fact(path: "session.groups", value: "{ a,b, ops }", namesPerson: false)))
    #expect(read.first { $0.path == "session.email" }?.namesPerson == true)
  }

  // MARK: guarantees

  private static func refutations(_ guarantee: String, _ routes: String...) throws -> [String] {
    let entries = "return routes {\n\(routes.map { "  { \($0), to = \"http://127.0.0.1:3000\" },\n" }.joined())}"
    return try GuaranteeFolder([
      "accounts.lua": accounts, "routes.lua": entries,
      "guarantees.lua": "return guarantees {\n  guarantee \"operators alone\" { \(guarantee) },\n}",
    ]).refutations()
  }

  @Test(
    arguments: [
      "path = \"/ops/**\", require = { group = \"ops\" }",
      "path = \"/ops/**\", decide = function(f) if f.session.groups.ops then return allow end return deny \"no\" end",
      "path = \"/ops/**\", require = { group = any_of { \"ops\", \"staff\" } }, decide = function(f) "
        + "if f.session.groups.ops and f.session.email_verified then return allow end return deny \"no\" end",
    ]) func guaranteedGroupIsProved(_ route: String) throws
  {
    #expect(try Self.refutations("route = \"/ops/**\", group = \"ops\"", route, "path = \"/**\"") == [])
  }

  @Test(
    arguments: [
      ("path = \"/ops/**\"", "which has no other requirement"),
      ("path = \"/ops/**\", require = { group = any_of { \"ops\", \"staff\" } }", "the group \"ops\" or \"staff\""),
      (
        "path = \"/ops/**\", decide = function(f) if f.session.groups.staff then return allow end return deny \"no\" end",
        "allows it"
      ),
      (
        "path = \"/ops/**\", decide = function(f) if f.session.claims.plan then return allow end return deny \"no\" end",
        "reads facts that can have any value"
      ),
      ("path = \"/ops/**\", allow = true", "is open to everyone"),
    ]) func guaranteedGroupIsRefusedWithAnExample(_ route: String, _ words: String) throws
  {
    let found = try Self.refutations("route = \"/ops/**\", group = \"ops\"", route, "path = \"/**\"")
    #expect(
      found.count == 1 && found[0].contains("guarantee \"operators alone\" does not hold") && found[0].contains(words),
      "\(found)")
  }

  // MARK: cases, comparisons, words

  @Test func caseMakesItsAccountAMember() async throws {
    let cases = """
      return tests {
        case "operators alone" {
          phone "+919999999999", account { email = "asha@example.com" },
          flow "login", send(), right(), expect { status = "complete" },
          request { path = "/ops/x" }, expect { status = 403, code = "forbidden" },
          group "ops", request { path = "/ops/x" }, expect { status = 200 },
          group { ops = false }, request { path = "/ops/x" }, expect { code = "forbidden" },
          request { path = "/staff/x" }, expect { status = 200 },
        },
      }
      """
    let folder = try GuaranteeFolder([
      "accounts.lua": Self.accounts, "tests/groups.lua": cases,
      "routes.lua": Self.routes(
        "path = \"/ops/**\", require = { group = \"ops\" }", "path = \"/staff/**\", require = { group = \"staff\" }"),
    ])
    let loader = ConfigurationLoader(providers: ShippedProviders.all)
    let loaded = try loader.read(folder: folder.folder.scratch.path).get()
    let runner = CaseRunner(loaded.generation, providers: try ProviderRegistry(ShippedProviders.all)) {
      try SQLiteStore(path: ":memory:", keyFingerprint: [1])
    }
    let outcomes = try await runner.run(loaded.cases).outcomes
    #expect(outcomes.map { $0.failure?.summary ?? "holds" } == ["holds"])
    #expect(
      try Self.problems([
        "tests/x.lua":
          "return tests { case \"x\" { phone \"+919999999999\", account {}, group \"staff\", flow \"login\", expect { status = 200 } } }"
      ])
      .first?.contains("`staff` is computed") == true)
  }

  @Test func comparisonReportsGainedAndLostAccess() throws {
    let old = try TestFolder([
      "accounts.lua": Self.accounts,
      "routes.lua": Self.routes(
        "path = \"/ops/**\", require = { group = \"ops\" }", "path = \"/free/**\", allow = true", "path = \"/**\""),
    ]).generation()
    let new = try TestFolder([
      "accounts.lua": "return accounts { groups = { staff = members(), ops = members() } }",
      "routes.lua": Self.routes(
        "path = \"/ops/**\", require = { group = \"staff\" }", "path = \"/free/**\"",
        "path = \"/new/**\", require = { group = \"ops\" }",
        "path = \"/**\""),
    ]).generation()
    let diff = try AccessDiff(old: old, new: new)
    let lines = diff.access.map { "\($0.who) \($0.change.rawValue) \($0.request) \($0.route)" }
    #expect(lines.contains { $0.hasPrefix("ops loses GET /ops ") && $0.hasSuffix("routes.lua:2") }, "\(lines)")
    #expect(lines.contains { $0.hasPrefix("staff gains GET /ops ") })
    #expect(lines.contains { $0.hasPrefix("anybody loses GET /free ") })
    #expect(
      lines.contains { $0.hasPrefix("signed in loses GET /new ") }
        && !lines.contains { $0.hasPrefix("ops loses GET /new ") })
    #expect(diff.groups.map(\.group) == ["a,b", "staff"])
    #expect(try AccessDiff(old: old, new: old).isEmpty)
  }

  @Test func reasonWithoutWordsIsAWarning() throws {
    let policy = { (reasons: String) in
      "return policy \"phone_otp\" { \(reasons) send = function(f) if f.account.exists then return allow end return deny \"country_not_served\" end }"
    }
    let warning = try TestFolder(["policies/phone_otp.lua": policy("")]).generation().warnings.map(\.description).filter
    { $0.contains("has no message") }
    #expect(
      warning.count == 1 && warning[0].hasPrefix("policies/phone_otp.lua:1: deny \"country_not_served\" has no message")
    )
    let said = "reasons = { country_not_served = \"We do not serve this country yet.\" },"
    let generation = try TestFolder(["policies/phone_otp.lua": policy(said)]).generation()
    #expect(!generation.warnings.contains { $0.message.contains("has no message") })
    #expect(generation.text(ofReason: "country_not_served") == "We do not serve this country yet.")
    let pages: [String: String?] = [
      "policies/phone_otp.lua": policy(""), "pages/en.words": "[sentences]\ncountry_not_served = Not yet.\n",
    ]
    #expect(try !TestFolder(pages).generation().warnings.contains { $0.message.contains("has no message") })
    #expect(
      try Self.problems(["policies/phone_otp.lua": policy("reasons = { forbidden = \"x\", Bad = \"y\", ok = \"\" },")])
        .count == 3)
  }

  /// The check reads the heading as the pages do.
  @Test(arguments: [("[sentences]  ", true), ("[sentences] of ours", false)])
  func wordsOfReasonsAreReadAsThePagesReadThem(heading: String, isHeading: Bool) throws {
    let warnings = try TestFolder([
      "policies/phone_otp.lua":
        "return policy \"phone_otp\" { send = function(f) if f.account.exists then return allow end return deny \"country_not_served\" end }",
      "pages/en.words": "\(heading)\ncountry_not_served = Not yet.\n",
    ]).generation().warnings
    #expect(warnings.contains { $0.message.contains("has no message") } != isHeading)
  }
}
