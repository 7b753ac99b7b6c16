import MoongateCore
import MoongateSDK
import Testing

@testable import MoongatePolicy

/// The table of entry points: for each flow that opens a session, the minimum set of factors.
@Suite struct EntryPointTableTests {
  private static func entryPoints(_ files: [String: String?]) throws -> [String] {
    let table = EntryPointTable(
      try GuaranteeFolder(files).generation(), providers: try ProviderRegistry(ShippedProviders.all))
    return table.entryPoints.map { "\($0.flow) \($0.account.rawValue) \($0.factors.joined(separator: "+"))" }
  }

  private typealias Make = GuaranteeRefusalTests

  @Test func extraFactorInOneFlowLeavesTheOthersAsTheyWere() throws {
    let files: [String: String?] = [
      "flows/login.lua": Make.flow(
        "login", "existing", "{ \"phone_otp\" }", "{ \"totp\", when = function(f) return f.account.factors.totp end }"),
      "flows/enter.lua": Make.flow("enter", "any", "any_of { \"phone_otp\", \"google_oauth\" }"),
      "flows/step_up.lua": Make.flow("step_up", "existing", "{ \"totp\" }"),
    ]
    #expect(
      try Self.entryPoints(files) == [
        "enter everything phone_otp", "enter registered phone_otp", "login everything phone_otp+totp",
        "login registered phone_otp",
      ])
  }

  @Test func accountRequirementAppliesToEveryEntryPoint() throws {
    let files: [String: String?] = [
      "accounts.lua":
        "return accounts { sign_in = { { \"totp\", when = function(f) return f.account.factors.totp end } } }",
      "flows/enter.lua": Make.flow("enter", "any", "any_of { \"phone_otp\", \"google_oauth\" }"),
      "flows/login_password.lua": Make.flow("login_password", "existing", "{ \"password\" }"),
      "flows/register_email.lua": Make.flow(
        "register_email", "new", "{ \"password\" }", "{ \"email_code\", skippable = true }"),
      "flows/password_reset.lua": Make.flow("password_reset", "existing", "{ \"email_code\" }", "{ \"password\" }"),
    ]
    let found = try Self.entryPoints(files)
    #expect(
      found == [
        "enter everything google_oauth+totp", "enter registered phone_otp", "login everything phone_otp+totp",
        "login registered phone_otp",
        "login_password everything password+totp", "login_password registered password",
        "password_reset everything email_code+totp",
        "password_reset registered email_code", "register_email registered password",
      ], "\(found)")
  }

  @Test func googleOpensAccountsWhereTheyAreRegistered() throws {
    let files: [String: String?] = [
      "flows/login.lua": nil,
      "flows/register.lua": Make.flow("register", "new", "any_of { \"phone_otp\", \"google_oauth\" }"),
      "routes.lua": nil,
    ]
    #expect(try Self.entryPoints(files) == ["register everything google_oauth", "register registered phone_otp"])
  }

  /// `registers` makes a flow for existing accounts an entry point for new ones.
  @Test func tableNamesTheFlowsThatRegister() throws {
    func table(_ registers: String) throws -> EntryPointTable {
      let flow = Make.flow("login", "existing", "any_of { \"phone_otp\", \"google_oauth\" }")
      return EntryPointTable(
        try GuaranteeFolder([
          "flows/login.lua": flow.replacing("account =", with: registers + " account ="),
          "flows/enter.lua": Make.flow(
            "enter", "any", "any_of { \"phone_otp\", \"google_oauth\" }", "{ \"email_code\" }"),
        ]).generation(), providers: try ProviderRegistry(ShippedProviders.all))
    }
    let enter = RegistrationPoint(
      flow: "enter", providers: [["google_oauth", "email_code"], ["phone_otp", "email_code"]])
    #expect(try table("").registrations == [enter])
    let registering = try table("registers = { \"google_oauth\" },")
    #expect(
      registering.registrations == [enter, RegistrationPoint(flow: "login", providers: [["google_oauth"]])])
    #expect(
      registering.text(colour: false).hasSuffix(
        """

        registration  creates accounts by
        enter         google_oauth + email_code, or phone_otp + email_code
        login         google_oauth
        """))
  }

  /// A flow creates the same accounts with an invitation as in open registration, and the table says who needs one.
  @Test(arguments: [
    ("\"open\"", "creates accounts by"), ("\"invited\"", "creates accounts with an invitation by"),
    (
      "{ \"invited\", domains = { \"example.com\", \"a.example\" } }",
      "creates accounts with an invitation, or a verified address of a.example, example.com, by"
    ),
  ]) func tableSaysWhoNeedsAnInvitation(_ registration: String, _ heading: String) throws {
    let table = EntryPointTable(
      try GuaranteeFolder([
        "accounts.lua": "return accounts { registration = \(registration) }",
        "flows/login.lua": Make.flow("login", "existing", "{ \"phone_otp\" }"),
        "flows/enter.lua": Make.flow("enter", "any", "any_of { \"phone_otp\", \"google_oauth\" }"),
        "flows/register.lua": Make.flow("register", "new", "{ \"phone_otp\" }"),
      ]).generation(), providers: try ProviderRegistry(ShippedProviders.all))
    #expect(table.registrations.map(\.flow) == ["enter", "register"])
    #expect(table.text(colour: false).contains("registration  \(heading)\n"), "\(table.text(colour: false))")
  }

  /// With closed registration, no flow creates accounts, and a flow for new accounts opens none.
  @Test func closedRegistrationLeavesNoFlowThatRegisters() throws {
    let table = EntryPointTable(
      try GuaranteeFolder([
        "accounts.lua": "return accounts { registration = \"closed\" }",
        "flows/login.lua": Make.flow("login", "existing", "any_of { \"phone_otp\", \"google_oauth\" }").replacing(
          "account =", with: "registers = { \"google_oauth\" }, account ="),
        "flows/enter.lua": Make.flow("enter", "any", "any_of { \"phone_otp\", \"google_oauth\" }"),
        "flows/register.lua": Make.flow("register", "new", "any_of { \"phone_otp\", \"google_oauth\" }"),
      ]).generation(), providers: try ProviderRegistry(ShippedProviders.all))
    #expect(table.registrations.isEmpty)
    // Accounts that were registered before still exist.
    let opened = table.entryPoints.map { "\($0.flow) \($0.account.rawValue) \($0.factors.count)" }
    #expect(opened == ["enter everything 1", "enter registered 1", "login everything 1", "login registered 1"])
  }

  @Test func tableNamesEverySetThatIsAsSmall() throws {
    let table = EntryPointTable(
      try GuaranteeFolder([
        "flows/login.lua": Make.flow(
          "login", "existing", "any_of { \"phone_otp\", \"email_code\" }", "any_of { \"pin\", \"totp\" }")
      ])
      .generation(), providers: try ProviderRegistry(ShippedProviders.all))
    #expect(
      table.text(colour: false) == """
        entry point  account     the weakest sign-in that opens it
        login        everything  email_code + pin, or email_code + totp, or phone_otp + pin, or phone_otp + totp
        """)
  }
}
