import MoongateSDK

// The end of a flow that an app takes over.

extension FlowEngine {
  /// Redeems the one-time code of a complete flow, once, and makes the session.
  /// - Returns: nil where the flow is not complete: then the input is for its open step.
  func redeem(_ id: FlowID, _ input: ProviderInput, _ visit: Visit) async throws(Halt) -> FlowView? {
    var machine = try await load(id, visit, completeToo: true, as: .look)
    guard machine.record.status == .complete else { return nil }
    guard let app = machine.record.app, let code = machine.record.appCode, let account = try await loadAccount(machine.record.account),
      let epoch = machine.record.basis?.epoch
    else { throw visit.refusal(.stepNotOpen) }
    let typed: (code: String, verifier: String)
    do throws(InputProblem) { typed = (try input.text("code"), try input.text("code_verifier")) } catch { throw visit.refusal(error) }
    guard visit.now < code.expiresAt else { throw visit.refusal(.codeExpired) }
    // Both are secrets of 256 bits, so nothing is counted: there is nothing to guess.
    guard constantTimeEquals(TokenHash(of: typed.code.utf8).bytes, code.hash.bytes), app.isProved(by: typed.verifier) else {
      throw visit.refusal(.invalidCode)
    }
    // Attack: the account has set up a second factor since the code was made, and whoever has the code would be in without it.
    if let factors = code.factors, !account.credentials.isSubset(of: factors) { throw visit.refusal(.flowExpired) }
    machine.redeemed()
    let (session, token) = newSession(of: account.id, machine.record, visit)
    let changes: [Change] = [
      .demandEpoch(AccountVersion(id: account.id, epoch: epoch)), .putSession(session),
      .audit(event(.sessionStarted, visit, record: machine.record, id: id)), .putFlow(machine.record),
    ]
    switch try await asking({ () async throws(StoreFault) in try await store.apply(changes, at: visit.now) }) {
    case .applied: break
    case .conflict(let conflict): throw visit.refusal(conflict)
    }
    var view = try await view(of: machine.record, id: id, visit)
    view.session = SessionView(session, token: token.secret)
    view.deviceToken = deviceToken(for: account.id, machine.record, visit)
    return view
  }
}
