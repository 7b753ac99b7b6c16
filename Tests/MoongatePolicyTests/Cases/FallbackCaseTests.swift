import MoongateCore
import MoongateSDK
import MoongateStore
import MoongateTesting
import PhoneOTP
import Testing

@testable import MoongatePolicy

/// A code provider that declares reasons for undeliverable messages.
private struct Messenger: CodeProvider {
  let descriptor = ProviderDescriptor(
    name: ProviderName(test: "whatsapp_code"), beginFields: PhoneOTP().descriptor.beginFields,
    submitFields: PhoneOTP().descriptor.submitFields,
    settings: [SettingField(name: "chat", kind: .messages(.sms), isRequired: true, help: "how messages leave")],
    policy: FallbackReadingTests.messenger(
      ProviderName(test: "whatsapp_code"), more: "\n  unknown_account = \"reveal\","
    ).policy,
    identifierKinds: [.phone],
    deliveryReasons: [DeliveryReason("not_on_whatsapp", "This number is not on WhatsApp.", isPermanent: true)])

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier {
    try PhoneOTP().readIdentifier(input)
  }

  func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault) {
    try await tools.send(Message(channel: .sms, to: identifier.value, text: code.text, code: code.code))
  }
}

/// Cases and simulations handle a fallback like the engine.
@Suite struct FallbackCaseTests {
  private static let files: [String: String?] = [
    "gateway.lua": TestFolder.gateway.replacing(
      "email_code = {", with: "whatsapp_code = { chat = outbox() }, email_code = {"),
    "flows/login.lua":
      "return flow \"login\" { account = \"existing\", steps = { { fallback { \"whatsapp_code\", \"phone_otp\" } } } }",
    "policies/whatsapp_code.lua": "return policy \"whatsapp_code\" {}",
  ]

  private func load(_ files: [String: String?] = [:]) throws -> LoadedConfiguration {
    let folder = try TestFolder(Self.files.merging(files) { $1 })
    let providers = (TestFolder.providers + [Messenger().descriptor]).map(DescribedProvider.init)
    switch ConfigurationLoader(providers: providers, environment: [:]).read(folder: folder.scratch.path) {
    case .success(let loaded): return loaded
    case .failure(let refused): throw TestFolder.Refused(problems: refused.problems.map(\.description))
    }
  }

  private var registry: ProviderRegistry { get throws { try ProviderRegistry([PhoneOTP(), Messenger()]) } }

  @Test func casesPlayBothProviders() async throws {
    let cases = """
      return tests {
        case "the messenger first" {
          flow "login", phone "+919999999999", account { exists = true }, send(), expect { step = "whatsapp_code", messages = 1 },
          right(), expect { status = "complete" },
        },
        case "a message where the messenger cannot" {
          undeliverable "whatsapp_code",
          flow "login", phone "+919999999999", account { exists = true }, send(), expect { step = "phone_otp", messages = 1 },
          right(), expect { status = "complete" },
        },
        case "a message by hand, and one budget" {
          flow "login", phone "+919999999999", account { exists = true }, send(), wrong(), wrong(), expect { attempts_left = 3 },
          provider "phone_otp", send(), expect { step = "phone_otp", attempts_left = 3, messages = 2 },
          right(), expect { status = "complete" },
        },
        case "none of them" {
          undeliverable "whatsapp_code", undeliverable "phone_otp",
          flow "login", phone "+919999999999", account { exists = true }, send(), expect { status = 503, code = "delivery_failed" },
        },
      }
      """
    let loaded = try load(["tests/a.lua": cases])
    let runner = CaseRunner(loaded.generation, providers: try registry, makeStore: { try SQLiteStore.memory() })
    let report = try await runner.run(loaded.cases, timeLimit: nil, watchesBranches: false)
    let (text, holds) = (report.text(colour: false), report.holds)
    #expect(holds, "\(text)")
  }

  /// Attack: an attacker of the second provider in a fallback makes it send, and has only the remaining attempts of the
  /// shared budget.
  @Test func simulatedAttackOnTheSecondProviderStaysInItsBudget() async throws {
    let generation = try load().generation
    let target = try Target(generation, ProviderName(test: "phone_otp"), of: try registry, wantsNew: false)
    #expect(target.senders(in: "login") == [ProviderName(test: "whatsapp_code"), ProviderName(test: "phone_otp")])
    let gateway = try VirtualGateway(generation, providers: try registry, store: try SQLiteStore.memory())
    _ = try await gateway.makeAccount(holding: [try target.identifier(0)])
    let client = gateway.client()
    let flow = try await gateway.create("login", by: client).get()
    let begun = try await gateway.begin(
      flow.id, providers: target.senders(in: "login"), fields: target.fields(0), by: client
    ).get()
    #expect(begun.step?.provider == ProviderName(test: "phone_otp") && begun.step?.attemptsLeft == 5)
  }
}
