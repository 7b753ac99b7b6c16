import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// Reading accounts.lua, its problems, and the warnings of `check`.
@Suite struct AccountRulesTests {
  private static let gateway = """
    return gateway {
      public_url = "http://localhost:8080",
      region = "IN",
      providers = { phone_otp = { sms = outbox() }, email_code = { mail = outbox() }, pin = {}, totp = {}, password = {} },
    }
    """
  private static let policies: [String: String?] = Dictionary(
    uniqueKeysWithValues: ["pin", "totp", "password"].map { ("policies/\($0).lua", "return policy \"\($0)\" {}") })

  private static func folder(_ accounts: String?, _ files: [String: String?] = [:]) throws -> TestFolder {
    var all = policies.merging(["gateway.lua": gateway, "accounts.lua": accounts]) { $1 }
    all.merge(files) { $1 }
    return try TestFolder(all)
  }

  private static func load(_ folder: TestFolder) throws -> any PolicyGeneration {
    switch folder.load(ShippedProviders.all.map(\.descriptor)) {
    case .success(let generation): return generation
    case .failure(let refused): throw TestFolder.Refused(problems: refused.problems.map(\.description))
    }
  }

  private static func problems(_ accounts: String, _ files: [String: String?] = [:]) throws -> [String] {
    switch try folder(accounts, files).load(ShippedProviders.all.map(\.descriptor)) {
    case .success: []
    case .failure(let refused): refused.problems.map(\.description)
    }
  }

  private static func warnings(_ accounts: String?, _ files: [String: String?] = [:]) throws -> [String] {
    try load(folder(accounts, files)).warnings.map(\.description)
  }

  // MARK: values

  @Test func aFolderWithoutTheFileHasTheDefaults() throws {
    let accounts = try Self.load(Self.folder(nil)).accounts
    #expect(accounts == .standard && accounts.signIn.isEmpty)
    #expect(accounts.registration == .open)
    #expect(accounts.changeWithin == .seconds(600) && accounts.recoveryDelay == .seconds(86_400))
    #expect(accounts.unverifiedLifetime == .seconds(30 * 86_400))
  }

  @Test func everyFieldIsRead() throws {
    let text = """
      return accounts {
        sign_in = {
          { "totp", when = function(f) return f.account.factors.totp end },
          { any_of { "pin", "email_code" }, when = function(f) return f.client.new_device and f.account.has_pin end },
          { "pin", enroll = true },
          "phone_otp", any_of { "password", "google_oauth" },
        },
        registration = "closed", change_within = "5m", recovery_delay = "0s", unverified_lifetime = "7d",
      }
      """
    let accounts = try Self.load(Self.folder(text)).accounts
    #expect(accounts.registration == .closed)
    for (text, rule) in [
      ("\"invited\"", RegistrationRule.invited()), ("{ \"invited\" }", .invited()), ("{ \"closed\" }", .closed),
      (
        "{ \"invited\", domains = { \"Example.COM\", \"bücher.example\" } }",
        .invited(domains: ["example.com", "xn--bcher-kva.example"])
      ),
    ] {
      let read = try Self.load(Self.folder("return accounts { registration = \(text) }")).accounts
      #expect(read.registration == rule, "\(text)")
    }
    #expect(accounts.signIn.map(\.choices) == [["totp"], ["pin", "email_code"], ["pin"], ["phone_otp"], ["password"]])
    #expect(accounts.signIn.map(\.enroll) == [false, false, true, false, false])
    #expect(
      accounts.signIn.map { $0.when?.path } == ["accounts.sign_in[1].when", "accounts.sign_in[2].when", nil, nil, nil])
    #expect(accounts.signIn.map(\.location.line) == [3, 4, 5, 6, 6])
    #expect(
      accounts.changeWithin == .seconds(300) && accounts.recoveryDelay == .zero
        && accounts.unverifiedLifetime == .seconds(7 * 86_400))
    let evaluator = try Self.load(Self.folder(text)).makeEvaluator()
    for isNew in [true, false] {
      let facts = Facts.test {
        $0.client.isNewDevice = isNew
        $0.account = AccountFacts(exists: true, id: "ac_1", hasPIN: true)
      }
      #expect(try evaluator.condition(of: FunctionName("accounts.sign_in[2].when"), given: facts) == isNew)
    }
  }

  @Test func offersAreRead() throws {
    let text = """
      return accounts {
        offer = {
          { "totp", every = "7d", when = function(f) return f.flow.passed.phone_otp end },
          "pin",
        },
      }
      """
    let generation = try Self.load(Self.folder(text))
    let offers = generation.accounts.offers
    #expect(
      offers.map(\.provider) == ["totp", "pin"] && offers.map(\.every) == [.seconds(7 * 86_400), .seconds(30 * 86_400)])
    #expect(offers.map { $0.when?.path } == ["accounts.offer[1].when", nil] && offers.map(\.location.line) == [3, 4])
    let shown = PolicyListing(generation.accounts).text(colour: false)
    for line in [
      "offer[1]             \"totp\" ", "offer[1].every       \"7d\" ", "offer[1].when        function ",
      "offer[2].every       \"30d\" ",
    ] {
      #expect(shown.contains(line), "\(shown)")
    }
    let facts = Facts.test { $0.flow = FlowFacts(name: "login", passed: ["phone_otp"]) }
    #expect(try generation.makeEvaluator().condition(of: FunctionName("accounts.offer[1].when"), given: facts))
  }

  @Test func unreachableOfferGivesAWarning() throws {
    let offer = { (text: String) in "return accounts {\noffer = {\n\(text)\n},\n}" }
    #expect(
      try Self.warnings(offer("{ \"passkey\", every = \"30d\" },")) == [
        "accounts.lua:3: offer[1]: is left out: gateway.lua does not configure `passkey`"
      ])
    #expect(try Self.load(Self.folder(offer("\"passkey\", \"pin\""))).accounts.offers.map(\.provider) == ["pin"])
    let off = "return flow \"totp_set\" { enabled = false }"
    #expect(
      try Self.warnings(offer("\"totp\","), ["flows/totp_set.lua": off]).contains(
        "accounts.lua:3: offer[1]: `totp` is never offered: no flow sets it up. Add one with purpose = \"set\" and provider = \"totp\", or remove the offer"
      ))
  }

  @Test func theFileIsPartOfTheGeneration() throws {
    let ids = try [nil, "return accounts {}", "return accounts { change_within = \"9m\" }"].map {
      try Self.load(Self.folder($0)).id
    }
    #expect(Set(ids).count == 3)
  }

  @Test func everyValueIsShownWithItsOrigin() throws {
    let text = """
      return accounts {
        sign_in = {
          { any_of { "pin", "email_code" }, enroll = true,
            when = function(f) return f.account.has_pin end },
        },
        recovery_delay = "48h",
      }
      """
    let shown = PolicyListing(try Self.load(Self.folder(text)).accounts).text(colour: false)
    #expect(
      shown == """
        accounts

          registration         "open"                                   by default
          sign_in[1]           any_of { "pin", "email_code" }           accounts.lua:3
          sign_in[1].when      function                                 accounts.lua:4
          sign_in[1].enroll    true                                     accounts.lua:3
          change_within        "10m"                                    by default
          recovery_delay       "2d"                                     accounts.lua:6
          unverified_lifetime  "30d"                                    by default
        """, "\(shown)")
    #expect(PolicyListing(.standard).text(colour: false).contains("sign_in              {}"))
  }

  // MARK: mistakes

  struct Mistake: Sendable, CustomTestStringConvertible {
    let text: String
    let problems: [String]
    var testDescription: String { problems.first ?? text }

    init(_ text: String, _ problems: String...) {
      self.text = text
      self.problems = problems.map { "accounts.lua:\($0)" }
    }
  }

  private static func signIn(_ steps: String) -> String { "return accounts {\nsign_in = {\n\(steps)\n},\n}" }

  private static func offer(_ offers: String) -> String { "return accounts {\noffer = {\n\(offers)\n},\n}" }

  static let mistakes: [Mistake] = [
    Mistake(
      "return accounts {\nsignin = {},\n}",
      "2: signin: unknown field; did you mean `sign_in`? (the steps that every session of an existing account requires)"
    ),
    Mistake(
      "return accounts {\nchange_within = 600,\n}",
      "2: change_within: a bare number is not a duration; write \"600s\" for seconds or \"600m\" for minutes"),
    Mistake(
      "return accounts {\nregistration = \"shut\",\n}",
      "2: registration: \"shut\" is not known; available: `closed`, `invited` and `open`"),
    Mistake(
      "return accounts {\nregistration = { domains = { \"example.com\" } },\n}",
      "2: registration: must begin with one word, as in { \"invited\", domains = { \"example.com\" } }"),
    Mistake(
      "return accounts {\nregistration = { \"open\", domains = { \"example.com\" } },\n}",
      "2: registration.domains: belongs to \"invited\": \"open\" makes no difference between users"),
    Mistake(
      "return accounts {\nregistration = { \"invited\", domain = { \"example.com\" } },\n}",
      "2: registration.domain: unknown field; did you mean `domains`? (the domains whose verified addresses need no invitation, without their subdomains, as in { \"example.com\" })"
    ),
    Mistake(
      "return accounts {\nregistration = { \"invited\", domains = { \"*.example.com\" } },\n}",
      "2: registration.domains: \"*.example.com\" is not the domain of an email address: write one such as \"example.com\", without @ and *"
    ),
    Mistake("return accounts {\nchange_within = \"0s\",\n}", "2: change_within: must be longer than \"0s\""),
    Mistake("return accounts {\nchange_within = \"25h\",\n}", "2: change_within: must be at most \"24h\""),
    Mistake("return accounts {\nrecovery_delay = \"400d\",\n}", "2: recovery_delay: must be at most \"365d\""),
    Mistake(
      "return accounts {\nunverified_lifetime = \"soon\",\n}",
      "2: unverified_lifetime: \"soon\" is not a duration; write \"90s\", \"10m\", \"1h30m\" or \"7d\""),
    Mistake(
      "return accounts {\nunverified_lifetime = \"4000d\",\n}", "2: unverified_lifetime: must be at most \"3650d\""),
    Mistake(
      "return accounts {\nsign_in = \"totp\",\n}",
      "2: sign_in: must be a list of steps, as in { { \"totp\", when = function(f) return f.account.factors.totp end } }, not \"totp\""
    ),
    Mistake(
      "return accounts {\nsign_in = { \"totp\", when = function(f) return true end },\n}",
      "2: sign_in: must be a list of steps, as in { { \"totp\", when = function(f) return f.account.factors.totp end } }: each step with a condition is a "
        + "separate table"),
    Mistake(signIn("{ \"topt\" },"), "3: sign_in[1]: unknown provider \"topt\"; did you mean `totp`?"),
    Mistake(
      signIn("{ \"google_oauth\" },"),
      "3: sign_in[1]: no provider of this step is configured: name `google_oauth` under `providers` in gateway.lua, or remove the step"
    ),
    Mistake(signIn("{ 7 },"), "3: sign_in[1]: must name a provider in quotes, not the number 7"),
    Mistake(signIn("7,"), "3: sign_in[1]: must name a provider in quotes, not the number 7"),
    Mistake(
      signIn("{ any_of {} },"),
      "3: sign_in[1]: any_of takes a list of providers, as in any_of { \"phone_otp\", \"pin\" }"),
    Mistake(
      signIn("{ when = function(f) return true end },"),
      "3: sign_in[1]: a step must begin with its provider, as in { \"totp\" }"),
    Mistake(
      signIn("{ \"totp\",\nwhen = true },"),
      "4: sign_in[1].when: must be a function, as in function(f) return f.account.factors.totp end, not true"),
    Mistake(
      signIn("{ \"totp\",\nwhn = function(f) return true end },"),
      "4: sign_in[1].whn: unknown field; did you mean `when`? (a function of facts)"),
    Mistake(
      signIn("{ \"totp\",\nskippable = true },"),
      "4: sign_in[1].skippable: unknown field; available: `enroll` and `when`"),
    Mistake(signIn("{ \"totp\",\nenroll = \"yes\" },"), "4: sign_in[1].enroll: must be true or false, not \"yes\""),
    Mistake(
      signIn("{ any_of { \"email_code\", \"password\" },\nenroll = true },"),
      "4: sign_in[1].enroll: `email_code` and `password` cannot be set up during a sign-in: only factors that are not identifiers can, such as `pin` and `totp`"
    ),
    Mistake(
      signIn("{ \"totp\", when = function(f)\nreturn f.acount.factors.totp end },"),
      "4: unknown fact `f.acount`; did you mean `account`?"),
    Mistake(
      signIn("{ \"totp\", when = function(f)\nreturn f.account.factors.topt end },"),
      "4: `f.account.factors.topt`: unknown provider `topt`; did you mean `totp`?"),
    Mistake(
      "return accounts {\noffer = \"totp\",\n}",
      "2: offer: must be a list of providers, as in { { \"passkey\", every = \"30d\" } }"),
    Mistake(
      offer("{ every = \"30d\" },"),
      "3: offer[1]: an offer must begin with one provider, as in { \"passkey\", every = \"30d\" }"),
    Mistake(offer("\"topt\","), "3: offer[1]: unknown provider \"topt\"; did you mean `totp`?"),
    Mistake(offer("7,"), "3: offer[1]: must name a provider in quotes, not the number 7"),
    Mistake(offer("\"totp\",\n{ \"totp\" },"), "4: offer[2]: offers `totp` a second time"),
    Mistake(
      offer("\"phone_otp\","),
      "3: offer[1]: `phone_otp` cannot be offered: only factors that are not identifiers can, such as `passkey` and `totp`"
    ),
    Mistake(offer("{ \"totp\",\nevery = \"5m\" },"), "4: offer[1].every: must be longer than \"5m\""),
    Mistake(offer("{ \"totp\",\nevery = \"400d\" },"), "4: offer[1].every: must be at most \"365d\""),
    Mistake(offer("{ \"totp\",\nenroll = true },"), "4: offer[1].enroll: unknown field; available: `every` and `when`"),
    Mistake(
      offer("{ \"totp\",\nwhen = function(f) return f.acount end },"),
      "4: unknown fact `f.acount`; did you mean `account`?"),
    Mistake("return acounts {}", "1: unknown name `acounts`; did you mean `accounts`?"),
    Mistake("return { sign_in = {} }", " must return accounts { … }, but returns a table"),
    Mistake("local x = 1", " must return accounts { … }, but returns nothing"),
    Mistake("return accounts {", "1: unexpected symbol near <eof>"),
  ]

  @Test(arguments: mistakes) func reportsTheMistakeAndItsLocation(_ mistake: Mistake) throws {
    let problems = try Self.problems(mistake.text)
    #expect(problems == mistake.problems, "\(problems)")
  }

  /// Attack: the requirements of accounts do not apply because the file has another name.
  @Test func aMisspelledFileIsRefused() throws {
    #expect(
      try Self.folder(nil, ["account.lua": "return accounts {}"]).load(ShippedProviders.all.map(\.descriptor)).problems
        == [
          "account.lua: is not read; did you mean `accounts.lua`?"
        ])
    #expect(
      try Self.folder(nil, ["guarantee.lua": "return guarantees {}"]).load(ShippedProviders.all.map(\.descriptor))
        .problems == [
          "guarantee.lua: is not read; did you mean `guarantees.lua`?"
        ])
  }

  /// Attack: a container mounts a missing file as a folder, so that accounts require nothing.
  @Test func aFolderInTheFilesPlaceIsRefused() throws {
    let problems = try Self.folder(nil, ["accounts.lua/stray.txt": ""]).load(ShippedProviders.all.map(\.descriptor))
      .problems
    #expect(problems.count == 1 && problems.first?.hasPrefix("accounts.lua: ") ?? false, "\(problems)")
  }

  @Test func aFunctionThatNeverEndsIsStopped() throws {
    let generation = try Self.load(Self.folder(Self.signIn("{ \"totp\", when = function(f) while true do end end },")))
    #expect(throws: PolicyFault.self) {
      try generation.makeEvaluator().condition(of: FunctionName("accounts.sign_in[1].when"), given: Facts.test { _ in })
    }
  }

  // MARK: warnings

  private static func flow(_ name: String, _ account: String, _ steps: String) -> String {
    "return flow \"\(name)\" {\n\(TestFolder.purpose(of: name))account = \"\(account)\",\nsteps = {\n\(steps)\n},\n}"
  }

  private static let enter = flow("enter", "any", "{ \"phone_otp\" },")
  private static let totp = "{ \"totp\", when = function(f) return f.account.factors.totp end },"

  @Test func stepThatAnotherFlowLacksGivesAWarning() throws {
    let login = Self.flow("login", "existing", "{ \"phone_otp\" },\n\(Self.totp)")
    let told =
      "step totp does not protect accounts: flow \"enter\" opens the same accounts without it; move it to accounts.lua"
    #expect(
      try Self.warnings(nil, ["flows/login.lua": login, "flows/enter.lua": Self.enter]) == [
        "flows/login.lua:5: \(told)"
      ])
    // If both flows ask for the factor, or the account requires it, no account is unprotected.
    let both = Self.flow("enter", "any", "{ \"phone_otp\" },\n\(Self.totp)")
    #expect(try Self.warnings(nil, ["flows/login.lua": login, "flows/enter.lua": both]) == [])
    #expect(try Self.warnings(Self.signIn(Self.totp), ["flows/login.lua": login, "flows/enter.lua": Self.enter]) == [])
    // A flow that only creates accounts does not open existing ones.
    #expect(
      try Self.warnings(
        nil, ["flows/login.lua": login, "flows/register.lua": Self.flow("register", "new", "{ \"phone_otp\" },")]) == []
    )
  }

  @Test func stepThatAResetFlowLacksGivesAWarning() throws {
    let login = Self.flow("login_password", "existing", "{ \"password\" },\n{ \"pin\" },")
    let reset = Self.flow("password_reset", "existing", "{ \"email_code\" },\n{ \"password\" },")
    #expect(
      try Self.warnings(
        nil,
        [
          "flows/login.lua": nil, "flows/login_password.lua": login, "flows/password_reset.lua": reset,
          "routes.lua": nil,
        ]
      ).filter {
        $0.hasPrefix("flows/")
      } == [
        "flows/login_password.lua:5: step pin does not protect accounts: flow \"password_reset\" opens the same accounts without it; move it to accounts.lua"
      ])
  }

  @Test(arguments: [
    (
      "{ \"totp\" },",
      "`totp` (403 denied): test for it, as in when = function(f) return f.account.factors.totp end, or "
    ),
    (
      "{ \"totp\", when = function(f) return f.client.new_device end },",
      "`totp` (403 denied): test for it, as in when = function(f) return f.account.factors.totp end, or "
    ),
    (
      "{ any_of { \"pin\", \"email_code\" }, when = function(f) return f.account.has_email end },",
      "`pin` or `email_code` (403 denied): test for it, as in when = function(f) return f.account.factors.pin or f.account.email_verified end, or "
    ),
  ])
  func requirementThatRefusesAccountsGivesAWarning(_ step: String, _ told: String) throws {
    #expect(
      try Self.warnings(Self.signIn(step)) == [
        "accounts.lua:3: sign_in[1]: refuses an account that has no \(told)add enroll = true if users should set it up during the sign-in"
      ])
  }

  @Test(arguments: [
    totp, "{ \"totp\", enroll = true },",
    "{ any_of { \"pin\", \"email_code\" }, when = function(f) return f.client.new_device and f.account.has_pin end },",
    "{ \"email_code\", when = function(f) return f.client.new_device and f.account.email_verified end },",
    "{ \"phone_otp\", when = function(f) return f.account.phone_verified and f.flow.name == \"login\" end },",
  ])
  func conditionOnTheFactorGivesNoWarning(_ step: String) throws {
    #expect(try Self.warnings(Self.signIn(step)) == [])
  }

  @Test func flowThatCannotBeCompletedGivesAWarning() throws {
    let reset = Self.flow("password_reset", "existing", "{ \"email_code\" },\n{ \"password\" },")
    let warnings = try Self.warnings(Self.signIn("{ \"password\" },"), ["flows/password_reset.lua": reset])
    #expect(
      warnings.contains(
        "accounts.lua:3: sign_in[1]: flow \"password_reset\" can never be completed: it replaces `password`, which verifies nothing; add another "
          + "factor, as in any_of { … }"), "\(warnings)")
  }

  @Test func requiredFactorIsNotASingleFactorProvider() throws {
    let generation = try Self.load(Self.folder(Self.signIn("{ \"totp\" },")))
    #expect(generation.singleFactorProviders.isEmpty)
    #expect(try Self.load(Self.folder(Self.signIn(Self.totp))).singleFactorProviders == ["phone_otp"])
    #expect(
      try Self.load(Self.folder(Self.signIn("{ \"totp\", enroll = true },"))).singleFactorProviders == ["phone_otp"])
  }
}

extension Result where Success == any PolicyGeneration, Failure == RefusedConfiguration {
  fileprivate var problems: [String] {
    if case .failure(let refused) = self { refused.problems.map(\.description) } else { [] }
  }
}
