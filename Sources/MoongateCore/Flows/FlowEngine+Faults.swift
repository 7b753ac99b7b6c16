import Logging
import MoongateSDK

// Faults of providers, as `moongate policy explain` and the log tell them.

extension FlowEngine {
  /// The longest text of a fault that the audit trail keeps, in bytes.
  private static let longestFault = 500

  /// What the audit trail keeps of a provider's fault: which provider, in which call, what it said, and how often that
  /// call has failed lately.
  /// - Parameter text: without what a person sent and without secrets.
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

  /// Logs what a provider may not answer, and notes it for `explain`. Not its text, which could be anything.
  /// - Returns: 503.
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
