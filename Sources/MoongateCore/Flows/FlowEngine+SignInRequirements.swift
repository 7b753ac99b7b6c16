import MoongateSDK

// What accounts.lua requires of a session, whichever flow opens it.

extension FlowEngine {
  /// All steps of a flow are behind: requires the first thing that its account still lacks (`AccountRules.signIn` of
  /// the active generation).
  ///
  /// Called again after each step that it has required, until nothing is missing.
  ///
  /// Attack: a second factor that stands in one flow is gone round by another flow that opens the same account with one
  /// factor.
  /// - Returns: false where nothing is missing.
  /// - Throws: `denied` where the account has no factor that counts, and may set none up here.
  func requireNext(_ machine: inout FlowMachine, _ request: RequestContext) async throws(FlowError) -> Bool {
    let requirements = request.generation.accounts.signIn
    // Attack: whoever has proved nothing must not learn which factors an account has. And an account's own flow keeps
    // its session.
    guard machine.record.startedIn == nil, !machine.record.passed.isEmpty, !requirements.isEmpty else { return false }
    // An account that is made here has nothing yet that it could prove.
    guard var account = try await loadOwn(machine.record, request) else { return false }
    // Attack: an account that somebody made in the victim's name, with an authenticator app of their own. Whoever
    // recovers an account in which nothing was ever verified does not take over its secrets, so none of them can be
    // required.
    if machine.record.purpose.recoveredProvider != nil, !account.identifiers.contains(where: { $0.verifiedAt != nil }) {
      account.credentials = []
    }
    // It is refused when it completes.
    if account.isLocked || machine.record.endingRule == .new { return false }
    for (index, requirement) in requirements.enumerated() where !machine.record.hasMet(requirement) {
      if let when = requirement.when, !(try condition(when, machine.record, of: account, request)) { continue }
      guard let step = step(for: requirement, account, machine.record, request) else {
        request.notes.rule("accounts.sign_in[\(index + 1)]", at: requirement.location)
        throw request.refusal(
          .denied, detail: "Signing in needs another factor, and this account has none that counts.")
      }
      machine.require(step.choices, step.purpose)
      return true
    }
    return false
  }

  /// Refuses to open an account, by a way that asks for nothing more, without what accounts.lua requires of its
  /// sessions: when another account joins it.
  ///
  /// Attack: whoever receives one code to a number registers by an identity of their own, adds the number, and is in
  /// its owner's account without the second factor that every other flow asks for.
  func demandSignIn(of holder: Account, after record: FlowRecord, _ request: RequestContext) async throws(FlowError) {
    let proved = Set((record.basis?.introduced ?? []).map(\.provider))
    for (index, requirement) in request.generation.accounts.signIn.enumerated()
    where proved.isDisjoint(with: requirement.choices) {
      if let when = requirement.when, !(try condition(when, record, of: holder, request)) { continue }
      request.notes.rule("accounts.sign_in[\(index + 1)]", at: requirement.location)
      throw request.refusal(.alreadyRegistered)
    }
  }

  /// Whether an identity elsewhere that is new to the account may stay with it: an account that has factors of its own
  /// wants one of them.
  func mayJoin(_ account: Account, _ record: FlowRecord, _ request: RequestContext) -> Bool {
    let authority = self.authority(over: account, request)
    return authority.factors.isEmpty || record.passed.contains(where: authority.authorises)
  }

  /// How the account can meet a requirement: by what it has, or, where it has nothing of it, by what may be set up
  /// here. nil: not at all.
  private func step(
    for requirement: SignInRequirement, _ account: Account, _ record: FlowRecord, _ request: RequestContext
  ) -> (choices: [ProviderName], purpose: AccountStep)? {
    let held = requirement.choices.filter { hasFactor(account, $0, request) }
    // Attack: a password that was made anew in this flow (purpose `reset`) proves nothing of the one that the account
    // requires.
    let provable = held.filter { record.purpose.step(of: $0) == .prove }
    if !provable.isEmpty { return (provable, .prove) }
    // Attack: who has one factor alone sets up another of the choices, beside the one that they cannot prove.
    guard requirement.enroll, held.isEmpty else { return nil }
    let missing = requirement.choices.filter { canBeSetUp($0, request) }
    return missing.isEmpty ? nil : (missing, .enroll)
  }

  /// Whether a factor of the provider can be made on the way into an account: a secret, never another identifier.
  private func canBeSetUp(_ name: ProviderName, _ request: RequestContext) -> Bool {
    guard let provider = registry(request)[name] as? any FullProvider, request.generation.policies[name] != nil else {
      return false
    }
    return provider.descriptor.isSecondFactor
  }
}

extension FlowRecord {
  /// Whose flow it may end in. By Google people come to the account of their verified email, else to a new one,
  /// whatever the flow's `account =` says (seeds.md 2.3).
  var endingRule: AccountRule { proved.contains { $0.kind == .federated } ? .any : accountRule }

  /// Whether a choice of the requirement was passed here, or set up where that is allowed.
  ///
  /// Attack: a code to a number of the attacker's own, proved before the flow knew whose account it is about, is no
  /// factor of the account: it is in `ProofBasis.introduced` and not in `passed`.
  fileprivate func hasMet(_ requirement: SignInRequirement) -> Bool {
    requirement.choices.contains { name in
      passed.contains { $0.provider == name } || (requirement.enroll && hasSetUp(name))
    }
  }

  /// Whether a step that accounts.lua requires has set up the factor. It is made when the flow completes.
  private func hasSetUp(_ name: ProviderName) -> Bool {
    gathered.records[name]?.sealed != nil
      && steps[..<position].contains { $0.requirement == .enroll && $0.choices.contains(name) }
  }
}
