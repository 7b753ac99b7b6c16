import MoongateSDK

// Who may create an account.

extension FlowCompletion {
  /// Refuses to create an account that `registration` in accounts.lua forbids. The generation that is active now
  /// decides, not the one in which the flow began.
  ///
  /// Attack: somebody has a code sent a moment before registration is closed, or begins with an invitation that is
  /// revoked meanwhile, and enters the code afterwards; or comes by a provider, a flow or an entry point that was
  /// forgotten. Every new account passes here.
  /// - Returns: the invitation that the new account uses up; nil if it uses none.
  func demandRegistration(of known: Account?, _ flow: FlowTransaction) async throws(FlowError) -> Invitation? {
    let (record, request) = (flow.record, flow.request)
    guard record.startedIn == nil else { return nil }
    let rule = request.generation.accounts.registration
    let isInvited = record.invitation != nil
    if known == nil {
      request.watch?.asked(
        .registration(ObservedRegistration(flow: record.name, verified: record.proved, isInvited: isInvited)))
    }
    let refused =
      rule.refusal(of: record.accountRule, isInvited: isInvited)
      ?? (known == nil ? rule.refusal(ofNew: record.proved, isInvited: isInvited) : nil)
    if let refused {
      try await fail(flow)
      throw request.refusedByRegistration(refused)
    }
    guard known == nil, let code = record.invitation else { return nil }
    let found = try await asking { () async throws(StoreFault) in try await store.invitation(code) }
    if let found, found.admits(record.proved, at: request.now) { return found }
    // Attack: a victim opens the link of an invitation for somebody else, and cannot register any more where everybody
    // can. A user who needs no invitation registers without this one, and gets none of its groups.
    if rule.refusal(ofNew: record.proved, isInvited: false) == nil { return nil }
    try await fail(flow)
    throw request.refusedInvitation(found.map { $0.problem(at: request.now) ?? .otherRecipient })
  }

  /// Ends the flow, so that the code that was right is used up. The refusal was concealed until the identifier was
  /// verified. Now the user may know it.
  private func fail(_ flow: FlowTransaction) async throws(FlowError) {
    _ = try await views.store(flow.changing { $0.failed() })
  }

  /// The changes by which a new account uses up its invitation and gets its groups.
  ///
  /// Attack: two flows complete with one invitation at the same moment. The store applies these changes together with
  /// the creation of the account, for one of them.
  func uses(_ invitation: Invitation, for account: Account, _ flow: FlowTransaction) -> [Change] {
    var used = event(.invitationUsed, flow)
    used.account = account.id
    used.detail.merge(invitation.detail) { _, own in own }
    return invitation.groups.map { Change.setGroupMembership(account: account.id, $0, true) } + [.audit(used)]
  }
}
