import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// `admit` and `reasons` of accounts.lua: reading, checks, and which answers are final at which point of a flow.
@Suite struct AdmitTests {
  private static func problems(_ accounts: String) throws -> [String] {
    try TestFolder(["accounts.lua": accounts]).problems()
  }

  private static func accounts(_ body: String, _ rest: String = "") -> String {
    "return accounts {\n  admit = function(f)\n    \(body)\n  end,\n  \(rest)\n}"
  }

  // MARK: reading

  @Test func functionAndSentencesAreRead() throws {
    let text = Self.accounts(
      "return deny \"maintenance\"", "reasons = { maintenance = \"Back at 3.\", moved = \"We have moved.\" },")
    let generation = try TestFolder(["accounts.lua": text]).generation()
    #expect(generation.accounts.admit == FunctionName("accounts.admit"))
    #expect(generation.accounts.reasons == ["maintenance": "Back at 3.", "moved": "We have moved."])
    #expect(generation.text(ofReason: "moved") == "We have moved.")
    #expect(!generation.warnings.contains { $0.message.contains("has no message") })
    let lines = PolicyListing(generation.accounts).values.map { "\($0.path) = \($0.value) \($0.line ?? 0)" }
    #expect(lines.contains("admit = function 2") && lines.contains("reasons.moved = \"We have moved.\" 5"), "\(lines)")
  }

  static let mistakes: [(text: String, problem: String)] = [
    (
      "return accounts { admit = true }",
      "accounts.lua:1: admit: must be a function, as in function(f) return allow end, not true"
    ),
    (
      accounts("return f.account.is_staff and allow or deny \"no\""),
      "accounts.lua:3: unknown fact `f.account.is_staff`"
    ),
    (
      accounts("return require_also \"phone_otp\""),
      "accounts.lua:3: accounts.lua cannot require a step by require_also: add it to sign_in"
    ),
    (
      accounts("return deny \"Not Now\""),
      "accounts.lua:3: `Not Now` is not a valid reason: use at most 48 lower-case letters, digits and _, and none of the gateway's own codes; write `not_now`"
    ),
    (
      accounts("return deny \"no\"", "reasons = { policy_error = \"x\" },"),
      "accounts.lua:5: reasons.policy_error: `policy_error` is not a valid reason: use at most 48 lower-case letters, digits and _, and none of the gateway's own codes"
    ),
    (
      accounts("return deny \"no\"", "reasons = { no = \"\(String(repeating: "x", count: 301))\" },"),
      "accounts.lua:5: reasons.no: must be a sentence of at most 300 bytes, without line breaks"
    ),
    (
      accounts(
        "return deny \"no\"",
        "reasons = { \((0...100).map { "r\($0) = \"x\"" }.joined(separator: ", ")) },"),
      "accounts.lua:5: reasons: has 101 sentences; at most 100 are possible"
    ),
  ]

  @Test(arguments: mistakes) func mistakesAreReported(_ mistake: (text: String, problem: String)) throws {
    let problems = try Self.problems(mistake.text)
    #expect(problems.count == 1 && problems[0].hasPrefix(mistake.problem), "\(problems)")
  }

  @Test func reasonWithoutASentenceIsAWarning() throws {
    let folder = try TestFolder(["accounts.lua": Self.accounts("return deny \"full_moon\"")])
    let warnings = try folder.generation().warnings.map(\.description).filter { $0.contains("has no message") }
    #expect(
      warnings == [
        "accounts.lua:3: deny \"full_moon\" has no message, so users read \"This is not allowed here.\": add reasons = { full_moon = \"…\" } to accounts.lua, or full_moon = … under [sentences] in pages/en.words"
      ])
  }

  /// `check` calls the function with an account, and with none, as for a registration.
  @Test func failingBranchIsFound() throws {
    let files: [String: String?] = [
      "accounts.lua": Self.accounts("if f.account.age < 60 then return deny \"new\" end return allow"),
      "flows/enter.lua": "return flow \"enter\" { account = \"any\", steps = { { \"phone_otp\" } } }",
    ]
    let generation = try TestFolder(files).generation()
    let fuzzer = try #require(FunctionFuzzer(generation, providers: try ProviderRegistry(ShippedProviders.all)))
    let faults = fuzzer.run().faults.map(\.problem.description)
    #expect(faults.contains { $0.hasPrefix("accounts.lua:3: attempt to compare nil with number") }, "\(faults)")
  }

  /// A result that is none is found too, with what to write.
  @Test func resultThatIsNoneIsFound() throws {
    let files: [String: String?] = [
      "accounts.lua": Self.accounts("if f.account.exists then return true end return allow"),
      "flows/enter.lua": "return flow \"enter\" { account = \"any\", steps = { { \"phone_otp\" } } }",
    ]
    let generation = try TestFolder(files).generation()
    let fuzzer = try #require(FunctionFuzzer(generation, providers: try ProviderRegistry(ShippedProviders.all)))
    let faults = fuzzer.run().faults.map(\.problem.description)
    let place = "accounts.lua:2: must return allow, deny \"reason\""
    #expect(faults.contains { $0.hasPrefix(place) && $0.contains("but returned true") }, "\(faults)")
  }

  // MARK: final answers

  private static func verdict(_ body: String, knowing known: FactKnowledge, _ change: (inout Facts) -> Void = { _ in })
    throws -> Verdict?
  {
    let text = accounts(body, "groups = { ops = members(), fresh = function(f) return f.session.passed.pin end },")
    let evaluator = try TestFolder(["accounts.lua": text]).generation().makeEvaluator()
    var facts = Facts.test {
      $0.flow = FlowFacts(name: "login", passed: [])
      $0.account = AccountFacts(exists: known.contains(.account), id: "ac_1")
      $0.known = known
    }
    change(&facts)
    return evaluator.admission(of: FunctionName("accounts.admit"), given: facts)
  }

  static let final: [(body: String, known: FactKnowledge)] = [
    ("if f.flow.name == \"login\" then return deny \"no\" end return allow", []),
    ("return hour(f.now, \"UTC\") < 24 and deny \"no\" or allow", []),
    ("return cidr(\"0.0.0.0/0\", f.client.ip) and deny \"no\" or allow", [.client]),
    ("return f.account.groups.ops and allow or deny \"no\"", .account),
    ("return f.client.new_device and deny \"no\" or allow", [.client, .account]),
    ("return f.account.groups.fresh and allow or deny \"no\"", [.account, .flow]),
    ("return f.flow.passed.pin and allow or deny \"no\"", .flow),
    ("return f.client.network_changed and allow or deny \"no\"", .all),
  ]

  @Test(arguments: final) func answerCountsOnceItsFactsAreKnown(_ case: (body: String, known: FactKnowledge)) throws {
    // The last but one is an app's, which redeems the code of a flow.
    let stages: [FactKnowledge] = [[], .client, [.client, .account], [.account, .flow], .all]
    for known in stages {
      let verdict = try Self.verdict(`case`.body, knowing: known)
      #expect(verdict == (known.isSuperset(of: `case`.known) ? .deny("no") : nil), "\(known)")
    }
  }

  /// An identifier that is given decides before a code is sent to it; one of another kind, or none, does not.
  @Test func identifierDecidesOnceItIsGiven() throws {
    let body = "return f.phone.e164 == \"+919999999999\" and deny \"no\" or allow"
    let phone = Identifier(kind: .phone, value: "+919999999999", display: "")
    let email = Identifier(kind: .email, value: "asha@example.com", display: "")
    #expect(try Self.verdict(body, knowing: .client) == nil)
    #expect(try Self.verdict(body, knowing: .client) { $0.identifier = email } == nil)
    #expect(try Self.verdict(body, knowing: .client) { $0.identifier = phone } == .deny("no"))
    #expect(try Self.verdict(body, knowing: .all) { $0.identifier = email } == .allow)
  }

  /// What a site says is renewed by a later step there, and what a provider reports is gone when an app redeems.
  @Test func reportedFactsAreFinalLate() throws {
    let facts = ["(f.account.identities.google_oauth or { groups = {} }).groups.ops", "f.providers.email_code.domain"]
    for (fact, last) in zip(facts, [[.account, .flow], .all] as [FactKnowledge]) {
      let admit = Self.accounts("return \(fact) and allow or deny \"no\"")
      let evaluator = try GuaranteeFolder(["accounts.lua": admit]).generation().makeEvaluator()
      for known in [[.client, .account], [.account, .flow], .all] as [FactKnowledge] {
        let asked = Facts.test {
          $0.flow = FlowFacts(name: "login", passed: [])
          $0.account = AccountFacts(exists: true, id: "ac_1")
          $0.known = known
        }
        let verdict = evaluator.admission(of: FunctionName("accounts.admit"), given: asked)
        #expect(verdict == (known.isSuperset(of: last) ? .deny("no") : nil), "\(fact) \(known)")
      }
    }
  }

  /// Attack: a function that fails by a fact that is not known yet refuses everybody before the proof, or one that
  /// fails for good admits somebody.
  @Test func faultCountsLikeAnAnswer() throws {
    let early = "return f.account.age > 60 and allow or deny \"no\""
    #expect(try Self.verdict(early, knowing: .client) == nil)
    guard case .fault? = try Self.verdict(early, knowing: .all, { $0.account = AccountFacts() }) else {
      Issue.record("not a fault")
      return
    }
    for body in ["error(\"broken\")", "return nil", "while true do end"] {
      guard case .fault? = try Self.verdict(body, knowing: []) else {
        Issue.record("\(body) is not a fault")
        continue
      }
    }
  }

  // MARK: cases and tools

  /// The function is played by cases, and counts as covered.
  @Test func casesPlayIt() async throws {
    let files: [String: String?] = [
      "accounts.lua": """
      return accounts {
        groups  = { night_shift = members() },
        admit   = function(f)
          if hour(f.now, "UTC") ~= 2 or f.account.groups.night_shift then return allow end
          return deny "maintenance"
        end,
        reasons = { maintenance = "Back at 3." },
      }
      """,
      "flows/enter.lua": "return flow \"enter\" { account = \"any\", steps = { { \"phone_otp\" } } }",
      "tests/night.lua": """
      return tests {
        case "closed at night" {
          clock "2026-12-24T02:00Z", phone "+919999999999", account {},
          flow "login", send(), right(), expect { status = 403, code = "maintenance" },
          request { path = "/" }, expect { status = 401 },
        },
        case "the night shift" {
          clock "2026-12-24T02:00Z", phone "+919999999999", account {}, group "night_shift",
          flow "login", send(), right(), expect { status = "complete" },
        },
        case "open by day" {
          clock "2026-12-24T12:00Z", phone "+919999999999", account {},
          flow "login", send(), right(), expect { status = "complete" },
        },
      }
      """,
    ]
    let folder = try GuaranteeFolder(files).folder
    switch ConfigurationLoader(providers: ShippedProviders.all, environment: [:]).read(folder: folder.scratch.path) {
    case .failure(let refused): Issue.record("\(refused.problems.map(\.description))")
    case .success(let loaded):
      let report = try await CaseRunner(
        loaded.generation, providers: ProviderRegistry(ShippedProviders.all), makeStore: { try SQLiteStore.memory() }
      ).run(loaded.cases)
      let text = report.text(colour: false)
      let holds = report.holds
      #expect(holds, "\(text)")
    }
  }

  /// `check` says at its table of entry points that a function may refuse any of them.
  @Test func tableOfEntryPointsNamesTheFunction() throws {
    let registry = try ProviderRegistry(ShippedProviders.all)
    let open = try GuaranteeFolder(["accounts.lua": Self.accounts("return allow")]).generation()
    let table = EntryPointTable(open, providers: registry)
    #expect(
      table.text(colour: false).hasSuffix("accounts.lua:2 decides by `admit` who may pass each of these"),
      "\(table.text(colour: false))")
    let closed = try GuaranteeFolder(["accounts.lua": Self.accounts("return deny \"no\"")]).generation()
    #expect(EntryPointTable(closed, providers: registry).entryPoints.isEmpty)
  }

  /// `policy diff` names the change of the function and of a sentence.
  @Test func diffNamesTheFunction() throws {
    let before = try TestFolder(["accounts.lua": Self.accounts("return allow")]).generation()
    let after = try TestFolder([
      "accounts.lua": Self.accounts("return deny \"no\"", "reasons = { no = \"No.\" },")
    ]).generation()
    let changes = SettingsDiff(old: before, new: after, providers: try ProviderRegistry(ShippedProviders.all)).changes
    #expect(changes.map { "\($0.of).\($0.path)" } == ["accounts.admit", "accounts.reasons.no"], "\(changes)")
  }
}
