import MoongateSDK

/// Why an operation of the engine failed. Refusals and faults stay separate, so that a wrong code is never mistaken for
/// a failed store.
enum FlowError: Error {
  /// The request was refused.
  case refused(Refusal)
  /// The store failed.
  case store(StoreFault)
  /// A policy function failed.
  case policy(PolicyFault)
}

extension RefusalCode {
  init(_ reason: InputProblem.Reason) {
    self =
      switch reason {
      case .invalidPhone: .invalidPhone
      case .invalidEmail: .invalidEmail
      case .invalidInput: .invalidInput
      case .weakPIN: .weakPIN
      case .mismatch: .pinMismatch
      case .weakPassword: .weakPassword
      }
  }

  /// A known reason maps to our code; any other reason is the provider's own code.
  init(_ outcome: Outcome) {
    let known = RefusalReason.known.contains(outcome.reason) ? RefusalCode(reserved: outcome.reason.rawValue) : nil
    self = known ?? .provider(outcome)
  }
}
