import MoongateSDK

/// Checks what a flow may do with an account: a live session, a recent enough proof, and factors that the account has.
struct AccountChecks: FlowPart {
  let services: FlowServices
  let lookup: AccountLookup

  /// Checks that a flow of a signed-in account is continued by the session that began it.
  ///
  /// Attacks: a flow begun with a stolen session, whose steps the owner is led to pass in a session of their own; a
  /// flow that outlives its session.
  func demandOwnSession(_ record: FlowRecord, _ request: RequestContext) throws(FlowError) {
    guard let started = record.startedIn else { return }
    let own = try request.liveSession()
    guard own.session.id == started, own.account.id == record.account else {
      throw request.refusal(.unauthenticated, because: .otherSession)
    }
    // Attack: the flow of a thief's session waits until the owner has changed what the flow was begun under.
    guard own.account.epoch == record.basis.epoch else {
      throw request.refusal(.flowExpired, because: .accountChanged)
    }
  }

  /// Checks that the session's proof is recent enough for a change, both when the flow is created and when one of its
  /// steps begins. After a code was sent, the age of the proof no longer matters: the flow's lifetime bounds it. When
  /// the flow completes, the proof must still authorise changes.
  /// - Parameter isJudged: whether the provider has accepted the input. Before that, the provider itself refuses a
  ///   secret that exists already (`already_set`), because a step-up would not help.
  func demandChangeProof(_ flow: FlowTransaction, isJudged: Bool = false) throws(FlowError) {
    let (record, request) = (flow.record, flow.request)
    guard let own = request.client.session else { return }
    if !isJudged, let secret = record.purpose.setProvider, own.account.credentials.contains(secret),
      !keepsSeveral(secret, request)
    {
      return
    }
    if record.purpose.needsHeldProof { return try demandRecentProof(of: own, request, counting: record.passed) }
    guard let secret = record.purpose.resetProvider else { return }
    // Attack: with a session and a SIM card the thief "resets" a PIN that an account with an authenticator app does not
    // have, or has beside it, and the new PIN authorises what the code alone may not.
    let others = ChangeAuthority(replacing: secret, in: authority(over: own.account, request))
    if own.account.credentials.contains(secret), others.factors.isEmpty { return }
    guard !(own.session.passed + record.passed).contains(where: others.accepts) else { return }
    throw unauthorised(others, request)
  }

  /// Checks that a secret is set only after a sufficient recent proof.
  ///
  /// Attacks: a stolen session sets the PIN that is missing; a flow that an operator wrote in the wrong order sets a
  /// password for anyone who asks; a number that a thief added yesterday replaces the PIN.
  func demandProof(before purpose: StepPurpose, _ flow: FlowTransaction) async throws(FlowError) {
    let (record, request) = (flow.record, flow.request)
    guard purpose == .set else { return }
    if record.purpose.needsHeldProof { return try demandChangeProof(flow) }
    if record.purpose.registersFactor {
      // Attack: a registration flow is for `any` account and takes a code first. Someone who reads one code to an
      // address would replace the password of the account that has it.
      guard record.account == nil else { throw request.refusal(.alreadyRegistered) }
      return
    }
    // The operator has vouched for the holder of the link.
    if record.isByOperator { return }
    guard !record.passed.isEmpty, let account = try await lookup.loadOwn(flow) else {
      throw request.refusal(.denied)
    }
    if record.purpose.isReset { try demandResetProof(flow, account) }
  }

  /// Checks that a secret is reset only by something that the account held before: a verified identifier that is not
  /// too new, or one of its factors.
  func demandResetProof(_ flow: FlowTransaction, _ account: Account) throws(FlowError) {
    let (record, request) = (flow.record, flow.request)
    let authority = self.authority(over: account, request)
    // Attack: a code to a mailbox gives a first password to an account that a PIN or an authenticator app protects.
    if let recovered = record.purpose.recoveredProvider, !account.credentials.contains(recovered),
      !authority.factors.isEmpty,
      !record.passed.contains(where: authority.authorises),
      account.hasOwnIdentifier
    {
      throw request.refusal(.denied, detail: "This account has no password. Set one up after signing in.")
    }
    if record.passed.contains(where: authority.isHeld) { return }
    // To recover an account without an identifier of its own, the user verifies the address that it claims.
    if record.purpose.recoveredProvider != nil, !account.hasOwnIdentifier { return }
    throw resetRefusal(nil, account, request)
  }

  /// Refuses a step that proves a factor which was reset too recently to count, in a flow that would rely on it.
  ///
  /// Attack: someone who has the SIM alone resets the PIN and passes it in a step-up, as a second factor beside the
  /// code. Unlocking and changing remain possible: the session gains nothing, and the changed factor stays as new as it
  /// was.
  func demandOldFactor(_ provider: ProviderName, _ flow: FlowTransaction) async throws(FlowError) {
    let (purpose, request) = (flow.record.purpose, flow.request)
    switch purpose {
    case .stepUp, .factor(provider, .disable): break
    default: return
    }
    guard let account = try await lookup.loadOwn(flow),
      let until = account.isResetUntil(provider, request.generation.accounts, at: request.now)
    else { return }
    throw request.refusal(.identifierTooNew, until: until)
  }

  /// Checks that a flow that verifies an identifier has one to verify.
  ///
  /// Attack: a copy of a session of any age completes such a flow by skipping its only step, and gets a new token and a
  /// trusted device.
  func demandUnverified(_ purpose: FlowPurpose, _ account: Account, _ request: RequestContext) throws(FlowError) {
    guard case .verify(let kind) = purpose,
      !account.identifiers.contains(where: { $0.identifier.kind == kind && $0.verifiedAt == nil })
    else { return }
    throw account.identifier(kind) == nil
      ? request.refusal(.denied, detail: "There is no email address or phone number to send a code to.")
      : request.refusal(.alreadySet, detail: "This is already verified.")
  }

  /// Checks that at least one of the offered steps can complete the reset.
  func demandResettable(
    _ offered: [ProviderName], _ purpose: FlowPurpose, _ account: Account, _ request: RequestContext
  ) throws(FlowError) {
    guard !offered.contains(where: { isOpen($0, to: account, in: purpose, request) }) else { return }
    throw resetRefusal(nil, account, request)
  }

  /// The refusal if no identifier of these kinds, or none at all, can reset a secret of the account.
  func resetRefusal(_ kinds: [IdentifierKind]?, _ account: Account, _ request: RequestContext) -> FlowError {
    let waits = account.identifiers.filter { kinds?.contains($0.identifier.kind) ?? true }
      .compactMap { account.isTooNewUntil($0, request.generation.accounts, at: request.now) }
    if let until = waits.min() { return request.refusal(.identifierTooNew, until: until) }
    return request.refusal(.denied, detail: "There is no email address or phone number to send a code to.")
  }

  /// The account's identifier to use if a code is requested without naming one. Prefers verified identifiers to claimed
  /// ones, and those that may authorise changes to those that are too new. A reset, and a flow of a session, never uses
  /// one that is too new.
  func identifierToUse(
    of kinds: [IdentifierKind], in account: Account, for purpose: FlowPurpose, _ request: RequestContext
  )
    -> Identifier?
  {
    let held = account.identifiers.filter { kinds.contains($0.identifier.kind) && purpose.accepts($0) }
    let trusted = held.filter { account.isTooNewUntil($0, request.generation.accounts, at: request.now) == nil }
    let found =
      trusted.first { $0.verifiedAt != nil } ?? (purpose.refusesTooNew ? nil : held.first { $0.verifiedAt != nil })
      ?? trusted.first
    return found?.identifier
  }

  /// Whether the account has an identity at the provider's site. A second one there would sign in unnoticed.
  func isConnected(to provider: ProviderName, _ account: Account, _ request: RequestContext) -> Bool {
    account.identifiers.contains { registry(request).proves($0.identifier, by: provider) }
  }

  /// Whether the account has an identity at the site that the identifier belongs to.
  func isConnected(toSiteOf identifier: Identifier, _ account: Account, _ request: RequestContext) -> Bool {
    registry(request).prover(of: identifier).map { isConnected(to: $0, account, request) } ?? false
  }

  /// Whether a passed step meets a requirement of these choices. A step that was too new does only if the account has
  /// no older choice.
  ///
  /// Attack: a thief adds an address of their own within a stolen session, and meets with it the rule that asks for the
  /// PIN or a code by mail. An account that has nothing older still signs in.
  func counts(
    _ passed: [PassedStep], among choices: [ProviderName], for account: Account?, _ request: RequestContext
  ) -> Bool {
    let met = passed.filter { choices.contains($0.provider) }
    if met.contains(where: { $0.tooNewUntil == nil }) { return true }
    return !met.isEmpty && !choices.contains { hasSettledFactor(account, $0, request) }
  }

  /// Whether the account could pass the provider by something that is not too new.
  func hasSettledFactor(_ account: Account?, _ name: ProviderName, _ request: RequestContext) -> Bool {
    guard let account, hasFactor(account, name, request) else { return false }
    let rules = request.generation.accounts
    guard account.isResetUntil(name, rules, at: request.now) == nil else { return false }
    if account.credentials.contains(name) { return true }
    let proved = registry(request)[name]?.descriptor.signInKinds ?? []
    return account.identifiers.contains { held in
      proved.contains(held.identifier.kind) && held.verifiedAt != nil
        && account.isTooNewUntil(held, rules, at: request.now) == nil
    }
  }

  /// Whether the account could pass the provider at all.
  func hasFactor(_ account: Account?, _ name: ProviderName, _ request: RequestContext) -> Bool {
    guard let account, let provider = registry(request)[name], request.generation.policies[name] != nil else {
      return false
    }
    if account.credentials.contains(name) { return true }
    let kinds = provider.descriptor.identifierKinds
    if provider is any CodeProvider { return kinds.contains { account.identifier($0)?.verifiedAt != nil } }
    // For a federated identity, nothing but the identifier is stored.
    return kinds.contains(.federated) && account.identifier(.federated)?.verifiedAt != nil
  }

  /// Whether the account can complete a step of the provider, as far as the core knows. A code needs a recipient; a
  /// secret or a federated identity must exist, unless the step creates it.
  func isOpen(_ name: ProviderName, to account: Account, in purpose: FlowPurpose, _ request: RequestContext) -> Bool {
    guard let provider = registry(request)[name] else { return false }
    let kinds = provider.descriptor.identifierKinds
    if purpose.step(of: name) == .set || purpose.newIdentifier.map(kinds.contains) ?? false { return true }
    if provider is any CodeProvider { return identifierToUse(of: kinds, in: account, for: purpose, request) != nil }
    if kinds.contains(.federated) { return account.identifier(.federated)?.verifiedAt != nil }
    // If a flow sets up the factor, the account needs it before it can be proved.
    let isMade = provider.descriptor.hashesSecrets || request.generation.flow(for: .factor(name, .set)) != nil
    return !isMade || account.credentials.contains(name)
  }

  /// Whether an account can have several factors of this provider, so that a new one is added to the others.
  func keepsSeveral(_ provider: ProviderName, _ request: RequestContext) -> Bool {
    registry(request).descriptor(provider)?.role.contains(.keepsSeveral) ?? false
  }
}
