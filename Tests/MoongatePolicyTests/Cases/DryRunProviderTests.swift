import MoongateCore
import MoongateSDK
import Testing

@testable import MoongatePolicy

/// A code provider that receives webhooks and publishes a document.
private struct Receipts: CodeProvider, WebhookReceiver, WellKnownPublisher, RehearsableProvider {
  let descriptor = ProviderDescriptor(
    name: "receipts", beginFields: [InputField(name: "phone", kind: .phone)],
    submitFields: [InputField(name: "code", kind: .digits)], settings: [],
    policy: PolicySource(file: "receipts.lua", text: ""), identifierKinds: [.phone], receivesWebhooks: true,
    wellKnown: ["receipts"])

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier {
    Identifier(kind: .phone, value: try input.text("phone"), display: try input.text("phone"))
  }

  func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault) {}
  func receive(_ webhook: WebhookRequest, with tools: StepTools) async throws -> WebhookAnswer { .accepted() }
  func document(_ name: String, of site: PublicSite) throws -> String? { "{}" }
  func rehearsal(sending messenger: any Messenger) -> any Provider { self }
}

/// The replacements of providers in a dry run.
@Suite struct DryRunProviderTests {
  /// A dry run does not refuse a code provider that receives webhooks or publishes documents.
  @Test func aCodeProviderKeepsWhatItDeclares() throws {
    let registry = try ProviderRegistry([Receipts()]).dryRun(sending: Mailbox())
    #expect(registry["receipts"] is any WebhookReceiver && registry["receipts"] is any WellKnownPublisher)
    #expect(registry.descriptor("receipts")?.receivesWebhooks == true)
  }
}
