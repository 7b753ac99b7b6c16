import MoongateSDK

// What an account's own flows demand: a live session, and proof that is fresh enough.

extension FlowEngine {
  /// An account's own flow is driven by the session that it was begun with, and by no other.
  ///
  /// Attacks: a flow begun with a stolen session, whose steps the owner is led to pass in a session of their own; a
  /// flow that outlives its session.
  func demandOwnSession(_ record: FlowRecord, _ request: RequestContext) throws(FlowError) {
    guard let started = record.startedIn else { return }
    guard let own = request.client.session, own.isLive(at: request.now), own.session.id == started,
      own.account.id == record.account
    else {
      throw request.refusal(.unauthenticated)
    }
    // Attack: the flow of a thief's session waits until its owner has changed what it was begun under.
    guard own.account.epoch == record.basis?.epoch else { throw request.refusal(.flowExpired) }
  }

  /// A change goes on only while the session's proof is fresh. It is asked for when the flow is created and when a step
  /// of it is begun. After a code was sent the age does not matter any more: the flow's lifetime bounds it. What was
  /// proved must still authorise changes at the end.
  /// - Parameter isJudged: whether the provider has taken what was sent. Before that, a secret that is there already is
  ///   the provider's to refuse (`already_set`): to step up first would lead to nothing.
  func demandChangeProof(_ record: FlowRecord, _ request: RequestContext, isJudged: Bool = false) throws(FlowError) {
    guard let own = request.client.session else { return }
    if !isJudged, let secret = record.purpose.setProvider, own.account.credentials.contains(secret),
      !keepsSeveral(secret, request)
    {
      return
    }
    if record.purpose.needsHeldProof { return try demandHeldProof(of: own, request, counting: record.passed) }
    guard let secret = record.purpose.resetProvider else { return }
    // Attack: with a session and a SIM card the thief "resets" a PIN that an account with an authenticator app does not
    // have, or has beside it, and the new PIN authorises what the code alone may not.
    let others = ChangeAuthority(replacing: secret, in: authority(over: own.account, request))
    if own.account.credentials.contains(secret), others.factors.isEmpty { return }
    guard !(own.session.passed + record.passed).contains(where: others.accepts) else { return }
    throw unauthorised(others, request)
  }

  /// A secret is set only by somebody who has proved enough just before.
  ///
  /// Attacks: a stolen session makes the PIN that is missing; a flow that an operator wrote in the wrong order sets a
  /// password for whoever asks; a number that a thief added yesterday replaces the PIN.
  func demandProof(before purpose: StepPurpose, _ record: FlowRecord, _ request: RequestContext) async throws(FlowError)
  {
    guard purpose == .set else { return }
    if record.purpose.needsHeldProof { return try demandChangeProof(record, request) }
    if record.purpose.registersFactor {
      // Attack: a flow that registers people is for `any` account and takes a code first. Whoever reads one code to an
      // address replaces the password of the account that has it.
      guard record.account == nil else { throw request.refusal(.alreadyRegistered) }
      return
    }
    guard !record.passed.isEmpty, let account = try await loadOwn(record, request) else {
      throw request.refusal(.denied)
    }
    if record.purpose.isReset { try demandResetProof(record, account, request) }
  }

  /// A secret is made anew only by what the account held before: a verified identifier that is not too new, or a factor
  /// of its own.
  func demandResetProof(_ record: FlowRecord, _ account: Account, _ request: RequestContext) throws(FlowError) {
    let authority = self.authority(over: account, request)
    // Attack: a code to a mailbox gives a first password to an account that a PIN or an app protects.
    if let recovered = record.purpose.recoveredProvider, !account.credentials.contains(recovered),
      !authority.factors.isEmpty,
      !record.passed.contains(where: authority.authorises),
      account.identifiers.contains(where: { $0.verifiedAt != nil })
    {
      throw request.refusal(.denied, detail: "This account has no password. Set one up after signing in.")
    }
    if record.passed.contains(where: authority.isHeld) { return }
    // Who recovers an account that has proved nothing yet proves the address that it claims.
    if record.purpose.recoveredProvider != nil, !account.identifiers.contains(where: { $0.verifiedAt != nil }) {
      return
    }
    throw resetRefusal(nil, account, request)
  }

  /// A reset begins only where one of the steps that it offers leads somewhere.
  func demandResettable(
    _ offered: [ProviderName], _ purpose: FlowPurpose, _ account: Account, _ request: RequestContext
  ) throws(FlowError) {
    guard !offered.contains(where: { isOpen($0, to: account, in: purpose, request) }) else { return }
    throw resetRefusal(nil, account, request)
  }

  /// Why nothing of these kinds, or nothing at all, can replace a secret of the account.
  func resetRefusal(_ kinds: [IdentifierKind]?, _ account: Account, _ request: RequestContext) -> FlowError {
    let waits = account.identifiers.filter { kinds?.contains($0.identifier.kind) ?? true }
      .compactMap { account.isTooNewUntil($0, request.generation.accounts, at: request.now) }
    if let until = waits.min() { return request.refusal(.identifierTooNew, until: until) }
    return request.refusal(.denied, detail: "There is no address or number here that a code could go to.")
  }

  /// The account that the flow is known to be of, as it was when it became known; nil while that is nobody.
  /// - Throws: 410 where the account has changed since (`Account.epoch`).
  func loadOwn(_ record: FlowRecord, _ request: RequestContext) async throws(FlowError) -> Account? {
    let account = try await loadAccount(record.account)
    if let account, account.epoch != record.basis?.epoch { throw request.refusal(.flowExpired) }
    return account
  }

  /// The one of an account's identifiers that is meant where a code is asked for without saying where to: verified
  /// before claimed, and what may authorise changes before what is too new. A reset takes nothing that is too new.
  func meant(of kinds: [IdentifierKind], in account: Account, for purpose: FlowPurpose, _ request: RequestContext)
    -> Identifier?
  {
    let held = account.identifiers.filter { kinds.contains($0.identifier.kind) && purpose.accepts($0) }
    let trusted = held.filter { account.isTooNewUntil($0, request.generation.accounts, at: request.now) == nil }
    let found =
      trusted.first { $0.verifiedAt != nil } ?? (purpose.isReset ? nil : held.first { $0.verifiedAt != nil })
      ?? trusted.first
    return found?.identifier
  }

  /// The account that holds the identifier verified.
  func holder(of identifier: Identifier) async throws(FlowError) -> Account? {
    try await asking { () async throws(StoreFault) in try await store.account(holding: identifier) }
  }
}
