import MoongateCore
import MoongateSDK

// Steps that wait for a decision that the person makes elsewhere, such as in an app on their phone.

extension CaseRun {
  /// The open step, where it waits.
  func waitingStep() async -> StepView? { await view()?.step.flatMap { $0.retryAfter == nil ? nil : $0 } }

  /// Lets the person decide, and polls the step when that is due.
  mutating func decide(_ isApproved: Bool, at step: StepView, _ act: PolicyCase.Act) async throws -> String {
    guard let flow else { return told }
    guard let rehearsal = providers[step.provider] as? any DecidedRehearsal else {
      throw fail(
        act, "\(step.provider) waits, and nobody here can decide for the person: its rehearsal is no DecidedRehearsal")
    }
    rehearsal.decide(isApproved)
    gateway.clock.advance(by: step.retryAfter ?? .zero)
    take(await gateway.submit(flow.id, fields: [:], by: client))
    return told
  }
}
