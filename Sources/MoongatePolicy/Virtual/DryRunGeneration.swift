import MoongateCore
import MoongateSDK

/// A generation whose own providers reach nobody: what is tried out sends no message.
struct DryRunGeneration: PolicyGeneration {
  let base: any PolicyGeneration
  let registry: ProviderRegistry?

  var id: String { base.id }
  var changeMark: String { base.changeMark }
  var gateway: GatewaySettings { base.gateway }
  var routes: RouteTable { base.routes }
  var flows: [String: FlowDefinition] { base.flows }
  var policies: [ProviderName: ProviderPolicy] { base.policies }
  var tokenPolicy: ProviderPolicy { base.tokenPolicy }
  var accounts: AccountRules { base.accounts }
  var pages: [PageFile] { base.pages }
  var pads: Set<ProviderName> { base.pads }
  var warnings: [ConfigurationProblem] { base.warnings }
  var lease: GenerationLease { base.lease }

  func makeEvaluator() throws(PolicyFault) -> any PolicyEvaluator { try base.makeEvaluator() }
}

extension ProviderRegistry {
  /// The same providers, but for those that reach people by a way of their own: what they would send goes to the
  /// mailbox.
  func rehearsed(sending mailbox: Mailbox) throws -> ProviderRegistry {
    try ProviderRegistry(
      all.map { provider in
        let played = (provider as? any RehearsableProvider)?.rehearsal(sending: mailbox) ?? provider
        return (played as? any CodeProvider).map { $0.reaching(mailbox) } ?? played
      })
  }
}

extension CodeProvider {
  /// The same provider, whose messages arrive as the mailbox says.
  fileprivate func reaching(_ mailbox: Mailbox) -> any Provider { VirtualCodes(base: self, mailbox: mailbox) }
}

/// A code provider whose messages a case may keep from arriving. It conforms to each protocol of the SDK that the
/// provider conforms to, or else what its descriptor declares would be refused.
private struct VirtualCodes<Base: CodeProvider>: CodeProvider {
  let base: Base
  let mailbox: Mailbox

  var descriptor: ProviderDescriptor { base.descriptor }

  func readIdentifier(_ input: ProviderInput) throws(InputProblem) -> Identifier { try base.readIdentifier(input) }

  func deliver(_ code: CodeMessage, to identifier: Identifier, with tools: StepTools) async throws(DeliveryFault) {
    if mailbox.isReachable(by: descriptor.name) {
      try await base.deliver(code, to: identifier, with: tools)
      return mailbox.note(code.code, by: descriptor.name)
    }
    guard let reason = descriptor.deliveryReasons.first else {
      throw DeliveryFault(reason: "undeliverable in this case")
    }
    throw DeliveryFault(reason.reason, "undeliverable in this case")
  }
}

// Nobody's servers call where a configuration is only tried out.
extension VirtualCodes: WebhookReceiver where Base: WebhookReceiver {
  func receive(_ webhook: WebhookRequest, with tools: StepTools) async throws -> WebhookAnswer {
    .refused(.unauthenticated)
  }
}

extension VirtualCodes: WellKnownPublisher where Base: WellKnownPublisher {
  func document(_ name: String, of site: PublicSite) throws -> String? { try base.document(name, of: site) }
}
