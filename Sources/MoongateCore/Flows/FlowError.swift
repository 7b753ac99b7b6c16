import MoongateSDK

/// Why a verb of the engine stopped. Refusals and faults are told apart to the end: a wrong code is never mistaken for
/// a store that is down.
enum FlowError: Error {
  /// The answer is no.
  case refused(Refusal)
  /// The store could not do its work.
  case store(StoreFault)
  /// A policy could not be run to its end.
  case policy(PolicyFault)
}

/// One request as it goes through the engine: who asks, when, and under which generation it is judged to its end.
struct RequestContext: Sendable {
  let client: ClientContext
  let now: Timestamp
  let generation: any PolicyGeneration
  /// What the client's device carries, where that is ours.
  var device: DeviceToken?
  /// The language of the messages that the request sends; nil: the one that it asks for.
  var messageLanguage: (any MessageLanguage)?
  /// What its decision is made from.
  let notes = DecisionTrace()
  /// What policies are asked for it; nil where no shadow looks on.
  var watch: RequestWatch?

  /// The same, sending its messages in a language.
  func speaking(_ language: any MessageLanguage) -> Self {
    var request = self
    request.messageLanguage = language
    return request
  }

  /// A refusal of this request.
  func refusal(
    _ code: RefusalCode, detail: String? = nil, field: String? = nil, attemptsLeft: Int? = nil, until: Timestamp? = nil,
    resendAt: Timestamp? = nil
  ) -> FlowError {
    .refused(
      Refusal(
        code, decision: client.decision, detail: detail, field: field, attemptsLeft: attemptsLeft,
        retryAfter: until.map { $0 - now },
        resendAt: resendAt))
  }

  /// A refusal of input that cannot be read. What its provider says of it is kept to a sentence and the name of a
  /// field: both are told, and the name is kept in the audit trail.
  func refusal(_ problem: InputProblem) -> FlowError {
    let isSentence =
      !problem.detail.isEmpty && problem.detail.utf8.count <= 300
      && !problem.detail.unicodeScalars.contains { $0.value < 0x20 }
    return refusal(
      RefusalCode(problem.reason), detail: isSentence ? problem.detail : nil,
      field: ProviderName(rawValue: problem.field)?.rawValue)
  }

  /// What a provider refuses with. What it is that is set already, only the provider can say.
  func refusal(_ outcome: Outcome) -> FlowError {
    let code = RefusalCode(outcome)
    return refusal(code, detail: code == .alreadySet ? outcome.sentence : nil)
  }
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

  /// A known reason is the code of ours; any other is the provider's own.
  init(_ outcome: Outcome) {
    let known = RefusalReason.known.contains(outcome.reason) ? RefusalCode(reserved: outcome.reason.rawValue) : nil
    self = known ?? .provider(outcome)
  }
}
