import MoongateSDK

// Completes flows whose result an app receives.

extension FlowCompletion {
  /// Redeems the one-time code of a completed flow and creates the session.
  /// - Returns: nil if the flow is not complete. The input then belongs to its open step.
  func redeem(_ id: FlowID, _ input: ProviderInput, _ request: RequestContext) async throws(FlowError) -> FlowView? {
    var flow = try await storage.load(id, request, completeToo: true, as: .look)
    let record = flow.record
    guard record.status == .complete else { return nil }
    guard case .handingOver(let grant, let code) = flow.machine.state,
      let account = try await lookup.loadAccount(record.account, flow),
      let epoch = record.basis.epoch
    else { throw request.refusal(.stepNotOpen) }
    let typed: (code: String, verifier: String)
    do throws(InputProblem) { typed = (try input.text("code"), try input.text("code_verifier")) } catch {
      throw request.refusal(error)
    }
    guard request.now < code.expiresAt else { throw request.refusal(.codeExpired) }
    // Attack: the code of an app that the operator has removed since, or whose redirect URI was removed.
    guard request.generation.apps.takesFlow(with: grant) else {
      throw request.refusal(.flowExpired, because: .appRemoved)
    }
    // Both are 256-bit secrets, which cannot be guessed, so attempts are not counted.
    guard constantTimeEquals(TokenHash(of: typed.code.utf8).bytes, code.hash.bytes), grant.isProved(by: typed.verifier)
    else {
      throw request.refusal(.invalidCode)
    }
    // Attack: the account has set up a second factor since the code was issued, and someone who has the code would be
    // signed in without it.
    guard account.credentials.isSubset(of: code.factors) else {
      throw request.refusal(.flowExpired, because: .accountChanged)
    }
    // Attack: sign-in is closed after the code was issued, and somebody who has the code would be signed in.
    try requirements.demandAdmission(of: account, redeeming: flow)
    flow.machine.redeemed()
    let (session, token) = newSession(of: account.id, flow)
    let changes: [Change] = [
      .requireEpoch(AccountVersion(id: account.id, epoch: epoch)), .putSession(session),
      .audit(startEvent(session, flow)), .putFlow(flow.record),
    ]
    switch try await asking({ () async throws(StoreFault) in try await store.apply(changes, at: request.now) }) {
    case .applied: break
    case .conflict(let conflict): throw request.refusal(conflict)
    }
    var view = try await views.view(of: flow)
    // Attack: a client that redeems a stolen code becomes a trusted device. Only the browser that passed the steps is.
    view.session = SessionView(session, token: token.secret)
    return view
  }
}
