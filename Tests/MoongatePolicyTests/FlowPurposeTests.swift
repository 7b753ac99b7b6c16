import MoongateCore
import MoongatePolicy
import MoongateSDK
import MoongateTesting
import Testing

/// The purposes of flows (`purpose` in flows/NAME.lua), and the flows that providers ship.
@Suite struct FlowPurposeTests {
  private static let providers = """
    phone_otp = { sms = outbox() }, email_code = { mail = outbox() }, pin = {}, password = {}
    """

  /// A folder with a flow that has the given fields.
  private static func folder(_ fields: String, named name: String = "any_name", _ files: [String: String?] = [:]) throws
    -> TestFolder
  {
    let own: [String: String?] = [
      "gateway.lua": gateway(providers), "flows/\(name).lua": "return flow \"\(name)\" {\n\(fields)\n}",
      "policies/pin.lua": "return policy \"pin\" {}", "policies/password.lua": "return policy \"password\" {}",
    ]
    return try TestFolder(own.merging(files) { $1 })
  }

  private static func gateway(_ providers: String) -> String {
    "return gateway { public_url = \"http://localhost:8080\", region = \"IN\", providers = { \(providers) } }"
  }

  private static func load(
    _ folder: TestFolder, _ providers: [ProviderDescriptor] = ShippedProviders.all.map(\.descriptor)
  ) throws
    -> any PolicyGeneration
  {
    switch folder.load(providers) {
    case .success(let generation): return generation
    case .failure(let refused): throw TestFolder.Refused(problems: refused.problems.map(\.description))
    }
  }

  private static func problems(
    _ folder: TestFolder, _ providers: [ProviderDescriptor] = ShippedProviders.all.map(\.descriptor)
  ) -> [String] {
    if case .failure(let refused) = folder.load(providers) { refused.problems.map(\.description) } else { [] }
  }

  // MARK: - registers

  private static let codes = "phone_otp = { sms = outbox() }, email_code = { mail = outbox() }"
  private static let sites =
    codes + ", google_oauth = { client_id = \"a\", client_secret = file \"google.secret\" }"

  private static func registering(_ fields: String, _ providers: String = sites) throws -> TestFolder {
    try folder(
      "steps = { { any_of { \"phone_otp\", \"google_oauth\" } } },\n\(fields)",
      [
        "gateway.lua": gateway(providers), "google.secret": "a secret of Google's", "policies/pin.lua": nil,
        "policies/password.lua": nil,
      ])
  }

  @Test func registersNamesProvidersOfTheFlow() throws {
    let generation = try Self.load(try Self.registering("account = \"existing\", registers = { \"google_oauth\" }"))
    #expect(generation.flows["any_name"]?.registers == ["google_oauth"])
    #expect(try Self.load(try Self.registering("account = \"existing\"")).flows["any_name"]?.registers == [])
    // Like a choice of a step, a provider that is not configured is left out.
    let without = try Self.load(
      try Self.registering("account = \"existing\", registers = { \"google_oauth\" }", Self.codes))
    #expect(without.flows["any_name"]?.registers == [])
  }

  @Test(arguments: ["any", "new"]) func registersHasNoEffectOnFlowsThatCreateAccounts(_ account: String) throws {
    let generation = try Self.load(
      try Self.registering("account = \"\(account)\", registers = { \"google_oauth\" }"))
    #expect(generation.flows["any_name"]?.registers == [])
    #expect(generation.warnings.contains { "\($0)".contains("registers") && "\($0)".contains("has no effect") })
  }

  @Test(arguments: [
    ("account = \"existing\", registers = { \"phone_otp\" }", "`phone_otp` proves no identities at another site"),
    ("account = \"existing\", registers = { \"email_code\" }", "no step of this flow offers `email_code`"),
    ("account = \"existing\", registers = { \"google_aouth\" }", "did you mean `google_oauth`?"),
    ("account = \"existing\", registers = \"google_oauth\"", "must be a list of texts"),
    (
      "purpose = \"step_up\", account = \"existing\", registers = { \"google_oauth\" }",
      "is only for flows that sign people in"
    ),
  ]) func wrongRegistersHasItsFileAndLine(_ fields: String, _ sentence: String) throws {
    let found = Self.problems(try Self.registering(fields))
    #expect(found.count == 1 && found.allSatisfy { $0.contains("flows/any_name.lua:3: registers") }, "\(found)")
    #expect(found.first?.contains(sentence) ?? false, "\(found)")
  }

  // MARK: - Registration that is off

  /// The purpose and the account rule say whether registration is closed, not the name. A file that only turns a flow
  /// off has the purpose of its usual name.
  @Test(arguments: [
    ("register", "enabled = false", true),
    ("register_email", "enabled = false", true),
    ("join_us", "enabled = false, purpose = \"register\", account = \"any\"", true),
    ("join_us", "enabled = false, account = \"new\", steps = { { \"phone_otp\" } }", true),
    ("join_us", "enabled = false", false),
    ("enter", "enabled = false, account = \"any\", steps = { { \"phone_otp\" } }", false),
    ("register", "enabled = false, purpose = \"sign_in\", account = \"any\"", false),
    ("pin_set", "enabled = false", false),
    // Its provider is not configured.
    (
      "with_site",
      "purpose = \"register\", provider = \"google_oauth\", account = \"new\", steps = { { \"google_oauth\" } }", true
    ),
    ("register", "purpose = \"register\", account = \"new\", steps = { { \"phone_otp\" } }", false),
  ]) func registrationIsClosedByPurpose(_ name: String, _ fields: String, _ isClosed: Bool) throws {
    let generation = try Self.load(try Self.folder(fields, named: name))
    #expect(generation.closedRegistrations == (isClosed ? [name] : []))
  }

  /// Pages lead to the flow of a purpose, whatever its name. The usual name is preferred.
  @Test func flowIsFoundByItsPurpose() throws {
    let fields = "purpose = \"step_up\", account = \"existing\", steps = { { \"pin\" } }"
    #expect(try Self.load(try Self.folder(fields, named: "confirm")).flowName(for: .stepUp) == "confirm")
    let both = try Self.folder(fields, named: "confirm", ["flows/step_up.lua": "return flow \"step_up\" {\(fields)}"])
    #expect(try Self.load(both).flowName(for: .stepUp) == "step_up")
    let none = try Self.folder("account = \"any\", steps = { { \"phone_otp\" } }")
    #expect(try Self.load(none).flowName(for: .stepUp) == "step_up")
    #expect(try Self.load(none).flow(for: .signIn)?.name == "login")
  }

  // MARK: - The purpose field

  @Test(arguments: [
    ("purpose = \"sign_in\", account = \"any\", steps = { { \"phone_otp\" } }", FlowPurpose.signIn),
    ("account = \"any\", steps = { { \"phone_otp\" } }", .signIn),
    ("purpose = \"register\", account = \"new\", steps = { { \"phone_otp\" } }", .register(setting: nil)),
    (
      "purpose = \"register\", provider = \"password\", account = \"new\", steps = { { \"password\" } }",
      .register(setting: "password")
    ),
    ("purpose = \"step_up\", account = \"existing\", steps = { { \"pin\" } }", .stepUp),
    (
      "purpose = \"verify\", identifier = \"email\", account = \"existing\", steps = { { \"email_code\" } }",
      .verify(.email)
    ),
    (
      "purpose = \"change\", identifier = \"phone\", account = \"existing\", steps = { { \"phone_otp\" } }",
      .change(.phone)
    ),
    (
      "purpose = \"join\", identifier = \"phone\", account = \"existing\", steps = { { \"phone_otp\" } }", .join(.phone)
    ),
    ("purpose = \"set\", provider = \"pin\", account = \"existing\", steps = { { \"pin\" } }", .factor("pin", .set)),
    (
      "purpose = \"change\", provider = \"pin\", account = \"existing\", steps = { { \"pin\" } }",
      .factor("pin", .change)
    ),
    (
      "purpose = \"disable\", provider = \"pin\", account = \"existing\", steps = { { \"pin\" } }",
      .factor("pin", .disable)
    ),
    (
      "purpose = \"unlock\", provider = \"pin\", account = \"existing\", steps = { { \"pin\" } }",
      .factor("pin", .unlock)
    ),
    (
      "purpose = \"reset\", provider = \"pin\", account = \"existing\", steps = { { \"email_code\" }, { \"pin\" } }",
      .factor("pin", .reset)
    ),
    // A password belongs to an address, so it is recovered without a session.
    (
      "purpose = \"reset\", provider = \"password\", account = \"existing\", steps = { { \"email_code\" }, { \"password\" } }",
      .factor("password", .recover)
    ),
  ])
  func everyPurposeIsRead(_ fields: String, _ purpose: FlowPurpose) throws {
    let generation = try Self.load(try Self.folder(fields))
    let flow = try #require(generation.flows["any_name"])
    #expect(flow.purpose == purpose)
    #expect(generation.flow(for: purpose)?.purpose == purpose)
    #expect(FlowPurpose(rawValue: purpose.rawValue) == purpose)
  }

  @Test(arguments: [
    (
      "purpose = \"rest\", account = \"existing\", steps = { { \"pin\" } }",
      "purpose: \"rest\" is not known; did you mean `reset`?"
    ),
    (
      "purpose = \"set\", account = \"existing\", steps = { { \"pin\" } }",
      "provider: is missing: purpose \"set\" requires a provider, as in provider = \"pin\""
    ),
    (
      "purpose = \"set\", provider = \"pim\", account = \"existing\", steps = { { \"pin\" } }",
      "provider: unknown provider \"pim\"; did you mean `pin`?"
    ),
    (
      "purpose = \"set\", provider = \"pin\", account = \"existing\", steps = { { \"phone_otp\" } }",
      "provider: no step of this flow offers `pin`: add { \"pin\" } to its steps"
    ),
    (
      "purpose = \"step_up\", provider = \"pin\", account = \"existing\", steps = { { \"pin\" } }",
      "provider: does not apply to the purpose \"step_up\": remove it"
    ),
    (
      "purpose = \"verify\", account = \"existing\", steps = { { \"email_code\" } }",
      "identifier: is missing: purpose \"verify\" requires a kind of identifier, as in identifier = \"phone\""
    ),
    (
      "purpose = \"verify\", identifier = \"email\", account = \"existing\", steps = { { \"phone_otp\" } }",
      "identifier: no step of this flow verifies an email address: add a step of `email_code` and `password`"
    ),
    (
      "purpose = \"change\", account = \"existing\", steps = { { \"pin\" } }",
      "purpose: \"change\" takes `provider = \"NAME\"` for a factor, or `identifier = \"phone\"` or \"email\" for an identifier: add one of them"
    ),
    (
      "purpose = \"join\", identifier = \"email\", account = \"existing\", steps = { { \"email_code\" } }",
      "identifier: \"join\" adds a number (identifier = \"phone\") or an identity at another site (identifier = \"federated\"): write one of them"
    ),
    (
      "purpose = \"change\", identifier = \"federated\", account = \"existing\", steps = { { \"phone_otp\" } }",
      "identifier: an identity at another site is added by purpose = \"join\" and removed on the account page: write \"phone\" or \"email\""
    ),
    (
      "purpose = \"join\", identifier = \"federated\", account = \"existing\", steps = { { \"phone_otp\" } }",
      "identifier: no step of this flow verifies an identity at another site"
    ),
    (
      "purpose = \"register\", account = \"existing\", steps = { { \"phone_otp\" } }",
      "account: a registration flow cannot be limited to existing accounts: write account = \"new\" or account = \"any\""
    ),
    (
      "purpose = \"set\", provider = \"pin\", account = \"new\", steps = { { \"pin\" } }",
      "account: this purpose requires an existing account: write account = \"existing\""
    ),
    (
      "provider = \"pin\", account = \"existing\", steps = { { \"pin\" } }",
      "provider: requires `purpose`: add, for instance, purpose = \"set\""
    ),
  ])
  func aWrongPurposeIsRefusedByLine(_ fields: String, _ problem: String) throws {
    #expect(Self.problems(try Self.folder(fields)) == ["flows/any_name.lua:2: \(problem)"])
  }

  // MARK: - Flows without a purpose

  /// Attack on ourselves: a flow whose name says that it sets a PIN signs people in, by a PIN that nobody checks.
  @Test(arguments: [
    ("pin_set", "{ \"pin\" }", "purpose = \"set\", provider = \"pin\""),
    ("totp_disable", "{ \"phone_otp\" }", "purpose = \"disable\", provider = \"totp\""),
    ("pin_reset", "{ \"email_code\" }, { \"pin\" }", "purpose = \"reset\", provider = \"pin\""),
    ("password_reset", "{ \"email_code\" }, { \"password\" }", "purpose = \"reset\", provider = \"password\""),
    ("register", "{ \"phone_otp\" }", "purpose = \"register\""),
    ("register_email", "{ \"password\" }", "purpose = \"register\", provider = \"password\""),
    ("verify_email", "{ \"email_code\" }", "purpose = \"verify\", identifier = \"email\""),
    ("change_phone", "{ \"phone_otp\" }", "purpose = \"change\", identifier = \"phone\""),
    ("join_phone", "{ \"phone_otp\" }", "purpose = \"join\", identifier = \"phone\""),
    ("google_oauth_join", "{ \"phone_otp\" }", "purpose = \"join\", identifier = \"federated\""),
    ("step_up", "{ \"pin\" }", "purpose = \"step_up\""),
  ])
  func aNameThatSaysOtherwiseIsRefusedWithWhatToWrite(_ name: String, _ steps: String, _ fields: String) throws {
    let account = name.hasPrefix("register") ? "new" : "existing"
    let rest = "account = \"\(account)\", steps = { \(steps) }"
    #expect(
      Self.problems(try Self.folder(rest, named: name)) == [
        "flows/\(name).lua:1: purpose: is missing, and a flow without it signs people in. "
          + "Write \(fields), or purpose = \"sign_in\" if it signs people in"
      ])
  }

  @Test func whatIsToBeWrittenIsAccepted() throws {
    for (name, fields, steps) in [
      ("pin_set", "purpose = \"set\", provider = \"pin\"", "{ \"pin\" }"),
      ("change_phone", "purpose = \"change\", identifier = \"phone\"", "{ \"phone_otp\" }"),
      ("step_up", "purpose = \"step_up\"", "{ \"pin\" }"),
    ] {
      let flow = "\(fields), account = \"existing\", steps = { \(steps) }"
      #expect(Self.problems(try Self.folder(flow, named: name)) == [], "\(name)")
    }
  }

  @Test func aFirstStepThatFindsNoAccountIsRefused() throws {
    #expect(
      Self.problems(try Self.folder("account = \"existing\", steps = { { \"pin\" } }")) == [
        "flows/any_name.lua:1: purpose: is missing, and a flow without it signs people in. The first step of this one finds no account (`pin`): "
          + "write purpose = \"step_up\" or another purpose that begins with a session"
      ])
  }

  @Test func declaredPurposeOverridesTheName() throws {
    let generation = try Self.load(
      try Self.folder("purpose = \"sign_in\", account = \"any\", steps = { { \"phone_otp\" } }", named: "pin_set"))
    #expect(generation.flows["pin_set"]?.purpose == .signIn)
    #expect(generation.flow(for: .factor("pin", .set)) == nil)
  }

  // MARK: - Flows that come with providers

  @Test func aConfiguredProviderBringsItsFlows() throws {
    let generation = try Self.load(try Self.folder("account = \"any\", steps = { { \"phone_otp\" } }"))
    #expect(
      Set(generation.flows.keys) == [
        "any_name", "login", "change_phone", "verify_email", "change_email", "pin_set", "pin_change", "pin_disable",
        "pin_reset", "pin_unlock",
      ])
    #expect(generation.flows["pin_set"]?.location.file == "Plugins/PIN/flows/pin_set.lua")
    let without = try Self.load(
      try Self.folder(
        "account = \"any\", steps = { { \"phone_otp\" } }",
        [
          "gateway.lua": Self.gateway("phone_otp = { sms = outbox() }"), "policies/pin.lua": nil,
          "policies/password.lua": nil,
          "policies/email_code.lua": nil,
        ]))
    #expect(Set(without.flows.keys) == ["any_name", "login", "change_phone"])
  }

  @Test func aFileOfTheSameNameReplacesTheFlowOrSwitchesItOff() throws {
    let other =
      "purpose = \"set\", provider = \"pin\", account = \"existing\", steps = { { \"phone_otp\" }, { \"pin\" } }"
    let replaced = try Self.load(try Self.folder(other, named: "pin_set"))
    #expect(
      replaced.flows["pin_set"]?.steps.count == 2 && replaced.flows["pin_set"]?.location.file == "flows/pin_set.lua")
    let off = try Self.load(try Self.folder("enabled = false", named: "pin_set"))
    #expect(off.flows["pin_set"] == nil && off.flows["pin_change"] != nil && off.warnings.isEmpty)
  }

  /// One file without `purpose` must not take away the flows that providers ship.
  @Test(arguments: ["any_name", "login", "set", "pin_sets", "step_ups"])
  func aFlowWithoutPurposeKeepsTheFlowsOfProviders(_ name: String) throws {
    let generation = try Self.load(
      try Self.folder("account = \"any\", steps = { { \"phone_otp\" } }", named: name))
    #expect(generation.flows[name]?.purpose == .signIn)
    for flow in ["change_phone", "verify_email", "change_email", "pin_set", "pin_change", "pin_disable", "pin_reset"] {
      #expect(generation.flows[flow] != nil, "\(flow)")
    }
    #expect(!generation.warnings.contains { $0.path == "purpose" }, "\(generation.warnings)")
  }

  /// Attack: a plugin that is installed for a second factor ships a flow that signs users in.
  @Test func aProviderBringsNoFlowThatLetsPeopleIn() throws {
    let problems = Self.problems(
      try Self.folder("account = \"any\", steps = { { \"phone_otp\" } }"),
      try Self.withFlow("way_in", "account = \"any\""))
    #expect(
      problems == [
        "Plugins/PIN/flows/way_in.lua:1: purpose: is shipped by `pin` and does not need a session: sign-in flows must be in the folder's flows/"
      ])
  }

  /// Attack: a plugin for one factor ships a flow that resets another one, so anyone who passes the plugin can replace
  /// it. (Here, the PIN would reset the password.)
  @Test(arguments: [
    "purpose = \"reset\", provider = \"totp\", account = \"existing\"", "purpose = \"step_up\", account = \"existing\"",
    "purpose = \"change\", identifier = \"phone\", account = \"existing\"",
  ])
  func providerCannotShipAFlowForAnotherProvider(_ fields: String) throws {
    let steps =
      fields.contains("totp")
      ? "{ \"pin\" }, { \"totp\" }" : fields.contains("phone") ? "{ \"phone_otp\" }" : "{ \"pin\" }"
    let folder = try Self.folder(
      "account = \"any\", steps = { { \"phone_otp\" } }",
      ["gateway.lua": Self.gateway(Self.providers + ", totp = {}"), "policies/totp.lua": "return policy \"totp\" {}"])
    #expect(
      Self.problems(folder, try Self.withFlow("other", fields, steps: steps)) == [
        "Plugins/PIN/flows/other.lua:1: purpose: is shipped by `pin` and manages a factor or identifier of another provider: such flows must be in the folder's flows/"
      ])
  }

  @Test func flowsOfTwoProvidersWithOneNameAreDistinguished() throws {
    let problems = Self.problems(
      try Self.folder("account = \"any\", steps = { { \"phone_otp\" } }"),
      try Self.withFlow("change_phone", "purpose = \"change\", identifier = \"phone\", account = \"existing\""))
    #expect(
      problems == [
        "Plugins/PIN/flows/change_phone.lua: is shipped by `pin` and by `phone_otp`: write flows/change_phone.lua to choose one"
      ])
  }

  /// The shipped providers, with an additional flow of the PIN.
  private static func withFlow(_ name: String, _ fields: String, steps: String = "{ \"phone_otp\" }") throws
    -> [ProviderDescriptor]
  {
    ShippedProviders.all.map(\.descriptor).map { descriptor in
      guard descriptor.name == "pin" else { return descriptor }
      let text = "return flow \"\(name)\" { \(fields), steps = { \(steps) } }"
      return ProviderDescriptor(
        name: descriptor.name, beginFields: descriptor.beginFields, submitFields: descriptor.submitFields,
        settings: descriptor.settings,
        policy: descriptor.policy,
        flows: descriptor.flows + [PolicySource(file: "Plugins/PIN/flows/\(name).lua", text: text)],
        identifierKinds: descriptor.identifierKinds, hashesSecrets: true, outcomes: descriptor.outcomes)
    }
  }

  // MARK: - A provider that is taken out

  @Test func flowsThatNothingCouldPassAreLeftOutWithAWarning() throws {
    let generation = try Self.load(
      try Self.folder(
        "purpose = \"set\", provider = \"totp\", account = \"existing\", steps = { { \"totp\" } }", named: "setting",
        [
          "flows/entering.lua":
            "return flow \"entering\" { purpose = \"sign_in\", provider = \"google_oauth\", account = \"any\", steps = { { \"google_oauth\" } } }"
        ]))
    #expect(generation.flows["setting"] == nil && generation.flows["entering"] == nil)
    let told = generation.warnings.map(\.description)
    #expect(
      told.contains(
        "flows/setting.lua:1: provider: is `totp`, which gateway.lua does not configure: the flow is left out"),
      "\(told)")
    #expect(
      told.contains(
        "flows/entering.lua:1: provider: is `google_oauth`, which gateway.lua does not configure: the flow is left out"),
      "\(told)")
  }

  /// Without mailed codes, a reset of a password is left out, and a skippable step is skipped.
  @Test func aFlowOfAnAccountIsLeftOutWithoutTheProviderOfAStep() throws {
    let gateway = TestFolder.gateway.replacing("email_code = { mail = outbox() }", with: "password = {}")
    let reset =
      "return flow \"forgotten\" { purpose = \"reset\", provider = \"password\", account = \"existing\", steps = { { \"email_code\" }, { \"password\" } } }"
    let register = """
      return flow "by_email" {
        purpose = "register", provider = "password", account = "new",
        steps = { { "password" }, { "email_code", skippable = true } },
      }
      """
    let generation = try Self.load(
      try TestFolder([
        "gateway.lua": gateway, "flows/forgotten.lua": reset, "flows/by_email.lua": register,
        "policies/password.lua": "return policy \"password\" {}",
      ]))
    #expect(generation.flows["forgotten"] == nil)
    #expect(generation.flows["by_email"]?.steps.map(\.choices) == [[ProviderName(test: "password")]])
    let told = generation.warnings.map(\.description)
    #expect(
      told.contains {
        $0.hasPrefix(
          "flows/forgotten.lua:1: is left out: a step needs `email_code`, which gateway.lua does not configure")
      }, "\(told)"
    )
    #expect(
      told.contains(
        "flows/by_email.lua:3: steps[2]: is left out and skipped: gateway.lua does not configure `email_code`"),
      "\(told)")
  }

  /// Attack: only skippable steps of a flow are left, and it opens accounts without any proof.
  @Test func flowWithOnlySkippedStepsIsRefused() throws {
    let flow = "return flow \"login\" { account = \"existing\", steps = { { \"pin\", skippable = true } } }"
    #expect(
      try TestFolder(["flows/login.lua": flow]).problems() == [
        "flows/login.lua:1: steps: no provider of any step is configured: name one under `providers` in gateway.lua, or remove the flow"
      ])
  }
}
