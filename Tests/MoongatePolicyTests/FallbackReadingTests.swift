import MoongateCore
import MoongateSDK
import MoongateTesting
import Testing

@testable import MoongatePolicy

/// `fallback { … }` in flows/NAME.lua.
@Suite struct FallbackReadingTests {
  /// A messenger with the same code format and `unknown_account` as the SMS provider.
  static func messenger(
    _ name: ProviderName, _ code: String = "length = 6", kinds: [IdentifierKind] = [.phone], more: String = ""
  )
    -> ProviderDescriptor
  {
    ProviderDescriptor(
      name: name, beginFields: [InputField(name: "phone", kind: .phone)],
      submitFields: [InputField(name: "code", kind: .digits)], settings: [],
      policy: PolicySource(
        file: "\(name)/policy.lua",
        text: """
          return policy "\(name)" {
            code = { \(code) },
            limits = {
              send = { on = "send", per = "identifier", max = 4, window = "15m" },
              verify = { on = "verify", per = "identifier", max = 5, window = "24h", lock = "15m" },
            },
            message = "{code} is your code",\(more)
          }
          """), identifierKinds: kinds)
  }

  private static let providers =
    TestFolder.providers + [
      messenger(ProviderName(test: "whatsapp_code")), messenger(ProviderName(test: "long_code"), "length = 8"),
      messenger(ProviderName(test: "open_code"), more: "\n  unknown_account = \"reveal\","),
    ]

  private static let gateway = """
    return gateway {
      public_url = "http://localhost:8080",
      region = "IN",
      providers = {
        phone_otp = { sms = outbox() }, email_code = { mail = outbox() }, whatsapp_code = {}, long_code = {}, open_code = {}, pin = {},
      },
    }
    """

  private static func load(_ steps: String, accounts: String? = nil) throws -> Result<
    any PolicyGeneration, RefusedConfiguration
  > {
    let conceal = "return policy \"phone_otp\" { unknown_account = \"conceal\" }"
    return try TestFolder([
      "gateway.lua": gateway, "policies/phone_otp.lua": conceal, "accounts.lua": accounts,
      "flows/login.lua": "return flow \"login\" {\n  account = \"existing\",\n  steps = {\n    \(steps),\n  },\n}",
    ]).load(providers)
  }

  private static func problems(_ steps: String, accounts: String? = nil) throws -> [String] {
    if case .failure(let refused) = try load(steps, accounts: accounts) {
      refused.problems.map(\.description)
    } else {
      []
    }
  }

  @Test(arguments: [
    "{ fallback { \"whatsapp_code\", \"phone_otp\" } }", "fallback { \"whatsapp_code\", \"phone_otp\" }",
  ])
  func providersAreReadInOrder(_ step: String) throws {
    let flow = try #require(try Self.load(step).get().flows["login"])
    #expect(
      flow.steps == [
        StepRule(
          choices: [ProviderName(test: "whatsapp_code"), ProviderName(test: "phone_otp")], isSkippable: false,
          when: nil, isFallback: true)
      ])
  }

  @Test func conditionAndSkipStandBesideIt() throws {
    let step =
      "{ \"email_code\" }, { fallback { \"whatsapp_code\", \"phone_otp\" }, skippable = true, when = function(f) return true end }"
    let rule = try #require(try Self.load(step).get().flows["login"]?.steps.last)
    #expect(rule.isFallback && rule.isSkippable && rule.when == FunctionName("flows/login.steps[2].when"))
  }

  @Test func unconfiguredProvidersAreOmitted() throws {
    let flow = try #require(try Self.load("{ fallback { \"totp\", \"phone_otp\" } }").get().flows["login"])
    #expect(flow.steps == [StepRule(choices: [ProviderName(test: "phone_otp")], isSkippable: false, when: nil)])
  }

  @Test(arguments: [
    (
      "{ fallback { \"whatsap_code\", \"phone_otp\" } }",
      "unknown provider \"whatsap_code\"; did you mean `whatsapp_code`?"
    ),
    (
      "{ fallback { \"pin\", \"phone_otp\" } }",
      "`pin` sends no codes: fallback takes only code providers"
    ),
    (
      "{ fallback { \"phone_otp\", \"email_code\" } }",
      "`phone_otp` sends to phone numbers and `email_code` to email addresses: all providers of a fallback must reach the same user at the same identifier. "
        + "Use any_of { … } for a choice"
    ),
    ("{ fallback { \"phone_otp\" } }", "fallback lists only one provider: add another, or write { \"phone_otp\" }"),
    ("{ fallback { \"phone_otp\", \"phone_otp\" } }", "fallback names `phone_otp` twice: remove one of them"),
    (
      "{ fallback { any_of { \"phone_otp\", \"pin\" }, \"whatsapp_code\" } }",
      "fallback takes provider names in quotes, without nesting, as in fallback { \"whatsapp_code\", \"phone_otp\" }"
    ),
    (
      "{ fallback { fallback { \"phone_otp\", \"long_code\" }, \"whatsapp_code\" } }",
      "fallback takes provider names in quotes, without nesting, as in fallback { \"whatsapp_code\", \"phone_otp\" }"
    ),
    (
      "any_of { fallback { \"phone_otp\", \"whatsapp_code\" }, \"pin\" }",
      "a fallback must be the only entry of a flow's step, as in { fallback { \"a\", \"b\" } }"
    ),
    (
      "{ \"email_code\", fallback { \"phone_otp\", \"whatsapp_code\" } }",
      "a fallback must be the only entry of a flow's step, as in { fallback { \"a\", \"b\" } }"
    ),
    ("{ fallback {} }", "fallback takes a list of providers, as in fallback { \"whatsapp_code\", \"phone_otp\" }"),
    (
      "{ fallback { \"phone_otp\", \"long_code\" } }",
      "codes of `phone_otp` are 6 digits and codes of `long_code` are 8 digits, and users enter both into the same input: "
        + "give both policies the same code.length and code.alphabet"
    ),
    // Attack: one of the two reveals whether an account exists, although the other conceals it.
    (
      "{ fallback { \"phone_otp\", \"open_code\" } }",
      "`phone_otp` has unknown_account = \"conceal\" and `open_code` \"reveal\": give both policies the same value, or the fallback reveals whether an account exists"
    ),
  ]) func wrongUseIsRefused(_ step: String, _ message: String) throws {
    #expect(try Self.problems(step) == ["flows/login.lua:4: steps[1]: \(message)"])
  }

  @Test func accountsRequireNoFallback() throws {
    let accounts = "return accounts { sign_in = { { fallback { \"whatsapp_code\", \"phone_otp\" } } } }"
    #expect(
      try Self.problems("{ \"phone_otp\" }", accounts: accounts) == [
        "accounts.lua:1: sign_in[1]: a fallback must be the only entry of a flow's step, as in { fallback { \"a\", \"b\" } }"
      ])
  }

  /// Attack: an operator relies on the first provider, and an attacker makes the second one send. Both open the
  /// account.
  @Test func eitherProviderOpensTheAccount() throws {
    let generation = try Self.load("{ fallback { \"whatsapp_code\", \"phone_otp\" } }").get()
    #expect(
      generation.singleFactorProviders == [ProviderName(test: "whatsapp_code"), ProviderName(test: "phone_otp")])
  }
}
