import MoongateSDK

/// The context of one request: the client, the time, and the policy generation that applies until the request ends.
struct RequestContext: Sendable {
  let client: ClientContext
  let now: Timestamp
  let generation: any PolicyGeneration
  /// The client's device token, if it is valid.
  var device: DeviceToken?
  /// The language of messages that the request sends; nil for the request's preferred language.
  var messageLanguage: (any MessageLanguage)?
  /// The trace of the decision.
  let trace = DecisionTrace()
  /// Records the questions to policies; nil if no shadow is active.
  var watch: RequestWatch?

  /// Where the client's address is.
  var place: ClientPlace { client.place ?? generation.gateway.place(of: client.address) }

  /// What a request has recorded about its decision.
  struct Records: Sendable {
    fileprivate let trace: DecisionTrace.State
    fileprivate let watch: RequestWatch.State?
  }

  var records: Records { Records(trace: trace.recorded, watch: watch?.recorded) }

  /// Continues with earlier records, as if nothing had been recorded since.
  func restore(_ records: Records) {
    trace.recorded = records.trace
    if let state = records.watch { watch?.recorded = state }
  }

  /// This request as a use of a session.
  var use: SessionUse { SessionUse(at: now, address: client.address.description) }

  /// The session of the request, if it is live.
  /// - Throws: 401 `unauthenticated` without a live session.
  func liveSession() throws(FlowError) -> SessionSnapshot {
    guard let own = client.session, own.isLive(at: now) else { throw unauthenticated() }
    return own
  }

  /// The refusal of a request without the live session that it needs.
  func unauthenticated() -> FlowError {
    trace.note(RefusalCause.detail(ofSessionToken: client.sessionToken))
    return refusal(.unauthenticated)
  }

  /// A copy that sends its messages in the given language.
  func inLanguage(_ language: any MessageLanguage) -> Self {
    var request = self
    request.messageLanguage = language
    return request
  }

  /// A refusal of this request. More than five parameters: each detail of a refusal is optional.
  /// - Parameter cause: for the operator, where neither the code nor a rule says why.
  func refusal(
    _ code: RefusalCode, detail: String? = nil, field: String? = nil, attemptsLeft: Int? = nil, until: Timestamp? = nil,
    resendAt: Timestamp? = nil, because cause: RefusalCause? = nil
  ) -> FlowError {
    trace.note("cause", cause?.rawValue)
    return .refused(
      Refusal(
        code, decision: client.decision, detail: detail, field: field, attemptsLeft: attemptsLeft,
        retryAfter: until.map { $0 - now },
        resendAt: resendAt))
  }

  /// The refusal of an invitation.
  /// - Parameter problem: nil if no invitation has the code.
  func refusedInvitation(_ problem: InvitationProblem?) -> FlowError {
    var refusal = Refusal(.invitationInvalid, decision: client.decision)
    refusal.invitationProblem = problem
    return .refused(refusal)
  }

  /// A refusal of malformed input. A provider's text is only used if it is a short sentence, and its field name only if
  /// it is a valid name: the client sees both, and the audit trail keeps the name.
  func refusal(_ problem: InputProblem) -> FlowError {
    let isSentence =
      !problem.detail.isEmpty && problem.detail.utf8.count <= 300
      && !problem.detail.unicodeScalars.contains { $0.value < 0x20 }
    return refusal(
      RefusalCode(problem.reason), detail: isSentence ? problem.detail : nil,
      field: ProviderName(rawValue: problem.field)?.rawValue)
  }

  /// A refusal with a provider's outcome. Only the provider can say what is set already, so its sentence is used for
  /// that.
  func refusal(_ outcome: Outcome) -> FlowError {
    let code = RefusalCode(outcome)
    return refusal(code, detail: code == .alreadySet ? outcome.sentence : nil)
  }
}
