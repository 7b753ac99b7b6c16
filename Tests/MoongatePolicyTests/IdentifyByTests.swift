import MoongateSDK
import MoongateTesting
import Password
import Testing

@testable import MoongateCore
@testable import MoongatePolicy

/// `identify_by`: the kinds of identifier that an operator chooses for a provider.
@Suite struct IdentifyByTests {
  private func load(_ password: String, policy: String? = nil) throws -> any PolicyGeneration {
    let folder = try TestFolder([
      "gateway.lua": """
      return gateway {
        public_url = "http://localhost:8080",
        providers = { phone_otp = { sms = outbox() }, email_code = { mail = outbox() },
          password = { \(password) } },
      }
      """,
      "policies/password.lua": policy,
      "flows/login_password.lua": """
      return flow "login_password" { purpose = "sign_in", provider = "password", account = "existing", steps = { { "password" } } }
      """,
    ])
    switch ConfigurationLoader(providers: ShippedProviders.all, environment: [:]).load(folder: folder.scratch.path) {
    case .success(let generation): return generation
    case .failure(let refused): throw TestFolder.Refused(problems: refused.problems.map(\.description))
    }
  }

  private func descriptor(_ password: String) throws -> ProviderDescriptor {
    let generation = try load(password)
    let registry = try generation.registry ?? ProviderRegistry(ShippedProviders.all)
    return try #require(registry.descriptor("password"))
  }

  @Test func defaultIsTheAddress() throws {
    let password = try descriptor("")
    #expect(password.identifierKinds == [.email])
    #expect(password.beginFields.map(\.name) == ["email", "first_name", "last_name"])
  }

  @Test(arguments: [
    ("{ \"name\", \"email\" }", [IdentifierKind.email, .name], ["name", "email", "first_name", "last_name"]),
    ("{ \"name\" }", [.name], ["name", "first_name", "last_name"]),
    ("{ \"email\" }", [.email], ["email", "first_name", "last_name"]),
  ]) func chosenKindsDecideTheFields(_ written: String, _ kinds: [IdentifierKind], _ fields: [String]) throws {
    let password = try descriptor("identify_by = \(written)")
    #expect(password.identifierKinds == kinds && password.beginFields.map(\.name) == fields)
    #expect(password.mistakes == [])
    #expect(password.facts.isEmpty == !kinds.contains(.email))
    guard case .field(let kind, _)? = password.entrance else {
      Issue.record("no entrance")
      return
    }
    #expect(kinds.contains(kind))
  }

  /// A passkey has a name too, which no browser fills in with that of the user.
  @Test func fieldCalledNameIsAUserNameWhereTheProviderReadsNames() throws {
    let passkey = try #require(ShippedProviders.all.first { $0.descriptor.name.rawValue == "passkey" }).descriptor
    #expect(passkey.submitFields.contains(.userName) && passkey.identifierKind(of: .userName) == nil)
    #expect(try descriptor("identify_by = { \"name\" }").identifierKind(of: .userName) == .name)
  }

  /// The provider reads every kind, so a field of another kind must not reach it.
  @Test func fieldOfAKindThatWasNotChosenIsDropped() throws {
    let generation = try load("identify_by = { \"email\" }")
    let provider = try #require(generation.registry?["password"] as? any FullProvider)
    let input = ProviderInput(fields: ["name": .text("asha"), "email": .text("a@b.example")], defaultRegion: "IN")
    #expect(try provider.readIdentifier(input.declared(by: provider.descriptor))?.value == "a@b.example")
  }

  @Test(arguments: [
    ("identify_by = {}", "is empty"), ("identify_by = \"name\"", "must be a list of texts"),
    ("identify_by = { \"phone\" }", "cannot identify users by \"phone\""),
    ("identify_by = { \"names\" }", "cannot identify users by \"names\""),
  ]) func otherValuesAreRefused(_ written: String, _ message: String) {
    let refused = #expect(throws: TestFolder.Refused.self) { try load(written) }
    #expect(
      refused?.problems.count == 1 && refused?.problems[0].contains(message) ?? false, "\(refused?.problems ?? [])")
  }

  @Test func providersWithoutAChoiceDoNotHaveTheSetting() throws {
    let folder = try TestFolder([
      "gateway.lua": """
      return gateway { public_url = "http://localhost:8080", providers = { phone_otp = { sms = outbox(), identify_by = { "name" } } } }
      """,
      "policies/email_code.lua": nil,
    ])
    guard
      case .failure(let refused) = ConfigurationLoader(providers: ShippedProviders.all, environment: [:])
        .load(folder: folder.scratch.path)
    else {
      Issue.record("loaded")
      return
    }
    #expect(refused.problems.contains { $0.description.contains("unknown field") })
  }

  /// Attack: a limit by address bounds the guesses at a password, and a user name is tried without a bound.
  @Test func guessesByNameAreNotBoundByALimitByAddress() throws {
    let policy = """
      return policy "password" { limits = { verify = { on = "verify", per = "email", max = 5, window = "24h" } } }
      """
    for (written, isBound) in [("", true), ("identify_by = { \"name\", \"email\" }", false)] {
      let generation = try load(written, policy: policy)
      let budgets = GuessBudget.all(of: generation, providers: try ProviderRegistry(ShippedProviders.all))
      let password = try #require(budgets.first { $0.provider == "password" })
      #expect((password.per30Days != nil) == isBound, "\(written)")
    }
    let shipped = GuessBudget.all(
      of: try load("identify_by = { \"name\" }"), providers: try ProviderRegistry(ShippedProviders.all))
    #expect(shipped.first { $0.provider == "password" }?.per30Days != nil, "the limit per account counts")
  }

  /// Attack: after the guesses that a limit allows by a name, as many follow by the address of the same account.
  @Test(arguments: ["account", "identifier"]) func guessesByNameAndByAddressAddUp(key: String) throws {
    let policy = """
      return policy "password" { limits = { verify = { on = "verify", per = "\(key)", max = 5, window = "24h" } } }
      """
    let guesses = { (written: String) throws -> Int? in
      let generation = try load(written, policy: policy)
      return GuessBudget.all(of: generation, providers: try ProviderRegistry(ShippedProviders.all))
        .first { $0.provider == "password" }?.perDay
    }
    #expect(try guesses("") == 5)
    #expect(try guesses("identify_by = { \"name\" }") == 5)
    #expect(try guesses("identify_by = { \"name\", \"email\" }") == 10)
  }
}
