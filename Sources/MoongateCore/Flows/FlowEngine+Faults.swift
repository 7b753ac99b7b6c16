import Logging
import MoongateSDK

// Reports providers' faults to the log and to `moongate policy explain`.

extension FlowEngine {
  /// The maximum length of a fault's text in the audit trail, in bytes.
  private static let longestFault = 500

  /// The audit detail of a provider's fault: the provider, the call, the message, and how often that call has failed
  /// recently.
  /// - Parameter text: the redacted message.
  func faultDetail(_ text: String, of provider: ProviderName, in call: ProviderMetrics.Call, at now: Timestamp)
    -> [String: String]
  {
    let tally = providerMetrics.tallyFault(call, of: provider, at: now)
    return [
      "fault": text.utf8.count <= Self.longestFault
        ? text : String(decoding: text.utf8.prefix(Self.longestFault), as: UTF8.self) + "…",
      "fault_provider": provider.rawValue, "fault_call": call.rawValue, "fault_count": String(tally.count),
      "fault_since": tally.since.exactText,
    ]
  }

  /// Logs an answer that the provider is not allowed to give, and adds it to the decision trace. The answer's text is
  /// not logged, because it is arbitrary.
  /// - Returns: a 503 refusal.
  func flaw(_ sentence: String, of provider: ProviderName, _ request: RequestContext, _ more: Logger.Metadata = [:])
    -> FlowError
  {
    logger.error(
      "\(sentence)",
      metadata: ["decision": "\(request.client.decision)", "provider": "\(provider)"].merging(more) { known, _ in known
      })
    request.notes.note("fault", sentence)
    return request.refusal(.busy)
  }
}
