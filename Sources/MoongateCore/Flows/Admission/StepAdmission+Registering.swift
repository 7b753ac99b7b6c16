import MoongateSDK

// Limits on creating accounts.

extension StepAdmission {
  /// Counts the account that a step is about to create against the provider's `register` limits.
  /// - Returns: whether it was counted; false if the flow was counted before or the policy has no such limit.
  func countRegistration(by policy: ProviderPolicy, _ identifier: Identifier?, _ flow: FlowTransaction)
    async throws(FlowError) -> Bool
  {
    guard !(flow.record.registered?.contains(policy.provider) ?? false),
      policy.limits.contains(where: { $0.action == .register })
    else { return false }
    let subject = try await policies.subject(policy, StepTarget(identifier: identifier), flow)
    let limits = try policies.registerLimits(
      policy, subject, facts: policies.facts(flow, subject: subject, account: nil), flow.request)
    try await ledger.count(limits, as: .register, flow.request)
    return true
  }

  /// Counts the account that a completed flow creates, against the limits of every provider that proved or set
  /// something in the flow.
  func countRegistration(_ flow: FlowTransaction) async throws(FlowError) {
    let record = flow.record
    let identifier = record.proved.last ?? record.pendingProofs.claimed.first
    for name in Set(record.passed.map(\.provider)).union(record.pendingProofs.records.keys).sorted() {
      guard let policy = flow.request.generation.policies[name] else { continue }
      _ = try await countRegistration(by: policy, identifier, flow)
    }
  }
}
