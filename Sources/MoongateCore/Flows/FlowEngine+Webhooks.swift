import Logging
import MoongateSDK

// Passes requests of vendors' servers to providers. A webhook has no flow, account or session. Its only effects are
// what the provider stores for itself, and that it may end sessions which its identities have opened.

extension FlowEngine {
  /// The maximum length of a response text to a vendor, in bytes.
  private static let longestWebhookText = 4_096

  /// Whether the provider is configured and accepts webhooks.
  package func receivesWebhooks(_ name: ProviderName, in generation: any PolicyGeneration) -> Bool {
    let registry = generation.registry ?? providers
    return generation.policies[name] != nil && registry.descriptor(name)?.receivesWebhooks ?? false
      && registry[name] is any WebhookReceiver
  }

  /// Passes a request to its provider. If the provider fails, the answer is 503 so that the vendor retries.
  ///
  /// Attack: anyone can send a request here. The provider must verify it. Until then the request can do no more than
  /// any other client's.
  package func receive(_ webhook: WebhookRequest, for name: ProviderName, client: ClientContext) async -> Result<
    WebhookAnswer, Refusal
  > {
    await answer(client, flow: nil) { request throws(FlowError) in
      request.trace.note("act", "webhook")
      guard receivesWebhooks(name, in: request.generation),
        let receiver = registry(request)[name] as? any WebhookReceiver
      else {
        throw request.refusal(.notFound)
      }
      // What a vendor sends about users must not appear in the log.
      let sent = ProviderInput(
        fields: ["body": .text(String(decoding: webhook.body, as: UTF8.self))], defaultRegion: "")
      let redaction = calls.redaction(of: name, sent, [], request)
      var tools = calls.tools(for: receiver, redaction, request)
      tools.sessions = calls.siteSessions(of: name, request)
      let start = ContinuousClock.now
      do {
        let answer = try await receiver.receive(webhook, with: tools)
        if case .accepted(let text?) = answer, text.utf8.count > Self.longestWebhookText {
          throw WebhookFault(reason: "its answer to a vendor is larger than \(Self.longestWebhookText) bytes")
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

/// A provider's answer to a vendor was invalid.
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
