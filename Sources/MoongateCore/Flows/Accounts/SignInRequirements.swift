import MoongateSDK

/// Applies the sign-in requirements of accounts.lua to every flow that opens a session.
struct SignInRequirements: FlowPart {
  let services: FlowServices
  let lookup: AccountLookup
  let checks: AccountChecks
  let policies: PolicyEvaluation

  /// Adds a step for the first requirement that the account has not met, after all steps of the flow have passed
  /// (`AccountRules.signIn` of the active generation), and at last for a secret that the account must replace.
  ///
  /// Called again after each step that it adds, until nothing is missing.
  ///
  /// Attack: a second factor that one flow requires is bypassed by another flow that opens the same account with one
  /// factor.
  /// - Returns: false if nothing is missing.
  /// - Throws: `denied` if the account has no factor that counts and may not set one up here.
  func requireNext(_ flow: inout FlowTransaction) async throws(FlowError) -> Bool {
    let (record, request) = (flow.record, flow.request)
    let requirements = request.generation.accounts.signIn
    // Attack: someone who has proved nothing must not learn which factors an account has. A flow of a signed-in account
    // keeps its session, so nothing is required there.
    guard record.startedIn == nil, !record.passed.isEmpty else { return false }
    // A new account has no factors yet. A flow of a locked account, or of one that must be new, is refused when it
    // completes, with the reason.
    guard let found = try await lookup.loadAccount(record.account, flow), !found.isLocked, record.endingRule != .new,
      let account = try await lookup.loadOwn(flow).map({ Self.keepingOwnFactors($0, record) })
    else { return false }
    for (index, requirement) in requirements.enumerated() where !hasMet(requirement, account, record, request) {
      if let when = requirement.when, !(try policies.condition(when, of: account, flow)) { continue }
      guard let step = step(for: requirement, account, record, request) else {
        request.trace.rule("accounts.sign_in[\(index + 1)]", at: requirement.location)
        throw request.refusal(
          .denied, detail: "Signing in needs another step that is not set up for this account. Please contact support.")
      }
      flow.machine.require(step.choices, step.purpose)
      return true
    }
    return requireChange(of: account, &flow)
  }

  /// The account without factors that the flow does not take over.
  ///
  /// Attack: an account that someone made in the victim's name, with an authenticator app of their own. Recovering an
  /// account without an identifier of its own does not take over its secrets, so none of them can be required.
  static func keepingOwnFactors(_ account: Account, _ record: FlowRecord) -> Account {
    var account = account
    if record.purpose.recoveredProvider != nil, !account.hasOwnIdentifier {
      account.credentials = []
    }
    return account
  }

  /// Checks the sign-in requirements of an account before another account is merged into it, because merging opens the
  /// account without further steps.
  ///
  /// Attack: someone who receives one code to a number registers by a federated identity of their own, adds the number,
  /// and is in its owner's account without the second factor that every other flow asks for.
  /// - Parameter until: until when the identifier that leads to the merge is too new in `holder`; nil if it is not.
  func demandSignIn(of holder: Account, after flow: FlowTransaction, tooNewUntil until: Timestamp?)
    async throws(FlowError)
  {
    let (record, request) = (flow.record, flow.request)
    try demandAdmission(of: holder, flow, knowing: .all)
    let proved = record.basis.introduced.map { $0.tooNew(until: until) }
    for (index, requirement) in request.generation.accounts.signIn.enumerated()
    where !checks.counts(proved, among: requirement.choices, for: holder, request) {
      if let when = requirement.when, !(try policies.condition(when, of: holder, flow)) { continue }
      request.trace.rule("accounts.sign_in[\(index + 1)]", at: requirement.location)
      throw request.refusal(.alreadyRegistered)
    }
    // Attack: the same by someone who keeps the leaked password that the account must replace.
    guard dueChanges(of: holder, request).isEmpty else { throw request.refusal(.alreadyRegistered) }
  }

  /// Whether a new federated identity may be joined to the account. An account with second factors requires one of
  /// them.
  func mayJoin(_ account: Account, _ flow: FlowTransaction) -> Bool {
    let authority = checks.authority(over: account, flow.request)
    return authority.factors.isEmpty || flow.record.passed.contains(where: authority.authorises)
  }

  /// How the account can meet a requirement: with a factor that it has or, if it has none of the choices, with one that
  /// it may set up now. nil if it cannot.
  private func step(
    for requirement: SignInRequirement, _ account: Account, _ record: FlowRecord, _ request: RequestContext
  ) -> (choices: [ProviderName], purpose: AccountStep)? {
    let able = requirement.choices.filter { checks.hasFactor(account, $0, request) }
    // A factor that is too new counts only while the account has no older one among the choices (`hasMet`).
    let old = able.filter { checks.hasSettledFactor(account, $0, request) }
    let held = old.isEmpty ? able : old
    // Attack: a password that was reset in this flow (purpose `reset`) does not prove the one that the account
    // requires.
    let provable = held.filter { record.purpose.step(of: $0) == .prove }
    if !provable.isEmpty { return (provable, .prove) }
    // Attack: someone who has one factor alone sets up another of the choices, beside the one that they cannot prove.
    guard requirement.enroll, held.isEmpty else { return nil }
    let missing = requirement.choices.filter { canBeSetUp($0, request) }
    return missing.isEmpty ? nil : (missing, .enroll)
  }

  /// Whether a factor of the provider can be set up during a sign-in. Only secrets can, never another identifier.
  private func canBeSetUp(_ name: ProviderName, _ request: RequestContext) -> Bool {
    guard let provider = registry(request)[name] as? any FullProvider, request.generation.policies[name] != nil else {
      return false
    }
    return provider.descriptor.isSecondFactor
  }
}

extension SignInRequirements {
  /// Whether a choice of the requirement was passed in this flow, or set up if that is allowed.
  ///
  /// Attack: a code to a number of the attacker's own, verified before the flow knew the account, is not a factor of
  /// the account: it is in `ProofBasis.introduced` and not in `passed`.
  private func hasMet(
    _ requirement: SignInRequirement, _ account: Account, _ record: FlowRecord, _ request: RequestContext
  ) -> Bool {
    if requirement.enroll, requirement.choices.contains(where: record.hasSetUp) { return true }
    return checks.counts(record.passed, among: requirement.choices, for: account, request)
  }
}

extension FlowRecord {
  /// Whether a step that accounts.lua requires has set up the factor. It is created when the flow completes.
  fileprivate func hasSetUp(_ name: ProviderName) -> Bool {
    pendingProofs.records[name]?.sealed != nil
      && steps[..<position].contains { $0.requirement == .enroll && $0.choices.contains(name) }
  }
}
