import MoongateSDK

/// The data that may be recorded with a page's event: the flow, and a keyed hash of the identifier. Never the
/// identifier itself.
package struct FlowSubject: Sendable, Equatable {
  package let flow: String
  package let provider: ProviderName?
  package let account: String?
  /// The identifier's keyed hash (`KeyRing.logHash`).
  package let identifier: String?
}

extension FlowEngine {
  /// The subject of a flow of this client; nil for another client's flow or if the store fails.
  package func about(_ id: FlowID, client: ClientContext) async -> FlowSubject? {
    guard let record = try? await storage.find(id), record.browser == nil || record.browser == client.browser else {
      return nil
    }
    let step = record.step
    return FlowSubject(
      flow: record.name, provider: step?.provider, account: record.account ?? step?.account,
      identifier: step?.identifier.map { keys.logHash($0.value) })
  }
}
