import MoongateSDK

/// What may be noted beside an event of a page: which flow, and a keyed hash of who it is for. Never the number itself.
package struct FlowSubject: Sendable, Equatable {
  package let flow: String
  package let provider: ProviderName?
  package let account: String?
  /// `KeyRing.logHash`.
  package let identifier: String?
}

extension FlowEngine {
  /// Whom a flow is about, where it is this client's; nil for any other, and where the store does not answer.
  package func about(_ id: FlowID, client: ClientContext) async -> FlowSubject? {
    var found = pending.find(id.hash)
    if found == nil { found = try? await store.flow(id.hash) }
    guard let record = found, record.browser == nil || record.browser == client.browser else { return nil }
    let step = record.step
    return FlowSubject(
      flow: record.name, provider: step?.provider, account: record.account ?? step?.account,
      identifier: step?.identifier.map { keys.logHash($0.value) })
  }
}
