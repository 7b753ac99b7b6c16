import MoongateSDK

extension FlowMachine {
  /// Where a flow is, with what exists only there.
  ///
  /// It is computed from the record. `flow.mermaid` beside this file is its diagram. Whether a flow has expired depends
  /// on the time and not on the state: see `closed(at:)`.
  package enum State: Sendable, Equatable {
    /// The policy must say whether the current step applies.
    case deciding(FunctionName)
    /// The client begins a step with one of these providers.
    case offering([ProviderName])
    /// A step was begun.
    case open(StepRecord, StepPhase)
    /// Several accounts claim the verified identifier, and the user chooses one of them.
    case choosingAccount(AccountChoice)
    /// All steps are done. The flow completes unless accounts.lua requires another step.
    case passed
    /// Completed in a browser. The app has not redeemed its code yet.
    case handingOver(Grant, GrantCode)
    /// Completed, with its session.
    case complete
    /// Ended without a session.
    case failed
  }

  /// What an open step waits for.
  package enum StepPhase: Sendable, Equatable {
    /// A code was sent, and the user enters it.
    case code(Challenge)
    /// The provider asks for fields.
    case asking
    /// The user decides elsewhere, and the client polls.
    case waiting(StepWait)
    /// The user was redirected to this address of another site.
    case atSite(String)
    /// The other site has posted its answer, and the browser fetches it.
    case returned(PostedCallback)
  }

  /// The current state.
  package var state: State {
    switch record.status {
    case .failed: return .failed
    case .complete:
      if let grant = record.grant, let code = record.grantCode { return .handingOver(grant, code) }
      return .complete
    case .pending: break
    }
    if let choice = record.accountChoice { return .choosingAccount(choice) }
    if let step = record.step { return .open(step, StepPhase(step)) }
    guard let due else { return .passed }
    if let when = due.when { return .deciding(when) }
    return .offering(due.choices)
  }
}

extension FlowMachine.State {
  /// The state for operators, without anything that the user typed or is to type.
  var summary: String {
    switch self {
    case .deciding: "asks whether its next step applies"
    case .offering(let choices): "waits for the begin of \(choices.map(\.rawValue).joined(separator: " or "))"
    case .open(let step, let phase): "waits for \(phase.summary) of \(step.provider)"
    case .choosingAccount: "waits for the choice of an account"
    case .passed: "all steps are passed"
    case .handingOver: "complete; the app has not redeemed its code"
    case .complete: "complete"
    case .failed: "failed"
    }
  }
}

extension FlowMachine.StepPhase {
  fileprivate var summary: String {
    switch self {
    case .code: "the code"
    case .asking: "the fields"
    case .waiting: "an approval elsewhere"
    case .atSite, .returned: "the other site's answer"
    }
  }

  init(_ step: StepRecord) {
    if let challenge = step.challenge {
      self = .code(challenge)
    } else if let returned = step.returned {
      self = .returned(returned)
    } else if let wait = step.wait {
      self = .waiting(wait)
    } else if let site = step.redirectTo {
      self = .atSite(site)
    } else {
      self = .asking
    }
  }
}
