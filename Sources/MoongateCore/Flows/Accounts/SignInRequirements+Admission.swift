import MoongateSDK

// `admit` of accounts.lua: whether a flow may open a session. Every flow that opens one asks here, for pages, the API,
// the App API, other sites, forward-auth, registrations, recoveries and apps alike.

extension SignInRequirements {
  /// Asks before a flow begins, before each of its messages, and after each of its steps.
  ///
  /// Until the account is proved, the function gets the facts of no account. If its answer depends on the account, it
  /// is asked again when the account is proved.
  ///
  /// Attack: an answer, or its time, before the proof tells whose account may sign in, and so who has one. Before the
  /// proof, the function sees the same facts for every account and for none.
  /// - Parameter identifier: the identifier that the client has named for the next step, if any.
  func demandAdmission(_ flow: FlowTransaction, naming identifier: Identifier? = nil) async throws(FlowError) {
    let record = flow.record
    guard record.startedIn == nil, flow.request.generation.accounts.admit != nil else { return }
    if !record.passed.isEmpty, let account = try await lookup.loadAccount(record.account, flow) {
      try demandAdmission(of: account, flow, knowing: [.client, .account], naming: identifier)
    } else {
      try demandAdmission(of: nil, flow, knowing: .client, naming: identifier)
    }
  }

  /// Asks at the end of a flow. The generation that is active now decides, not the one in which the flow began.
  ///
  /// Attack: somebody begins a flow or has a code sent a moment before sign-in is closed, and completes it afterwards.
  /// - Parameters:
  ///   - account: nil for an account that the flow creates.
  ///   - invitation: what the new account uses up. The function sees its groups, in which the account will be.
  func demandAdmission(of account: Account?, by invitation: Invitation?, atEndOf flow: FlowTransaction)
    throws(FlowError)
  {
    guard flow.record.startedIn == nil else { return }
    try demandAdmission(of: account, flow, knowing: .all, joining: invitation?.groups ?? [])
  }

  /// Asks when an app redeems the code of a completed flow. The client is the app here, so its address and device
  /// decide nothing.
  func demandAdmission(of account: Account, redeeming flow: FlowTransaction) throws(FlowError) {
    try demandAdmission(of: account, flow, knowing: [.account, .flow])
  }

  /// - Throws: the refusal, or the fault of the function: a function that fails admits nobody.
  func demandAdmission(
    of account: Account?, _ flow: FlowTransaction, knowing known: FactKnowledge, naming identifier: Identifier? = nil,
    joining groups: [GroupName] = []
  ) throws(FlowError) {
    let request = flow.request
    let admit = request.generation.accounts.admit
    guard admit != nil || request.watch != nil else { return }
    var facts = policies.facts(
      flow, subject: nil, account: account.map { Self.keepingOwnFactors($0, flow.record) })
    facts.known = known
    facts.account.groups.listed.formUnion(groups)
    if let identifier { facts.identifier = identifier }
    let verdict = try admit.map { function throws(FlowError) in
      try policies.admission(of: function, given: facts, request) ?? .allow
    }
    // A shadow compares each decision once: a refusal, or the end of the flow.
    if known == .all || verdict ?? .allow != .allow { request.watch?.asked(.admission(facts)) }
    switch verdict {
    case .allow, nil: return
    case .deny(let reason):
      throw request.refusal(.policyReason(reason), detail: request.generation.text(ofReason: reason))
    case .fault(let fault): throw .policy(fault)
    case .requireAlso(let provider):
      throw .policy(
        PolicyFault(
          kind: .result, location: request.generation.accounts.locations["admit"],
          message: "admit must return allow or deny \"reason\", but returned require_also \"\(provider)\": "
            + "add the step to sign_in"))
    }
  }
}
