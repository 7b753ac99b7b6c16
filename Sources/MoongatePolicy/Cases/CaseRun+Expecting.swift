import MoongateCore
import MoongateSDK

extension CaseRun {
  /// The expectations that are not met.
  func differences(from expected: PolicyCase.Expectation) async throws -> [CaseOutcome.Difference] {
    var refusal: Refusal?
    var view: FlowView?
    var passed = false
    var claims: [AppClaim] = []
    switch answer {
    case .refusal(let given): refusal = given
    case .view(let given): view = given
    case .passed: passed = true
    case .signedIn(_, let given): (passed, claims) = (true, given)
    case nil: break
    }
    // Values that a refusal does not contain are read from the flow, as a page would do.
    let due = refusal?.deliveryReason == nil ? refusal?.provider : nil
    let asksTheFlow = !passed && due == nil
    if asksTheFlow,
      view == nil || expected.step != nil || expected.isLocked != nil || expected.isWaiting != nil
        || expected.resendsLeft != nil
    {
      view = await self.view() ?? view
    }
    var actual: [String: String] = [:]
    if case .http? = expected.status {
      actual["status"] = String(refusal?.code.status ?? 200)
    } else if case .refused? = expected.status, refusal != nil {
      actual["status"] = "\"refused\""
    } else {
      actual["status"] =
        refusal.map { String($0.code.status) } ?? (passed ? "200" : view.map { "\"\($0.status.rawValue)\"" })
    }
    actual["code"] = refusal.map { "\"\($0.code.name)\"" }
    actual["retry_after"] = refusal?.retryAfter.map { "\"\(Duration.seconds($0.retryAfterSeconds).asWritten)\"" }
    actual["attempts_left"] = (refusal != nil ? refusal?.attemptsLeft : view?.step?.attemptsLeft).map(String.init)
    actual["resends_left"] = view?.step?.resendsLeft.map(String.init)
    actual["field"] = refusal?.field.map { "\"\($0)\"" }
    actual["messages"] = String(gateway.mailbox.count)
    let open = due.map { [$0] } ?? view?.step.map { [$0.provider] } ?? view?.choices ?? []
    actual["step"] =
      expected.step.flatMap { open.contains($0) ? "\"\($0)\"" : nil }
      ?? (open.isEmpty ? nil : open.map { "\"\($0)\"" }.joined(separator: " or "))
    let stands = view?.step?.lockedUntil.map { $0 > gateway.clock.now() } ?? false
    actual["locked"] = String(stands || refusal.map { [.tooManyAttempts, .disabled].contains($0.code) } ?? false)
    actual["waiting"] = String(view?.step?.retryAfter != nil)
    actual["claims"] =
      expected.claims.keys.reduce(into: [String: String]()) { found, name in
        found[name] = claims.first { $0.name == name }?.value.asWritten
      }.asLuaTable
    actual["next"] = view?.next.map { "\"\($0)\"" }
    var differences = expected.fields.compactMap { field, value in
      actual[field] == value
        ? nil : CaseOutcome.Difference(field: field, expected: value, actual: actual[field] ?? "nothing")
    }
    // The error code explains an unexpected status.
    if let refusal, expected.code == nil, let index = differences.firstIndex(where: { $0.field == "status" }) {
      differences[index] = CaseOutcome.Difference(
        field: "status", expected: differences[index].expected, actual: "\(refusal.code.status) \(refusal.code.name)")
    }
    return differences
  }
}
