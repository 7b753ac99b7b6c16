import Logging
import MoongateSDK

// Requests of vendors' servers to a provider. They know no flow, no account and no session: all that comes of one is
// what its provider keeps for itself.

extension FlowEngine {
  /// The longest text that a vendor is answered, in bytes.
  private static let longestWebhookText = 4_096

  /// Whether the provider is configured and takes webhooks.
  package func receivesWebhooks(_ name: ProviderName, in generation: any PolicyGeneration) -> Bool {
    let registry = generation.registry ?? providers
    return generation.policies[name] != nil && registry.descriptor(name)?.receivesWebhooks ?? false
      && registry[name] is any WebhookReceiver
  }

  /// Hands a request to its provider. A fault of the provider is 503, so that the vendor tries again.
  ///
  /// Attack: whoever likes can send a request here. The provider verifies it; until then it can do no more than any
  /// other client can.
  package func receive(_ webhook: WebhookRequest, for name: ProviderName, client: ClientContext) async -> Result<
    WebhookAnswer, Refusal
  > {
    await answer(client, flow: nil) { request throws(FlowError) in
      request.notes.note("act", "webhook")
      guard receivesWebhooks(name, in: request.generation),
        let receiver = registry(request)[name] as? any WebhookReceiver
      else {
        throw request.refusal(.notFound)
      }
      // What a vendor tells of people is none of a log's business.
      let sent = ProviderInput(
        fields: ["body": .text(String(decoding: webhook.body, as: UTF8.self))], defaultRegion: "")
      let redaction = redaction(of: name, sent, [], request)
      let tools = tools(for: receiver, redaction, request)
      let start = ContinuousClock.now
      do {
        let answer = try await receiver.receive(webhook, with: tools)
        if case .accepted(let text?) = answer, text.utf8.count > Self.longestWebhookText {
          throw WebhookFault(reason: "it answers a vendor with more than \(Self.longestWebhookText) bytes")
        }
        providerMetrics.record(.hook, of: name, ProviderMetrics.Outcome(answer), since: start)
        return answer
      } catch {
        providerMetrics.record(.hook, of: name, .fault, since: start)
        logger.error(
          "a provider failed",
          metadata: [
            "decision": "\(request.client.decision)", "provider": "\(name)", "fault": "\(redaction("\(error)"))",
          ])
        throw request.refusal(.busy)
      }
    }
  }
}

/// What a provider answered a vendor is no answer.
private struct WebhookFault: Error, CustomStringConvertible {
  let reason: String
  var description: String { reason }
}

extension ProviderMetrics.Outcome {
  fileprivate init(_ answer: WebhookAnswer) {
    self =
      switch answer {
      case .accepted: .accepted
      case .refused: .refused
      }
  }
}
