import MoongateCore
import MoongateSDK

/// A generation whose providers send nothing to the outside.
struct DryRunGeneration: WrappingGeneration {
  let base: any PolicyGeneration
  let registry: ProviderRegistry?
}

extension ProviderRegistry {
  /// The same providers, except that those with their own transport deliver to the mailbox.
  func dryRun(sending mailbox: Mailbox) -> ProviderRegistry {
    ProviderRegistry(of: self) { provider in
      let played = (provider as? any RehearsableProvider)?.rehearsal(sending: mailbox) ?? provider
      return (played as? any CodeProvider).map { $0.reaching(mailbox) } ?? played
    }
  }
}

extension CodeProvider {
  /// The same provider, with deliveries that the mailbox can suppress.
  fileprivate func reaching(_ mailbox: Mailbox) -> any Provider { VirtualCodes(base: self, mailbox: mailbox) }
}

/// A code provider whose deliveries a test case can suppress.
///
/// It conforms to each SDK protocol that the base provider may conform to. Otherwise, the registry would refuse the
/// capabilities that the descriptor declares.
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

// A dry run receives no webhooks.
extension VirtualCodes: WebhookReceiver where Base: WebhookReceiver {
  func receive(_ webhook: WebhookRequest, with tools: StepTools) async throws -> WebhookAnswer {
    .refused(.unauthenticated)
  }
}

extension VirtualCodes: WellKnownPublisher where Base: WellKnownPublisher {
  func document(_ name: String, of site: PublicSite) throws -> String? { try base.document(name, of: site) }
}
