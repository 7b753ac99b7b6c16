import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// `f.account.groups` in functions of flows, policies, groups and claims.
@Suite struct AccountGroupTests {
  private static func accounts(_ groups: String, _ rest: String = "") -> String {
    "return accounts {\n  groups = {\n\(groups)\n  },\n\(rest)\n}"
  }

  private static func asked(_ condition: String) -> String {
    "  sign_in = { { \"phone_otp\", when = function(f) return \(condition) end } },"
  }

  /// The answer of the `when` of the first entry of `sign_in`.
  private static func answer(_ accounts: String, _ facts: Facts) throws -> Bool {
    let evaluator = try TestFolder(["accounts.lua": accounts]).generation().makeEvaluator()
    return try evaluator.condition(of: FunctionName("accounts.sign_in[1].when"), given: facts)
  }

  private static func facts(
    in groups: Set<GroupName> = [], emailVerified: Bool = false, passed: [ProviderName] = []
  ) -> Facts {
    Facts.test {
      $0.account = AccountFacts(exists: true, id: "ac_1", age: .seconds(60), isEmailVerified: emailVerified)
      let address = Identifier(kind: .email, value: "asha@example.com", display: "")
      let now = $0.now
      $0.account.groups = GroupFacts(
        listed: groups, identifiers: emailVerified ? [address] : [],
        session: SessionFacts(
          account: "ac_1", passed: Dictionary(uniqueKeysWithValues: passed.map { ($0, now) }), age: .zero, aal: 1))
    }
  }

  private static let groups = """
      ops = members(), ["a b"] = members(),
      staff = function(f) return f.account.email_verified and ends_with(f.email.address, "@example.com") end,
      admins = function(f) return f.account.groups.ops and f.account.groups.staff end,
      fresh = function(f) return f.session.passed.email_code ~= nil end,
    """

  @Test func groupsAreReadByNameAndListed() throws {
    let both: Set<GroupName> = [try GroupName(test: "ops"), try GroupName(test: "a b"), try GroupName(test: "gone")]
    let names = Self.accounts(
      Self.groups,
      Self.asked("f.account.groups.ops and f.account.groups[\"a b\"] and not f.account.groups.staff"))
    #expect(try Self.answer(names, Self.facts(in: both)))
    #expect(try !Self.answer(names, Self.facts()))
    let listing = Self.accounts(
      Self.groups,
      """
        sign_in = { { "phone_otp", when = function(f)
          local text = ""
          for name in pairs(f.account.groups) do text = text .. name .. ";" end
          return text == "a b;admins;ops;staff;"
        end } },
      """)
    #expect(try Self.answer(listing, Self.facts(in: both, emailVerified: true)))
    // An account that does not exist is in no group, and no function is asked about it.
    let failing = Self.accounts(
      "bad = function(f) error(\"asked\") end", Self.asked("not f.account.groups.bad"))
    #expect(try Self.answer(failing, Facts.test { _ in }))
  }

  @Test func groupsAreComputedFromOtherGroupsAndFromTheFlow() throws {
    let ops: Set<GroupName> = [try GroupName(test: "ops")]
    let admins = Self.accounts(Self.groups, Self.asked("f.account.groups.admins"))
    #expect(try Self.answer(admins, Self.facts(in: ops, emailVerified: true)))
    #expect(try !Self.answer(admins, Self.facts(in: ops)))
    #expect(try !Self.answer(admins, Self.facts(emailVerified: true)))
    let fresh = Self.accounts(Self.groups, Self.asked("f.account.groups.fresh"))
    #expect(try Self.answer(fresh, Self.facts(passed: ["email_code"])))
    #expect(try !Self.answer(fresh, Self.facts(passed: ["phone_otp"])))
  }

  /// Attack: the function of a group fails, the account is in no group then, and the second factor of its members is
  /// not required.
  @Test func aGroupThatFailsFailsWhoeverReadsIt() throws {
    let accounts = Self.accounts(
      "admins = function(f) return f.account.age > f.account.id end", Self.asked("f.account.groups.admins"))
    let fault = #expect(throws: PolicyFault.self) { try Self.answer(accounts, Self.facts()) }
    #expect(fault?.location == SourceLocation(file: "accounts.lua", line: 3))
  }

  /// Attack on ourselves: a group that the function would not read, had it known an earlier one, fails and refuses.
  @Test func aGroupThatIsNotNeededIsNotAsked() throws {
    let groups = """
          guest = function(f) return true end,
          bad = function(f) return f.account.age > f.account.id end,
      """
    let body = "f.account.groups.guest or f.account.groups.bad"
    #expect(try Self.answer(Self.accounts(groups, Self.asked(body)), Self.facts()))
  }

  /// The facts of the group functions are in a decision as well, without personal data in the message.
  @Test func evidenceNamesTheGroups() throws {
    let folder = try TestFolder(["accounts.lua": Self.accounts(Self.groups, Self.asked("f.account.groups.staff"))])
    let evaluator = try folder.generation().makeEvaluator()
    let function = FunctionName("accounts.sign_in[1].when")
    let facts = Self.facts(emailVerified: true)
    #expect(try evaluator.condition(of: function, given: facts))
    #expect(
      evaluator.evidence(of: function, given: facts)?.facts == [
        PolicyEvidence.Fact(path: "account.groups", value: "{ staff }", namesPerson: false)
      ])
  }

  // MARK: groups that need themselves

  static let cycles: [(groups: String, problems: [String])] = [
    (
      "ops = function(f) return f.account.groups.ops end,",
      ["accounts.lua:3: groups.ops: the group `ops` needs itself: `ops` → `ops`"]
    ),
    (
      "a = function(f) return f.account.groups.b end,\nb = function(f)\n  local g = f.account.groups\n  return g.a\nend,",
      ["accounts.lua:3: groups.a: the group `a` needs itself: `a` → `b` → `a`"]
    ),
    (
      "all = function(f)\n  for name in pairs(f.account.groups) do return true end\nend,",
      ["accounts.lua:3: groups.all: the group `all` needs itself: `all` → `all`"]
    ),
    (
      "ops = members(),\na = function(f) return f.account.groups.ops end,\nb = function(f) return f.account.groups.a end,",
      []
    ),
  ]

  @Test(arguments: cycles) func aGroupThatNeedsItselfIsRefused(_ cycle: (groups: String, problems: [String])) throws {
    let problems = try TestFolder(["accounts.lua": Self.accounts(cycle.groups)]).problems()
    #expect(problems == cycle.problems)
  }

  /// Attack: a cycle that no analysis of the text finds keeps a thread busy for ever, or takes accounts out of a group.
  @Test func cycleThatIsFoundOnlyWhenItRunsIsAFault() throws {
    let accounts = Self.accounts(
      """
          a = function(f) return f.account.has_pin and f.account.groups["b"] end,
          b = function(f) return f.account.groups["a"] end,
      """, Self.asked("f.account.groups.a"))
    #expect(try !Self.answer(accounts, Self.facts()))
    var facts = Self.facts()
    facts.account.hasPIN = true
    let fault = #expect(throws: PolicyFault.self) { try Self.answer(accounts, facts) }
    #expect(fault?.message == "the group `a` needs itself: `a` → `b` → `a`", "\(fault?.message ?? "")")
  }

  /// Attack: hundreds of groups, each of which makes the function run once more.
  @Test func manyGroupsHaveOneBudget() throws {
    let names = (0..<200).map { "g\($0)" }
    let groups = names.map { "\($0) = function(f) local n = 0 for i = 1, 1000 do n = n + i end return true end," }
    let reads = names.map { "f.account.groups.\($0)" }.joined(separator: " and ")
    let accounts = Self.accounts(
      groups.joined(separator: "\n"),
      """
        sign_in = { { "phone_otp", when = function(f)
          local n = 0
          for i = 1, 10000 do n = n + i end
          return \(reads)
        end } },
      """)
    let fault = #expect(throws: PolicyFault.self) { try Self.answer(accounts, Self.facts()) }
    #expect(fault?.kind == .steps)
  }

  @Test func misspelledGroupIsReported() throws {
    let accounts = Self.accounts("ops = members(),", Self.asked("f.account.groups.opz"))
    #expect(
      try TestFolder(["accounts.lua": accounts]).problems() == [
        "accounts.lua:5: `f.account.groups.opz`: accounts.lua does not define the group \"opz\"; did you mean `ops`?"
      ])
    let policy =
      "return policy \"phone_otp\" { verify = function(f) return f.account.groups.opz and deny \"no\" or allow end }"
    #expect(
      try TestFolder(["accounts.lua": Self.accounts("ops = members(),"), "policies/phone_otp.lua": policy]).problems()
        .count == 1)
  }

  /// A step that only members of a group need, and that some of them cannot pass, is reported as such.
  @Test func checkWarnsOfMembersWithoutTheFactor() throws {
    let accounts = Self.accounts(
      "ops = members(),",
      "  sign_in = { { \"email_code\", when = function(f) return f.account.groups.ops end } },")
    let warnings = try TestFolder(["accounts.lua": accounts]).generation().warnings.map(\.description)
    #expect(warnings.contains { $0.hasPrefix("accounts.lua:5: sign_in[1]: refuses an account") }, "\(warnings)")
  }
}
