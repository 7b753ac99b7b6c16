import MoongateSDK

// Admits an attempt at a code step, which may wait for the codes of several providers.

/// A code that the entered code may be compared with.
struct AdmittedCode: Sendable {
  /// The step as if this were its only code.
  let step: StepRecord
  let challenge: Challenge
  /// The entered text, as this code's rule reads it.
  let typed: String
  let limits: StepLimits
  /// An additional provider that its policy requires.
  let also: ProviderName?
}

/// The limits that an attempt at a code step is charged to, and the codes that it may be compared with.
struct AdmittedCodes: Sendable {
  var limits: [ResolvedLimit]
  /// The codes whose policies allow the attempt, including expired ones.
  var codes: [AdmittedCode]
}

extension StepAdmission {
  /// Reads the entered text by the rules of the step's codes.
  /// - Throws: 422 if it fits none of them. Malformed text does not count as an attempt.
  func read(_ typed: String, for step: StepRecord, _ request: RequestContext) throws(FlowError) -> [(
    code: SentCode, typed: String
  )] {
    let read = step.codes.compactMap { code in code.challenge.rule.read(typed).map { (code, $0) } }
    guard read.isEmpty, let rule = step.challenge?.rule else { return read }
    throw request.refusal(.invalidInput, detail: "Enter the \(rule.length)-\(rule.unit) code.", field: "code")
  }

  /// Asks the policies of the codes that the entered text may match, and collects the limits of all senders of the
  /// step.
  /// - Throws: the first policy's refusal if no policy allows the attempt.
  func admit(_ read: [(code: SentCode, typed: String)], _ step: StepRecord, _ flow: FlowTransaction)
    async throws(FlowError) -> AdmittedCodes
  {
    let request = flow.request
    var admitted = AdmittedCodes(limits: [], codes: [])
    var refused: FlowError?
    for (code, typed) in read {
      // A provider that was removed from the configuration has no limits, so its codes are not accepted.
      guard let policy = request.generation.policies[code.provider],
        registry(request)[code.provider] is any CodeProvider
      else { continue }
      let own = step.sent(code)
      do throws(FlowError) {
        let (limits, also) = try await admit(own, policy, flow)
        admitted.codes.append(
          AdmittedCode(step: own, challenge: code.challenge, typed: typed, limits: limits, also: also))
      } catch {
        guard case .refused = error else { throw error }
        refused = refused ?? error
      }
    }
    guard let first = admitted.codes.first else { throw refused ?? request.refusal(.stepNotOpen) }
    admitted.limits = first.limits.verify
    for code in admitted.codes.dropFirst() {
      admitted.limits += code.limits.verify.notCounted(by: admitted.limits)
    }
    let others = try await otherVerifyLimits(of: first.step, beside: admitted.limits, flow)
    admitted.limits += others
    return admitted
  }
}

extension CodeRule {
  /// For messages: "a 6-digit code", "an 8-character code".
  var unit: String { alphabet == .digits ? "digit" : "character" }
}
