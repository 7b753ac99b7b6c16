import MoongateSDK

// Limits on creating accounts.

extension FlowEngine {
  /// Counts the account that a step is about to create against the provider's `register` limits.
  /// - Returns: whether it was counted; false if the flow was counted before or the policy has no such limit.
  func countRegistration(
    by policy: ProviderPolicy, _ identifier: Identifier?, _ record: FlowRecord, _ request: RequestContext
  )
    async throws(FlowError) -> Bool
  {
    guard !(record.registered?.contains(policy.provider) ?? false),
      policy.limits.contains(where: { $0.action == .register })
    else { return false }
    let subject = subject(policy, identifier, account: nil, flow: record.id, request)
    let limits = try registerLimits(
      policy, subject, facts: facts(record, subject: subject, account: nil, request), request)
    try await count(limits, as: .register, request)
    return true
  }

  /// Counts the account that a completed flow creates, against the limits of every provider that proved or set
  /// something in the flow.
  func countRegistration(_ record: FlowRecord, _ request: RequestContext) async throws(FlowError) {
    let identifier = record.proved.last ?? record.gathered.claimed.first
    for name in Set(record.passed.map(\.provider)).union(record.gathered.records.keys).sorted() {
      guard let policy = request.generation.policies[name] else { continue }
      _ = try await countRegistration(by: policy, identifier, record, request)
    }
  }
}
