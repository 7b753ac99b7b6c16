import Foundation
import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// The recipes of the manual that promise protection, each with an attacker and with the legitimate use beside it. A
/// recipe is put over the shipped configuration, as a reader would do it, and its cases are played on the real engine.
@Suite struct RecipeAttackTests {
  struct Recipe: Sendable, CustomTestStringConvertible {
    let page: String
    let heading: String
    /// The acts of attackers and users, as in tests/NAME.lua.
    let cases: String
    var testDescription: String { "\(page), \(heading)" }
  }

  /// Headings of recipes that promise no protection, or whose attacks are played by other tests.
  private static let others: [String: String] = [
    "Two upstreams of one service": "availability, test_forward.py",
    "A code by SMS if the messenger does not deliver": "a link",
  ]

  /// A folder with the shipped configuration, the recipe's files over it, and these cases in place of all others.
  private static func folder(_ page: String, _ heading: String, cases: String?) throws -> ScratchFolder {
    let folder = try ScratchFolder()
    let root = TestFolder.root + "/config/"
    let manager = FileManager.default
    let parts = try ["flows", "policies"].flatMap { part in
      try manager.contentsOfDirectory(atPath: root + part).map { "\(part)/\($0)" }
    }
    for name in ["gateway.lua", "routes.lua", "accounts.lua"] + parts {
      try folder.write(try String(contentsOfFile: root + name, encoding: .utf8), to: name)
    }
    let examples = ManualTests.examples(in: ManualTests.pages[page] ?? "", page: page).filter { $0.heading == heading }
    try #require(!examples.isEmpty, "\(page) has no recipe \(heading)")
    for example in examples where !example.file.hasPrefix("tests/") { try folder.write(example.text, to: example.file) }
    // The secrets of apps, as `moongate app secret` writes them.
    for found in examples.map(\.text).joined().matches(of: /file "(secrets\/[a-z_]+)"/) {
      try folder.write(String(repeating: "s", count: 43), to: String(found.1))
      try folder.setMode(0o600, of: String(found.1))
    }
    if let cases { try folder.write("return tests {\n\(cases)\n}", to: "tests/attack.lua") }
    return folder
  }

  @Test(arguments: recipes) func attackersFailAndUsersDoNot(_ recipe: Recipe) async throws {
    let folder = try Self.folder(recipe.page, recipe.heading, cases: recipe.cases)
    switch ConfigurationLoader(providers: ShippedProviders.all, environment: [:]).read(folder: folder.path) {
    case .success(let loaded):
      let report = try await CaseRunner(
        loaded.generation, providers: ProviderRegistry(ShippedProviders.all), makeStore: { try SQLiteStore.memory() }
      ).run(loaded.cases)
      #expect(report.outcomes.count >= 2, "an attacker and a user")
      let text = report.text(colour: false)
      let holds = report.holds
      #expect(holds, "\(text)")
    case .failure(let refused): Issue.record("\(refused.problems.map(\.description).joined(separator: "\n"))")
    }
  }

  /// Every recipe is attacked, or is in `others` with the reason.
  @Test func everyRecipeIsAttacked() {
    let page = "guides/recipes.md"
    let headings = (ManualTests.pages[page] ?? "").split(separator: "\n").filter { $0.hasPrefix("## ") }
      .map { String($0.dropFirst(3)) }
    #expect(headings.count >= 10)
    for heading in headings where Self.others[heading] == nil {
      #expect(Self.recipes.contains { $0.page == page && $0.heading == heading }, "\(heading) has no attacker")
    }
  }

  /// Attack: an operator follows a guide that replaces accounts.lua, and the second factor of the shipped one is gone:
  /// a code to the number alone opens accounts that have an authenticator app.
  @Test(arguments: accountExamples) func noExampleDropsTheSecondFactor(_ example: ManualTests.Example) async throws {
    // The user is in every group, because some examples admit members only.
    let groups = example.text.matches(of: /(\w+) *= members\(\)/).map { "group \"\($0.1)\", " }.joined()
    let cases = """
      case "the app is asked for" {
        phone "+919999999999", account {}, \(groups)client { known = true },
        flow "totp_set", right(), wait "1m",
        flow "login", send(), right(), expect { status = "pending", step = "totp" },
        right(), expect { status = "complete" },
      },
      """
    let folder = try Self.folder(example.page, example.heading, cases: cases)
    try folder.write(example.text, to: "accounts.lua")
    try await Self.expectCasesToHold(in: folder)
  }

  /// The shipped cases pass with the recipes that say so: an operator who follows one is not refused because of them.
  @Test(arguments: ["Invitation only", "Only one email domain"])
  func shippedCasesHoldWithTheRecipe(_ heading: String) async throws {
    let folder = try Self.folder("guides/recipes.md", heading, cases: nil)
    let shipped = TestFolder.root + "/config/tests/"
    for name in try FileManager.default.contentsOfDirectory(atPath: shipped) {
      try folder.write(try String(contentsOfFile: shipped + name, encoding: .utf8), to: "tests/" + name)
    }
    try await Self.expectCasesToHold(in: folder)
  }

  /// Plays all cases of a folder.
  private static func expectCasesToHold(in folder: ScratchFolder) async throws {
    switch ConfigurationLoader(providers: ShippedProviders.all, environment: [:]).read(folder: folder.path) {
    case .success(let loaded):
      let report = try await CaseRunner(
        loaded.generation, providers: ProviderRegistry(ShippedProviders.all), makeStore: { try SQLiteStore.memory() }
      ).run(loaded.cases)
      let text = report.text(colour: false)
      let holds = report.holds
      #expect(holds, "\(text)")
    case .failure(let refused): Issue.record("\(refused.problems.map(\.description).joined(separator: "\n"))")
    }
  }

  /// The examples of policies/NAME.lua hold within the shipped `risk_budget`, so that a reader can use them as they
  /// are.
  @Test(arguments: policyExamples) func examplesKeepTheShippedRiskBudget(_ example: ManualTests.Example) throws {
    let folder = try Self.folder(example.page, example.heading, cases: nil)
    try folder.write(example.text, to: example.file)
    switch ConfigurationLoader(providers: ShippedProviders.all, environment: [:]).read(folder: folder.path) {
    case .success(let loaded):
      let generation = loaded.generation
      let alone = generation.singleFactorProviders
      let budgets = GuessBudget.all(of: generation, providers: try ProviderRegistry(ShippedProviders.all))
      let probability = budgets.filter { alone.contains($0.provider) }.compactMap(\.probability30Days).reduce(0, +)
      #expect(probability <= generation.gateway.riskBudget ?? 1, "\(GuessBudget.percent(probability))")
      // The limits of an example replace all of the provider's.
      let lost = generation.warnings.filter { $0.message.contains("no longer in effect") }.map(\.description)
      #expect(lost.isEmpty, "\(lost)")
    case .failure(let refused): Issue.record("\(refused.problems.map(\.description).joined(separator: "\n"))")
    }
  }

  /// The gateway.lua of guides/other-sites.md has no code by phone, which the cases here sign in with. ManualTests
  /// loads its examples.
  private static let pages = ManualTests.pages.keys.sorted().filter {
    $0.hasPrefix("guides/") && $0 != "guides/other-sites.md" || $0 == "security/entry-points.md"
  }

  private static var allExamples: [ManualTests.Example] {
    pages.flatMap { ManualTests.examples(in: ManualTests.pages[$0] ?? "", page: $0) }
  }

  static let accountExamples = allExamples.filter { $0.file == "accounts.lua" }
  static let policyExamples = allExamples.filter { $0.file.hasPrefix("policies/") && $0.file != "policies/token.lua" }

  static let recipes: [Recipe] = [
    Recipe(
      page: "guides/recipes.md", heading: "Stricter at night",
      cases: """
        case "two guesses at night" {
          clock "2026-12-24T02:00+05:30", phone "+919999999999", account {},
          flow "login", send(), wrong { times = 2 }, expect { status = 429, locked = true },
          right(), expect { locked = true },
        },
        case "one message at night" {
          clock "2026-12-24T02:00+05:30", phone "+919999999999", account {},
          flow "login", send(), wait "2m", resend(), expect { status = 429, messages = 1 },
        },
        case "by day as always" {
          clock "2026-12-24T12:00+05:30", phone "+919999999999", account {},
          flow "login", send(), wrong { times = 4 }, expect { attempts_left = 1 }, right(),
          expect { status = "complete" },
        },
        """),
    Recipe(page: "guides/recipes.md", heading: "Only one country", cases: countries),
    Recipe(
      page: "guides/recipes.md", heading: "Only some countries",
      cases: countries + """
        case "the second country" {
          flow "register", phone "+971501234567", send(), right(), expect { status = "complete" },
        },
        """),
    Recipe(page: "guides/recipes.md", heading: "Fewer attempts for VoIP numbers", cases: voip),
    Recipe(page: "guides/limits-and-locks.md", heading: "Choose a number with a function", cases: voip),
    Recipe(
      page: "guides/limits-and-locks.md", heading: "Change how many attempts users have",
      cases: """
        case "the fifth guess locks" {
          phone "+919999999999", account {},
          flow "login", send(), wrong { times = 5 }, expect { status = 429, locked = true, retry_after = "15m" },
          right(), expect { locked = true },
        },
        case "four mistakes do not" {
          phone "+919999999999", account {},
          flow "login", send(), wrong { times = 4 }, right(), expect { status = "complete" },
        },
        """),
    Recipe(page: "guides/recipes.md", heading: "Nobody registers", cases: nobodyRegisters),
    Recipe(page: "guides/recipes.md", heading: "Invitation only", cases: invitationOnly),
    Recipe(page: "guides/recipes.md", heading: "Invited members of a group", cases: invitedMembers),
    Recipe(page: "guides/recipes.md", heading: "Only one email domain", cases: oneDomain),
    Recipe(page: "guides/recipes.md", heading: "No address outside of the domain", cases: noOtherDomain),
    Recipe(page: "guides/recipes.md", heading: "The PIN on new devices", cases: pinOnNewDevices),
    Recipe(page: "guides/recipes.md", heading: "A second factor for new devices", cases: codeOnNewDevices),
    Recipe(
      page: "guides/recipes.md", heading: "Numbers that matter more",
      cases: """
        case "no more guesses for them" {
          phone "+919999999999", account {},
          flow "login", send(), wrong { times = 5 }, expect { status = 429, locked = true },
        },
        case "and they sign in" {
          phone "+919999999999", account {}, flow "login", send(), right(), expect { status = "complete" },
        },
        """),
    Recipe(page: "guides/recipes.md", heading: "A maintenance window", cases: maintenanceWindow),
    Recipe(page: "guides/flows.md", heading: "Who may sign in", cases: maintenanceWindow),
    Recipe(
      page: "guides/recipes.md", heading: "A second factor for administrators", cases: administrators),
    Recipe(
      page: "guides/recipes.md", heading: "Read-only during maintenance",
      cases: """
        case "nothing is written, on any path" {
          phone "+919999999999", account {}, flow "login", send(), right(),
          request { method = "POST", path = "/accounts" }, expect { status = 403, code = "maintenance" },
          request { method = "DELETE", path = "/assets/logo.svg" }, expect { status = 403, code = "maintenance" },
        },
        case "nothing is written without a session" {
          request { method = "PUT", path = "/assets/logo.svg" }, expect { status = 401 },
        },
        case "everything is read" {
          request { path = "/assets/logo.svg" }, expect { status = 200 },
          phone "+919999999999", account {}, flow "login", send(), right(),
          request { path = "/accounts" }, expect { status = 200 },
          request { method = "HEAD", path = "/accounts" }, expect { status = 200 },
        },
        """),
    Recipe(
      page: "guides/recipes.md", heading: "Administration for staff, with a fresh code",
      cases: """
        case "who is not staff" {
          phone "+919999999999", account {}, flow "login", send(), right(),
          request { path = "/admin" }, expect { status = 403, code = "forbidden" },
          request { method = "POST", path = "/admin/users" }, expect { status = 403, code = "forbidden" },
        },
        case "a session of yesterday, and one without a code to the number" {
          phone "+919999999999", account { email = "asha@example.com" }, group "staff",
          flow "login", send(), right(), wait "6m",
          request { path = "/admin" }, expect { status = 403, code = "step_up_required" },
          flow "login", email "asha@example.com", send(), right(),
          request { path = "/admin" }, expect { status = 403, code = "step_up_required" },
        },
        case "staff" {
          phone "+919999999999", account {}, group "staff", flow "login", send(), right(),
          request { path = "/admin" }, expect { status = 200 },
          request { path = "/accounts" }, expect { status = 200 },
        },
        """),
    Recipe(
      page: "guides/who-may-go-where.md", heading: "Staff only",
      cases: """
        case "another domain, and one that only looks like it" {
          email "eve@example.com.evil.test", account {}, flow "login", send(), right(),
          request { path = "/internal" }, expect { status = 403, code = "forbidden" },
        },
        case "an address that is only claimed" {
          phone "+919999999999", email "boss@example.com", account { email_verified = false },
          flow "login", provider "phone_otp", send(), right(),
          request { path = "/internal/x" }, expect { status = 403, code = "forbidden" },
        },
        case "staff" {
          email "asha@example.com", account {}, flow "login", send(), right(),
          request { path = "/internal/x" }, expect { status = 200 },
        },
        """),
    Recipe(
      page: "guides/who-may-go-where.md", heading: "A list of users",
      cases: """
        case "a member of another group" {
          phone "+919999999999", account {}, group "billing", flow "login", send(), right(),
          request { path = "/ops" }, expect { status = 403, code = "forbidden" },
          request { path = "/invoices/1" }, expect { status = 200 },
        },
        case "a member who has left" {
          phone "+919999999999", account {}, group "ops", flow "login", send(), right(),
          request { path = "/ops/x" }, expect { status = 200 },
          group { ops = false }, request { path = "/ops/x" }, expect { status = 403, code = "forbidden" },
        },
        """),
    Recipe(
      page: "guides/second-factors-and-guarantees.md", heading: "Require a second factor",
      cases: """
        case "a code to the number alone, in every flow" {
          phone "+919999999999", account { email = "asha@example.com", pin = "739154", password = "correct horse" },
          client { known = false },
          flow "login", send(), right(), expect { status = "pending" }, request { path = "/" },
          expect { status = 401 },
          flow "enter", send { until_sent = true }, right(), expect { status = "pending" },
          flow "login_password", email "asha@example.com", enter { password = "correct horse" },
          expect { status = "pending" }, request { path = "/" }, expect { status = 401 },
        },
        case "with the PIN" {
          phone "+919999999999", account { pin = "739154" }, client { known = true },
          flow "login", send(), right(), expect { status = "pending", step = "pin" }, right(),
          expect { status = "complete" },
        },
        """),
  ]

  private static let maintenanceWindow = """
    case "nobody signs in, registers or recovers, by any flow" {
      clock "2026-12-24T02:10+05:30", phone "+919999999999",
      account { email = "asha@example.com", password = "correct horse" },
      flow "login", send(), right(), expect { status = 403, code = "maintenance" },
      flow "login_password", email "asha@example.com", enter { password = "correct horse" },
      expect { status = 403, code = "maintenance" },
      flow "enter", phone "+918888888888", send(), right(), expect { status = 403, code = "maintenance" },
      request { path = "/" }, expect { status = 401 },
    },
    case "a code that was sent before" {
      clock "2026-12-24T01:58+05:30", phone "+919999999999", account {},
      flow "login", send(), wait "3m", right(), expect { status = 403, code = "maintenance" },
      request { path = "/" }, expect { status = 401 },
    },
    case "whether somebody has an account is not told" {
      clock "2026-12-24T02:10+05:30", email "asha@example.com", account { password = "correct horse" },
      flow "login_password", wrong(), expect { status = 401, code = "invalid_password" },
      flow "login_password", email "nobody@example.com", wrong(), expect { status = 401, code = "invalid_password" },
    },
    case "the night shift" {
      clock "2026-12-24T02:10+05:30", phone "+919999999999", account {}, group "night_shift",
      flow "login", send(), right(), expect { status = "complete" },
    },
    case "a session goes on" {
      clock "2026-12-24T01:50+05:30", phone "+919999999999", account {}, flow "login", send(), right(),
      expect { status = "complete" }, wait "20m", request { path = "/" }, expect { status = 200 },
      flow "step_up", send(), right(), expect { status = "complete" },
    },
    case "afterwards" {
      clock "2026-12-24T03:00+05:30", phone "+919999999999", account {},
      flow "login", send(), right(), expect { status = "complete" },
    },
    """

  private static let administrators = """
    case "the SIM card of an administrator, in every flow" {
      phone "+919999999999", account {}, client { known = true }, group "admins",
      flow "totp_set", right(), wait "1m",
      flow "login", send(), right(), expect { status = "pending", step = "totp" }, wait "2m",
      flow "enter", send(), right(), expect { status = "pending", step = "totp" },
    },
    case "a member since a moment ago" {
      phone "+919999999999", account {}, flow "login", send(), right(), expect { status = "complete" },
      request { path = "/admin" }, expect { status = 403, code = "forbidden" },
      group "admins", request { path = "/admin" }, expect { status = 403, code = "step_up_required" },
    },
    case "an administrator" {
      phone "+919999999999", account {}, client { known = true }, group "admins",
      flow "totp_set", right(), wait "1m",
      flow "login", send(), right(), expect { status = "pending", step = "totp" }, right(),
      expect { status = "complete" }, request { path = "/admin" }, expect { status = 200 },
    },
    case "somebody else" {
      phone "+919999999999", account {}, flow "login", send(), right(), expect { status = "complete" },
      request { path = "/" }, expect { status = 200 },
    },
    """

  private static let countries = """
    case "another country, in every flow" {
      flow "register", phone "+31612345678", send(), expect { status = 403, code = "country_not_served", messages = 0 },
      flow "enter", send(), expect { status = 403, code = "country_not_served", messages = 0 },
    },
    case "a number of another country beside an address" {
      email "asha@example.com", account {},
      flow "join_phone", phone "+31612345678", send(),
      expect { status = 403, code = "country_not_served", messages = 0 },
    },
    case "the country" {
      flow "register", phone "+919999999999", send(), right(), expect { status = "complete" },
    },
    """

  private static let voip = """
    case "two guesses" {
      phone "+445600123456", account {},
      flow "login", send(), wrong { times = 2 }, expect { status = 429, locked = true }, right(),
      expect { locked = true },
    },
    case "a mobile number has five" {
      phone "+919999999999", account {},
      flow "login", send(), wrong { times = 4 }, expect { attempts_left = 1 }, right(), expect { status = "complete" },
    },
    """

  private static let nobodyRegisters = """
    case "a stranger, in every flow" {
      phone "+919999999999", flow "register", expect { status = 403, code = "registration_closed" },
      flow "register_email", expect { status = 403, code = "registration_closed" },
      flow "enter", send(), expect { status = 403, code = "registration_closed", messages = 0 },
      flow "login", send(), expect { status = 404, code = "account_not_found", messages = 0 },
      request { path = "/" }, expect { status = 401 },
    },
    case "an account that exists" {
      phone "+919999999999", account {}, flow "login", send(), right(), expect { status = "complete" },
      wait "2m", flow "enter", send(), right(), expect { status = "complete" }, request { path = "/" },
      expect { status = 200 },
    },
    """

  private static let invitationOnly = """
    case "a stranger, in every flow" {
      phone "+919999999999", flow "register", expect { status = 403, code = "invitation_required" },
      flow "register_email", expect { status = 403, code = "invitation_required" },
      flow "enter", send(), expect { status = 403, code = "invitation_required", messages = 0 },
      flow "login", send(), expect { status = 404, code = "account_not_found", messages = 0 },
      request { path = "/" }, expect { status = 401 },
    },
    case "somebody with the invitation of another user" {
      invited { to = "asha@example.com" }, email "eve@evil.test",
      flow "register_email", enter { password = "correct horse", first_name = "Eve", last_name = "Roe" },
      expect { status = "pending", step = "email_code" },
      skip(), expect { status = 409, code = "step_not_open" },
      send(), right(), expect { status = 403, code = "invitation_invalid" },
      request { path = "/" }, expect { status = 401 },
    },
    case "a second account by one invitation" {
      invited(), phone "+919999999999", flow "register", send(), right(), expect { status = "complete" },
      phone "+918888888888", flow "register", expect { status = 403, code = "invitation_required" },
    },
    case "an account that exists is opened, and not registered again" {
      phone "+919999999999", account {}, invited(),
      flow "register", send(), expect { status = 409, code = "already_registered" },
      wait "2m", flow "login", send(), right(), expect { status = "complete" },
      request { path = "/" }, expect { status = 200 },
    },
    case "an invited user" {
      invited { to = "asha@example.com" }, email "asha@example.com",
      flow "register_email", enter { password = "correct horse", first_name = "Asha", last_name = "Rao" },
      send(), right(), expect { status = "complete" }, request { path = "/" }, expect { status = 200 },
      flow "login_password", enter { password = "correct horse" }, expect { status = "complete" },
    },
    case "an invited number" {
      invited { to = "+919999999999" }, phone "+919999999999",
      flow "enter", send(), right(), expect { status = "complete" },
    },
    """

  private static let invitedMembers = """
    case "an invitation without the group" {
      invited(), phone "+919999999999", flow "register", send(), right(),
      expect { status = 403, code = "not_staff" }, request { path = "/" }, expect { status = 401 },
    },
    case "a user outside the group, in every flow" {
      phone "+919999999999", account { password = "correct horse", email = "asha@example.com" },
      flow "login", send(), right(), expect { status = 403, code = "not_staff" },
      wait "2m", flow "enter", send(), right(), expect { status = 403, code = "not_staff" },
      email "asha@example.com", flow "login_password", enter { password = "correct horse" },
      expect { status = 403, code = "not_staff" }, request { path = "/" }, expect { status = 401 },
    },
    case "a removed member" {
      phone "+919999999999", account {}, group "staff", flow "login", send(), right(), expect { status = "complete" },
      group { staff = false }, wait "2m", flow "login", send(), right(), expect { status = 403, code = "not_staff" },
    },
    case "an invited member" {
      invited { groups = { "staff" } }, phone "+919999999999",
      flow "register", send(), right(), expect { status = "complete" }, request { path = "/" }, expect { status = 200 },
      wait "2m", flow "login", send(), right(), expect { status = "complete" },
    },
    """

  private static let oneDomain = """
    case "an address of another domain" {
      email "eve@evil.test",
      flow "register_email", enter { password = "correct horse", first_name = "Eve", last_name = "Roe" },
      skip(), expect { status = "refused" },
      send(), right(), expect { status = 403, code = "invitation_required" },
      request { path = "/" }, expect { status = 401 },
      flow "login_password", enter { password = "correct horse" }, expect { status = 401 },
    },
    case "an address of a subdomain" {
      email "eve@rented.example.com",
      flow "register_email", enter { password = "correct horse", first_name = "Eve", last_name = "Roe" },
      send(), right(), expect { status = 403, code = "invitation_required" },
    },
    case "somebody else's address of the domain" {
      email "boss@example.com",
      flow "register_email", enter { password = "correct horse", first_name = "Eve", last_name = "Roe" },
      expect { status = "pending", step = "email_code" },
      skip(), expect { status = 409, code = "step_not_open" },
      send(), wrong(), expect { status = 401 }, request { path = "/" }, expect { status = 401 },
      flow "login_password", enter { password = "correct horse" }, expect { status = 401 },
    },
    case "a number without an address, in every flow" {
      phone "+919999999999",
      flow "register", send(), expect { status = 403, code = "invitation_required", messages = 0 },
      flow "enter", send(), expect { status = 403, code = "invitation_required", messages = 0 },
      flow "login", send(), expect { status = 404, code = "account_not_found", messages = 0 },
    },
    case "whether somebody has an account is not told" {
      email "asha@evil.test", account { password = "correct horse" },
      flow "login_password", wrong(), expect { status = 401, code = "invalid_password" },
      flow "login_password", email "nobody@evil.test", wrong(), expect { status = 401, code = "invalid_password" },
    },
    case "a guest with an invitation" {
      invited(), phone "+919999999999", flow "register", send(), right(), expect { status = "complete" },
    },
    case "an employee" {
      email "Asha@Example.com",
      flow "register_email", enter { password = "correct horse", first_name = "Asha", last_name = "Rao" },
      send(), right(), expect { status = "complete" }, request { path = "/" }, expect { status = 200 },
      flow "login_password", enter { password = "correct horse" }, expect { status = "complete" },
    },
    """

  private static let noOtherDomain = """
    case "out of the domain again" {
      email "asha@example.com", account { password = "correct horse" },
      flow "change_email", email "asha@evil.test", send(), expect { status = 403, code = "wrong_domain", messages = 0 },
    },
    case "another address of the domain" {
      email "asha@example.com", account { password = "correct horse" },
      flow "change_email", email "rao@example.com", send(), expect { status = "pending" },
    },
    """

  private static let pinOnNewDevices = """
    case "a SIM card on another device, in every flow" {
      phone "+919999999999", account { pin = "739154", email = "asha@example.com" }, client { known = false },
      flow "login", send(), right(), expect { status = "pending", step = "pin" },
      wrong(), expect { status = 401 }, request { path = "/" }, expect { status = 401 },
      flow "enter", send { until_sent = true }, right(), expect { status = "pending", step = "pin" },
      request { path = "/" }, expect { status = 401 },
    },
    case "the owner on another device" {
      phone "+919999999999", account { pin = "739154" }, client { known = false },
      flow "login", send(), right(), expect { step = "pin" }, right(), expect { status = "complete" },
    },
    case "the owner at home" {
      phone "+919999999999", account { pin = "739154" }, client { known = true },
      flow "login", send(), right(), expect { status = "complete" },
    },
    """

  private static let codeOnNewDevices = """
    case "a SIM card on another device, in every flow" {
      phone "+919999999999", account { email = "asha@example.com" }, client { known = false },
      flow "login", send(), right(), expect { status = "pending", step = "email_code" },
      request { path = "/" }, expect { status = 401 },
      flow "enter", send { until_sent = true }, right(), expect { status = "pending", step = "email_code" },
      request { path = "/" }, expect { status = 401 },
    },
    case "the owner at home" {
      phone "+919999999999", account { email = "asha@example.com" }, client { known = true },
      flow "login", send(), right(), expect { status = "complete" },
    },
    """
}
