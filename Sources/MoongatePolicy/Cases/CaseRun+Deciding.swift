import MoongateCore
import MoongateSDK

// Steps that wait for an approval on another device, such as in an app on a phone.

extension CaseRun {
  /// The open step, if it waits.
  func waitingStep() async -> StepView? { await view()?.step.flatMap { $0.retryAfter == nil ? nil : $0 } }

  /// Simulates the user's decision, and polls the step at its next polling time.
  mutating func decide(_ isApproved: Bool, at step: StepView, _ act: PolicyCase.Act) async throws -> String {
    guard let flow else { return outcomeText }
    guard let dryRun = providers[step.provider] as? any DecidedRehearsal else {
      throw fail(
        act,
        "\(step.provider) waits for an approval, which its dry run cannot simulate: it does not conform to DecidedRehearsal"
      )
    }
    dryRun.decide(isApproved)
    gateway.clock.advance(by: step.retryAfter ?? .zero)
    take(await gateway.submit(flow.id, fields: [:], by: client))
    return outcomeText
  }
}
