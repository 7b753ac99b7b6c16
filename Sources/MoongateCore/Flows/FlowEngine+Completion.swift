import MoongateSDK

// Completes a flow. The account, the session and the flow are stored in one transaction.

/// The changes that a completed flow makes to an account.
private struct Outcome: Sendable {
  /// The account after the changes.
  var account: Account
  var isNew = false
  /// Whether an identifier, a password, a PIN or a factor is changed or removed, rather than added. If so, all other
  /// sessions of the account end and earlier proofs are no longer valid.
  ///
  /// Attack: the thief whose session made the owner change the PIN goes on in that session.
  var isChange = false
  var changes: [Change] = []
  /// Records rewritten in a newer form. They are stored together, or not at all if one of the records that were judged
  /// has changed.
  ///
  /// Attack: someone who knows the old PIN proves it, and waits at the flow's next step until the owner has changed the
  /// PIN, or completes at the same moment; the old PIN, hashed at today's cost, would replace the new one.
  var renewals: [Change] = []
  /// Applied after the session is stored.
  var lastChanges: [Change] = []
}

extension FlowEngine {
  /// Continues after a step was passed or skipped: to the next step, or to completion.
  func carryOn(_ machine: inout FlowMachine, id: FlowID, _ request: RequestContext, changes: [Change])
    async throws(FlowError) -> FlowView
  {
    guard try await advance(&machine, request) == .complete else {
      // A lock that was concealed until now is reported here, before another step begins.
      if machine.record.startedIn == nil { try demandUnlocked(try await loadAccount(machine.record.account), request) }
      return try await store(machine, changes, id: id, request)
    }
    return try await complete(machine, id: id, request, changes: changes)
  }

  /// Creates the session, and the account if it is new.
  private func complete(_ before: FlowMachine, id: FlowID, _ request: RequestContext, changes: [Change])
    async throws(FlowError) -> FlowView
  {
    let purpose = before.record.purpose
    // Attack: a flow whose steps were all skipped or did not apply would sign someone in without any proof.
    guard !before.record.passed.isEmpty || before.record.startedIn != nil else { throw request.refusal(.denied) }
    var machine = before
    let known = try await person(machine.record, request)
    if known?.isLocked ?? false { throw request.refusal(.disabled) }
    try demandHeld(machine.record, by: known, request)
    let rule = machine.record.endingRule
    var isRefused = known != nil && rule == .new && machine.record.startedIn == nil
    if let known, let kind = purpose.newIdentifier, !purpose.joinsAccounts {
      for identifier in machine.record.proved where identifier.kind == kind {
        if let holder = try await holder(of: identifier), holder.id != known.id { isRefused = true }
      }
    }
    // Attack: a registration for `any` account takes the password first and then a code. Someone who reads one code to
    // an address would replace the password of the account that has it.
    if known != nil, purpose.registersFactor,
      purpose.provider.map({ machine.record.gathered.records[$0] != nil }) ?? false
    {
      isRefused = true
    }
    if isRefused {
      // This was concealed until the code was verified. Now the user may know it.
      machine.failed()
      _ = try await store(machine, changes, id: id, request)
      throw request.refusal(.alreadyRegistered)
    }
    guard known != nil || rule != .existing else { throw request.refusal(.denied) }
    let claimed = try await admittedClaims(machine.record, request)
    machine.gathers { $0.claimed = claimed }
    var outcome: Outcome
    if let known {
      outcome =
        purpose.joinsAccounts
        ? try await joining(known, machine.record, request) : try await changing(known, machine.record, request)
      if outcome.account.id != known.id { machine.joins(AccountVersion(outcome.account)) }
    } else {
      try await countRegistration(machine.record, request)
      outcome = try await making(machine.record, request)
      var created = event(.accountCreated, request, record: machine.record, id: id)
      created.account = outcome.account.id
      outcome.changes.append(.audit(created))
    }
    outcome.isChange = outcome.isChange || replacesSecret(of: known, machine.record, request)
    try hand(machine.record.gathered, to: &outcome, id: id, request)
    try await conclude(purpose, &outcome, machine.record, request)
    if outcome.isChange {
      outcome.account.epoch += 1
      outcome.changes.append(.raiseEpoch(account: outcome.account.id))
    }

    let isNewDevice = !keys.knows(request.device, outcome.account.id, by: nil)
    if let language = languageToKeep(for: outcome.account, isNew: outcome.isNew, isNewDevice: isNewDevice, request) {
      outcome.lastChanges.append(.setLanguage(account: outcome.account.id, language))
    }

    var secret: SecretText?
    var session: Session?
    var code: AppCode?
    var next = destination(machine.record, isNew: outcome.isNew)
    var sessionChanges: [Change] = []
    if let app = machine.record.app {
      let token = SessionToken(from: random)
      code = AppCode(hash: token.hash, expiresAt: request.now + AppCode.lifetime, factors: outcome.account.credentials)
      next = app.address(with: token.secret)
    } else if machine.record.startedIn != nil, let own = request.client.session?.session {
      let (grown, token) = growing(
        own, of: outcome.account.id, machine.record, forgetting: lessened(known, outcome.account, purpose), request)
      (session, secret) = (grown, token.secret)
      sessionChanges = [.replaceSession(own.token, by: grown)]
    } else {
      let (made, token) = newSession(of: outcome.account.id, machine.record, request)
      (session, secret) = (made, token.secret)
      // Every sign-in gets a new token. The old token stops working.
      if let old = request.client.session { sessionChanges.append(.endSession(old.session.token)) }
      sessionChanges.append(.putSession(made))
    }
    // The code itself is only in this response. It is not stored.
    let passed = machine.record.passed
    // A completed record no longer holds the gathered proofs.
    var judged = machine.record
    judged.account = outcome.account.id
    machine.completed(
      account: AccountVersion(outcome.account), isNew: outcome.isNew, next: machine.record.app?.address ?? next,
      code: code)
    // This change comes first: if two requests complete the same flow at once, the second only learns that the step is
    // no longer open.
    let first =
      changes + [.putFlow(machine.record)] + (known.map { [Change.requireEpoch(AccountVersion($0))] } ?? [])
      + outcome.changes
    var all = sessionChanges + outcome.lastChanges
    if outcome.isChange { all.append(.endSessions(account: outcome.account.id, except: session?.token)) }
    if session != nil { all.append(.audit(event(.sessionStarted, request, record: machine.record, id: id))) }
    all += changeEvents(judged, before: known, after: outcome.account, id: id, request)
    let (last, renewals) = (all, outcome.renewals)
    var result = try await asking { () async throws(StoreFault) in
      try await store.apply(first + renewals + last, at: request.now)
    }
    if case .conflict(.recordChanged) = result, !renewals.isEmpty {
      result = try await asking { () async throws(StoreFault) in try await store.apply(first + last, at: request.now) }
    }
    switch result {
    case .applied: pending.remove(id.hash)
    // Attack: two right codes at once create only one account. "Already registered" would tell the loser about the
    // winner.
    case .conflict(.identifierTaken) where outcome.isNew && rule == .any: throw request.refusal(.stepNotOpen)
    case .conflict(let conflict): throw request.refusal(conflict)
    }
    tell(of: before.record, before: known, after: outcome.account, isNewDevice: isNewDevice, request)
    var view = FlowView(
      id: id, flow: machine.record.name, purpose: purpose, status: .complete, expiresAt: machine.record.expiresAt,
      choices: [], step: nil,
      passed: passed, account: AccountView(outcome.account, isNew: outcome.isNew, pads: request.generation.pads),
      session: session.map { SessionView($0, token: secret) }, next: next,
      isOfBrowser: machine.record.browser != nil && machine.record.browser == request.client.browser)
    if session != nil { view.deviceToken = deviceToken(for: outcome.account.id, machine.record, request) }
    return view
  }

  /// The device token after this sign-in; nil if it cannot be sealed. A missing token does not fail the sign-in.
  func deviceToken(for account: String, _ record: FlowRecord, _ request: RequestContext) -> SecretText? {
    let device = request.device ?? DeviceToken(from: random, at: request.now)
    return try? keys.remember(device, account, record.passed.map(\.provider), at: request.now)
  }

  /// The account that the flow has authenticated; nil if none exists yet.
  private func person(_ record: FlowRecord, _ request: RequestContext) async throws(FlowError) -> Account? {
    if let bound = try await loadAccount(record.account) { return bound }
    // If the account was deleted, do not create another one.
    if record.account != nil { throw request.refusal(.denied) }
    // No account held the identifier when it was verified. Attack: a code that was sent to a number before its owner
    // registered would open the account that the owner has since made with it.
    for identifier in record.proved {
      guard try await holder(of: identifier) != nil else { continue }
      throw request.refusal(
        record.accountRule == .new && identifier.kind != .federated ? .alreadyRegistered : .stepNotOpen)
    }
    return nil
  }

  /// The changes to an existing account.
  private func changing(_ account: Account, _ record: FlowRecord, _ request: RequestContext) async throws(FlowError)
    -> Outcome
  {
    var outcome = Outcome(account: account, changes: [.recordUse(account: account.id)])
    let isFederated = record.proved.contains { $0.kind == .federated }
    for identifier in record.proved {
      let held = outcome.account.identifiers.firstIndex { $0.identifier == identifier }
      if let held, outcome.account.identifiers[held].verifiedAt != nil { continue }
      // Attack: someone who reads an account's mail for a minute joins an identity of their own to it, and signs in by
      // that for ever, past the PIN. They may sign in now, but joining the identity is a change that a factor of the
      // account must authorise. A flow that connects a site has already required one (`demandHeld`).
      if held == nil, identifier.kind == .federated, !record.purpose.connectsSite, !mayJoin(account, record, request) {
        continue
      }
      if isFederated, identifier.kind != .federated, identifier.kind != record.purpose.newIdentifier {
        // Attack: an address that its owner has given up (`change_email`, a former employer's) comes back with the next
        // sign-in by Google, and someone who reads its mail gets in again. An account that has verified another address
        // keeps that one.
        if outcome.account.identifiers.contains(where: { $0.identifier.kind == identifier.kind && $0.verifiedAt != nil }
        ) {
          continue
        }
        // Another account has verified the address since, so it stays there. The sign-in continues.
        if let holder = try await holder(of: identifier), holder.id != account.id { continue }
      }
      if let held { outcome.account.identifiers.remove(at: held) }
      outcome.account.identifiers.append(HeldIdentifier(identifier: identifier, verifiedAt: request.now))
      outcome.changes.append(
        .verifyIdentifier(account: account.id, identifier, forgetting: registry(request).identifierSecrets))
    }
    // Identities at several sites are kept side by side.
    if let kind = record.purpose.newIdentifier, kind != .federated,
      let new = record.proved.last(where: { $0.kind == kind })
    {
      outcome.isChange = account.identifiers.contains { $0.identifier.kind == kind && $0.identifier != new }
      outcome.account.identifiers.removeAll { $0.identifier.kind == kind && $0.identifier != new }
      outcome.changes.append(.dropIdentifiers(account: account.id, kind, except: new))
    }
    for claimed in record.gathered.claimed where outcome.account.identifier(claimed.kind) == nil {
      outcome.account.identifiers.append(HeldIdentifier(identifier: claimed, verifiedAt: nil))
      outcome.changes.append(.claimIdentifier(account: account.id, claimed))
    }
    if (record.gathered.firstName != nil && account.firstName == nil)
      || (record.gathered.lastName != nil && account.lastName == nil)
    {
      outcome.account.firstName = account.firstName ?? record.gathered.firstName
      outcome.account.lastName = account.lastName ?? record.gathered.lastName
      outcome.changes.append(
        .nameAccount(account: account.id, firstName: record.gathered.firstName, lastName: record.gathered.lastName))
    }
    return outcome
  }

  /// The phone number was verified. If another account holds it, that account belongs to this user, and this account is
  /// merged into it.
  ///
  /// Attack: an account with a number, a PIN or a password of its own must not disappear into another by one code. Only
  /// an account that has nothing but a federated identity and its address is merged, and both accounts must be
  /// authenticated.
  private func joining(_ account: Account, _ record: FlowRecord, _ request: RequestContext) async throws(FlowError)
    -> Outcome
  {
    var found: Account?
    if let phone = record.proved.last(where: { $0.kind == .phone }) { found = try await holder(of: phone) }
    let holder = found.flatMap { $0.id == account.id ? nil : $0 }
    // The account that held the number when the code was sent must still hold it.
    guard holder.map(AccountVersion.init) == record.basis?.holder else { throw request.refusal(.flowExpired) }
    guard let holder else { return try await changing(account, record, request) }
    if holder.isLocked { throw request.refusal(.disabled) }
    // Attack: the thief's own address is added beside the owner's, and codes go to it from then on. An identifier is
    // therefore not moved if the account has already verified one of that kind.
    let moving = account.identifiers.filter { held in
      held.verifiedAt != nil
        && (held.identifier.kind == .federated
          || !holder.identifiers.contains { $0.identifier.kind == held.identifier.kind && $0.verifiedAt != nil })
    }
    // Attack: someone who obtains one code to the number adds an identity of their own to an account that a PIN or an
    // authenticator app protects.
    guard authority(over: holder, request).factors.isEmpty else { throw request.refusal(.alreadyRegistered) }
    guard account.credentials.isEmpty, moving.contains(where: { $0.identifier.kind == .federated }),
      !moving.contains(where: { $0.identifier.kind == .phone })
    else { throw request.refusal(.alreadyRegistered) }
    try await demandSignIn(of: holder, after: record, request)
    var joined = holder
    joined.identifiers =
      holder.identifiers.filter { held in !moving.contains { $0.identifier == held.identifier } }
      + moving.map { HeldIdentifier(identifier: $0.identifier, verifiedAt: request.now) }
    return Outcome(
      account: joined, changes: [.requireEpoch(AccountVersion(holder)), .recordUse(account: holder.id)],
      lastChanges: [.absorbAccount(account.id, into: holder.id)])
  }

  private func making(_ record: FlowRecord, _ request: RequestContext) async throws(FlowError) -> Outcome {
    var identifiers = record.proved.map { HeldIdentifier(identifier: $0, verifiedAt: request.now) }
    for claimed in record.gathered.claimed where !identifiers.contains(where: { $0.identifier == claimed }) {
      identifiers.append(HeldIdentifier(identifier: claimed, verifiedAt: nil))
    }
    let account = Account(
      id: "ac_" + Base64URL.encode(random.bytes(16)), firstName: record.gathered.firstName,
      lastName: record.gathered.lastName,
      createdAt: request.now,
      lastSeenAt: request.now, identifiers: identifiers)
    return Outcome(
      account: account, isNew: true, changes: [.createAccount(account, forgetting: registry(request).identifierSecrets)]
    )
  }

  /// Moves the providers' records from the flow to the account and seals them again for it.
  private func hand(_ gathered: PendingProofs, to outcome: inout Outcome, id: FlowID, _ request: RequestContext)
    throws(FlowError)
  {
    let account = outcome.account.id
    for (provider, kept) in gathered.records.sorted(by: { $0.key < $1.key }) {
      // Attack: one code of an authenticator app, read over a shoulder, in two flows at once. Both were judged right by
      // the same record.
      if let judged = kept.judgedBy, !(kept.isRenewal ?? false) {
        outcome.changes.append(.requireProviderRecord(account: account, provider, judged.hash))
      }
      guard let waiting = kept.sealed else {
        outcome.account.credentials.remove(provider)
        outcome.changes.append(.putProviderRecord(account: account, provider, sealed: nil))
        continue
      }
      let record = try unseal(record: waiting, of: provider, id: id)
      do {
        let sealed = try record.sealed(for: ProviderRecord.owner(provider, account), by: keys)
        let put = Change.putProviderRecord(account: account, provider, sealed: sealed)
        if let judged = kept.judgedBy, kept.isRenewal ?? false {
          outcome.renewals += [.requireProviderRecord(account: account, provider, judged.hash), put]
          // If the factor was removed in the meantime, the renewal does not restore it.
          if judged.hash != nil { continue }
        } else {
          outcome.changes.append(put)
        }
        outcome.account.credentials.insert(provider)
      } catch {
        throw .store(StoreFault("a record of \(provider) could not be sealed"))
      }
    }
  }

  /// Applies the effects of a purpose beyond its steps.
  private func conclude(
    _ purpose: FlowPurpose, _ outcome: inout Outcome, _ record: FlowRecord, _ request: RequestContext
  ) async throws(FlowError) {
    switch purpose {
    case .factor(let provider, .recover):
      let kinds = registry(request)[provider]?.descriptor.identifierKinds ?? []
      try forgetTries(at: provider, record.proved.last { kinds.contains($0.kind) }, &outcome, record, request)
      guard let before = try await loadAccount(record.account),
        let (account, change) = try reclaimed(outcome.account, before: before, record, request)
      else { return }
      outcome.account = account
      outcome.changes.append(change)
    case .factor(let provider, .reset): try forgetTries(at: provider, nil, &outcome, record, request)
    case .change:
      for step in record.passed + (record.basis?.introduced ?? [])
      where registry(request)[step.provider] is any CodeProvider {
        try forgetTries(at: step.provider, nil, &outcome, record, request)
      }
    default: break
    }
  }

  /// Clears the counters of a factor that was replaced. Its locks, and a provider that `disable` turned off, applied to
  /// the old factor.
  /// - Parameter identifier: the identifier by which the provider also counts attempts, if any.
  private func forgetTries(
    at name: ProviderName, _ identifier: Identifier?, _ outcome: inout Outcome, _ record: FlowRecord,
    _ request: RequestContext
  ) throws(FlowError) {
    guard let policy = request.generation.policies[name] else { return }
    let account = outcome.account
    // Both the shared counters and those of this device.
    for isOwnDevice in Set([false, request.device != nil]) {
      var subject = subject(policy, identifier, account: account.id, flow: record.id, request)
      subject.isOwnDevice = isOwnDevice
      let limits = try limits(
        policy, subject, facts: facts(record, subject: subject, account: account, request), expiredAt: nil, request)
      outcome.changes.append(.clearCounters(limits.verify.filter(\.key.isPersonal)))
    }
  }

  /// Creates a session.
  func newSession(of account: String, _ record: FlowRecord, _ request: RequestContext) -> (Session, SessionToken) {
    let token = SessionToken(from: random)
    let session = Session(
      id: "se_" + Base64URL.encode(random.bytes(12)), token: token.hash, account: account, createdAt: request.now,
      expiresAt: request.now + record.session.lifetime, idle: record.session.idle, lastSeenAt: request.now,
      passed: record.passed,
      userAgent: request.client.userAgent.map { String($0.prefix(256)) })
    return (session, token)
  }

  /// The existing session with the added proofs and a new token. It keeps its expiry: a step-up does not extend a
  /// session.
  /// - Parameter lessened: the providers of which something was removed.
  private func growing(
    _ own: Session, of account: String, _ record: FlowRecord, forgetting lessened: Set<ProviderName>,
    _ request: RequestContext
  ) -> (Session, SessionToken) {
    let token = SessionToken(from: random)
    // Earlier steps keep their times; for each provider the latest step counts. Attack: an identity of the thief's own,
    // passed for an account that was then merged into the victim's, is not a second factor of the victim's.
    let again = Set(own.account == account ? record.passed.map(\.provider) : own.passed.map(\.provider))
    let passed = (own.passed.filter { !again.contains($0.provider) } + record.passed).filter {
      !lessened.contains($0.provider)
    }
    return (own.renewed(token.hash, of: account, passed: passed, at: request.now), token)
  }

  /// The factors of which the flow has removed something.
  ///
  /// Attack: a session that has passed a factor keeps access to routes that require it after the account has lost that
  /// factor, or after the credential that was used was removed. The session therefore forgets its steps by such a
  /// factor, including those of this flow.
  private func lessened(_ before: Account?, _ after: Account, _ purpose: FlowPurpose) -> Set<ProviderName> {
    var lessened = before?.credentials.subtracting(after.credentials) ?? []
    switch purpose {
    case .factor(let provider, .disable), .factor(let provider, .reset): lessened.insert(provider)
    default: break
    }
    return lessened
  }

  /// A new user always goes to `next.new`, with the original target as a parameter. A returning user goes to the
  /// target.
  private func destination(_ record: FlowRecord, isNew: Bool) -> String {
    guard isNew else { return record.returnTo ?? record.next.returning }
    guard let returnTo = record.returnTo else { return record.next.new }
    return record.next.new + (record.next.new.contains("?") ? "&" : "?") + "return_to="
      + PercentEncoding.encode(returnTo)
  }
}

extension RequestContext {
  /// Maps a conflict of the final transaction to a refusal.
  func refusal(_ conflict: ApplyResult.Conflict) -> FlowError {
    switch conflict {
    case .flowChanged, .recordChanged: refusal(.stepNotOpen)
    case .epochChanged: refusal(.flowExpired)
    case .identifierTaken: refusal(.alreadyRegistered)
    case .accountUnavailable: refusal(.disabled)
    case .sessionEnded: refusal(.unauthenticated)
    case .codeSpent: refusal(.flowExpired)
    case .tokenNameTaken, .tooManyTokens: refusal(.denied)
    case .tokenGone: refusal(.notFound)
    }
  }
}
