import MoongateSDK

// What a completed flow changes in its account: what is verified, joined, claimed and stored.

/// The changes that a completed flow makes to an account.
struct AccountOutcome: Sendable {
  /// The account after the changes.
  var account: Account
  var isNew = false
  /// The account into which the flow's account is merged, before the changes; nil without a merge.
  var survivor: Account?
  /// Whether the device has not been used for the account before.
  var isNewDevice = false
  /// Whether an identifier, a password, a PIN or a factor is changed or removed, rather than added. If so, all other
  /// sessions of the account end and earlier proofs are no longer valid.
  ///
  /// Attack: the thief whose session made the owner change the PIN continues in that session.
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

extension FlowCompletion {
  /// The account after the flow, and the changes that lead to it.
  /// - Parameters:
  ///   - known: the account that the flow has authenticated; nil to create one.
  ///   - invitation: what a new account uses up.
  func outcome(for known: Account?, by invitation: Invitation?, _ flow: inout FlowTransaction)
    async throws(FlowError) -> AccountOutcome
  {
    let request = flow.request
    var outcome: AccountOutcome
    if let known {
      outcome =
        flow.record.purpose.joinsAccounts
        ? try await mergeOutcome(known, flow) : try await existingAccountOutcome(known, flow)
      if outcome.account.id != known.id {
        // Attack: one code merges the thief's account, whose identity then waits. In the merged session the thief
        // disconnects and connects it again, or adds an address, which signs in at once. The code that merged two
        // accounts therefore authorises nothing else; a step-up does.
        let until = tooNewUntil(flow.record, in: outcome.account, request) ?? request.now
        flow.machine.joins(AccountVersion(outcome.account), tooNewUntil: until)
      }
    } else {
      try await admission.countRegistration(flow)
      outcome = newAccountOutcome(flow)
      if let invitation {
        outcome.account.groups = Set(invitation.groups)
        outcome.changes.insert(.useInvitation(invitation.code), at: 0)
        outcome.changes += uses(invitation, for: outcome.account, flow)
      }
      var created = event(.accountCreated, flow)
      created.account = outcome.account.id
      outcome.changes.append(.audit(created))
    }
    outcome.isChange = outcome.isChange || checks.replacesSecret(of: known, flow)
    try moveRecords(of: flow, to: &outcome)
    // A recovery forgets all devices, and this one is no newer for it.
    outcome.isNewDevice = !keys.knows(request.device, outcome.account, by: nil)
    try await applyPurpose(&outcome, flow)
    if outcome.isChange {
      outcome.account.epoch += 1
      outcome.changes.append(.raiseEpoch(account: outcome.account.id))
    }
    let account = outcome.account
    if let language = messengers.languageToKeep(
      for: account, isNew: outcome.isNew, isNewDevice: outcome.isNewDevice, request)
    {
      outcome.lastChanges.append(.setLanguage(account: account.id, language))
    }
    outcome.lastChanges += rechecks(of: account, flow)
    return outcome
  }

  /// When the sites of the proved identities are asked about them again.
  private func rechecks(of account: Account, _ flow: FlowTransaction) -> [Change] {
    (flow.record.pendingProofs.rechecks ?? [:]).sorted { $0.key < $1.key }.compactMap { provider, pending in
      guard let settings = flow.request.generation.gateway.providers[provider]?.recheck,
        account.identifiers.contains(where: { $0.identifier == pending.identity && $0.verifiedAt != nil })
      else { return nil }
      let recheck = StoredRecheck(
        provider: provider, sealed: pending.sealed, confirmedAt: pending.at,
        dueAt: pending.at + IdentityRechecks.spread(settings.interval, random))
      return .putRecheck(account: account.id, pending.identity, recheck, under: nil)
    }
  }

  /// The changes to an existing account.
  private func existingAccountOutcome(_ account: Account, _ flow: FlowTransaction) async throws(FlowError)
    -> AccountOutcome
  {
    let (record, request) = (flow.record, flow.request)
    var outcome = AccountOutcome(account: account, changes: [.recordUse(account: account.id)])
    let isFederated = record.proved.contains { $0.kind == .federated }
    for identifier in record.proved {
      let held = outcome.account.identifiers.firstIndex { $0.identifier == identifier }
      if let held, outcome.account.identifiers[held].verifiedAt != nil {
        // Attack: somebody who was removed from a group at the other site keeps it here, because it was stored when the
        // identity was first added. Every proof replaces what the site says about the identity.
        if identifier.kind == .federated, !outcome.account.identifiers[held].identifier.hasSameDetails(as: identifier) {
          outcome.account.identifiers[held].identifier = identifier
          outcome.changes.append(.renewIdentifier(account: account.id, identifier))
        }
        continue
      }
      if held == nil, !mayAdd(identifier, to: account, flow) { continue }
      if isFederated, identifier.kind != .federated, identifier.kind != record.purpose.newIdentifier {
        // Attack: an address that its owner has given up (`change_email`, a former employer's) comes back with the next
        // sign-in by Google, and someone who reads its mail gets in again. An account that has verified another address
        // keeps that one.
        if outcome.account.identifiers.contains(where: { $0.identifier.kind == identifier.kind && $0.verifiedAt != nil }
        ) {
          continue
        }
        // Another account has verified the address since, so it stays there. The sign-in continues.
        if let holder = try await lookup.holder(of: identifier, flow), holder.id != account.id { continue }
      }
      if let held { outcome.account.identifiers.remove(at: held) }
      let wait = wait(of: identifier, in: account, flow)
      outcome.account.identifiers.append(
        HeldIdentifier(identifier: identifier, verifiedAt: request.now, waitsUntil: wait))
      outcome.changes.append(
        .verifyIdentifier(
          account: account.id, identifier, forgetting: registry(request).identifierSecrets, waitingUntil: wait))
    }
    // Identities at several sites are kept side by side.
    if let kind = record.purpose.newIdentifier, kind != .federated,
      let new = record.proved.last(where: { $0.kind == kind })
    {
      outcome.isChange = account.identifiers.contains { $0.identifier.kind == kind && $0.identifier != new }
      outcome.account.identifiers.removeAll { $0.identifier.kind == kind && $0.identifier != new }
      outcome.changes.append(.dropIdentifiers(account: account.id, kind, except: new))
    }
    for claimed in record.pendingProofs.claimed where outcome.account.identifier(claimed.kind) == nil {
      outcome.account.identifiers.append(HeldIdentifier(identifier: claimed, verifiedAt: nil))
      outcome.changes.append(.claimIdentifier(account: account.id, claimed))
    }
    if (record.pendingProofs.firstName != nil && account.firstName == nil)
      || (record.pendingProofs.lastName != nil && account.lastName == nil)
    {
      outcome.account.firstName = account.firstName ?? record.pendingProofs.firstName
      outcome.account.lastName = account.lastName ?? record.pendingProofs.lastName
      outcome.changes.append(
        .nameAccount(
          account: account.id, firstName: record.pendingProofs.firstName, lastName: record.pendingProofs.lastName))
    }
    return outcome
  }

  /// The phone number was verified. If another account holds it, that account belongs to this user, and this account is
  /// merged into it.
  ///
  /// Attack: an account with a number, a PIN or a password of its own must not disappear into another by one code. Only
  /// an account that has nothing but a federated identity and its address is merged, and both accounts must be
  /// authenticated.
  private func mergeOutcome(_ account: Account, _ flow: FlowTransaction) async throws(FlowError) -> AccountOutcome {
    let (record, request) = (flow.record, flow.request)
    var found: Account?
    if let phone = record.proved.last(where: { $0.kind == .phone }) { found = try await lookup.holder(of: phone, flow) }
    let holder = found.flatMap { $0.id == account.id ? nil : $0 }
    // The account that held the number when the code was sent must still hold it.
    guard holder.map(AccountVersion.init) == record.basis.holder else {
      throw request.refusal(.flowExpired, because: .accountChanged)
    }
    guard let holder else { return try await existingAccountOutcome(account, flow) }
    try admission.demandUnlocked(holder, request)
    // Attack: the thief's own address is added beside the owner's, and codes go to it from then on. An identifier is
    // therefore not moved if the account has already verified one of that kind.
    let moving = account.identifiers.filter { held in
      held.verifiedAt != nil
        && (held.identifier.kind == .federated
          || !holder.identifiers.contains { $0.identifier.kind == held.identifier.kind && $0.verifiedAt != nil })
    }
    // Attack: someone who obtains one code to the number adds an identity of their own to an account that a PIN or an
    // authenticator app protects.
    guard checks.authority(over: holder, request).factors.isEmpty else { throw request.refusal(.alreadyRegistered) }
    guard account.credentials.isEmpty, moving.contains(where: { $0.identifier.kind == .federated }),
      !moving.contains(where: { $0.identifier.kind == .phone }),
      !moving.contains(where: { checks.isConnected(toSiteOf: $0.identifier, holder, request) })
    else { throw request.refusal(.alreadyRegistered) }
    try await requirements.demandSignIn(
      of: holder, after: flow, tooNewUntil: tooNewUntil(record, in: holder, request))
    var joined = holder
    // Attack: one code, read once, gives the attacker's identity and mailbox a way into the account for ever. What is
    // added signs nobody in before the account's owner has had time to remove it.
    let wait = request.waitOfNewIdentity
    joined.identifiers =
      holder.identifiers.filter { held in !moving.contains { $0.identifier == held.identifier } }
      + moving.map { HeldIdentifier(identifier: $0.identifier, verifiedAt: request.now, waitsUntil: wait) }
    return AccountOutcome(
      account: joined, survivor: holder,
      changes: [.requireEpoch(AccountVersion(holder)), .recordUse(account: holder.id)],
      lastChanges: [.absorbAccount(account.id, into: holder.id, waitingUntil: wait)])
  }

  /// Until when the identifier that led to the merge is too new in the surviving account; nil if it is not.
  private func tooNewUntil(_ record: FlowRecord, in account: Account, _ request: RequestContext) -> Timestamp? {
    guard let phone = record.proved.last(where: { $0.kind == .phone }),
      let provider = record.basis.introduced.last?.provider
    else { return nil }
    return account.isTooNewUntil(phone, by: provider, request.generation.accounts, at: request.now)
  }

  /// The account that the flow creates.
  private func newAccountOutcome(_ flow: FlowTransaction) -> AccountOutcome {
    let (record, request) = (flow.record, flow.request)
    var identifiers = record.proved.map { HeldIdentifier(identifier: $0, verifiedAt: request.now) }
    for claimed in record.pendingProofs.claimed where !identifiers.contains(where: { $0.identifier == claimed }) {
      identifiers.append(HeldIdentifier(identifier: claimed, verifiedAt: nil))
    }
    let account = Account(
      id: "ac_" + Base64URL.encode(random.bytes(16)), firstName: record.pendingProofs.firstName,
      lastName: record.pendingProofs.lastName,
      createdAt: request.now,
      lastSeenAt: request.now, identifiers: identifiers)
    return AccountOutcome(
      account: account, isNew: true, changes: [.createAccount(account, forgetting: registry(request).identifierSecrets)]
    )
  }

  /// Moves the providers' records from the flow to the account and seals them again for it.
  private func moveRecords(of flow: FlowTransaction, to outcome: inout AccountOutcome) throws(FlowError) {
    let account = outcome.account.id
    for (provider, kept) in flow.record.pendingProofs.records.sorted(by: { $0.key < $1.key }) {
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
      let record = try views.seals.unseal(record: waiting, of: provider, id: flow.id)
      do {
        let sealed = try record.sealed(for: ProviderRecord.owner(provider, account), by: keys)
        var put: [Change] = [.putProviderRecord(account: account, provider, sealed: sealed)]
        if registry(flow.request)[provider] is any SecretImporting {
          let hash = registry(flow.request).importedHash(in: record.bytes, of: provider)
          put.append(.markImportedHash(account: account, provider, hash))
        }
        if let judged = kept.judgedBy, kept.isRenewal ?? false {
          outcome.renewals += [.requireProviderRecord(account: account, provider, judged.hash)] + put
          // If the factor was removed in the meantime, the renewal does not restore it.
          if judged.hash != nil { continue }
        } else {
          outcome.changes += put
          let isDue = outcome.account.dueChanges.removeValue(forKey: provider) != nil
          // A sign-in with the old secret may have demanded it since the account was read.
          if isDue || !outcome.isNew && registry(flow.request)[provider] is any ExposureChecking {
            outcome.changes.append(.setDueChange(account: account, provider, nil))
          }
        }
        outcome.account.credentials.insert(provider)
      } catch {
        throw .store(StoreFault("a record of \(provider) could not be sealed"))
      }
    }
  }

  /// Applies the effects of a purpose beyond its steps.
  private func applyPurpose(_ outcome: inout AccountOutcome, _ flow: FlowTransaction) async throws(FlowError) {
    let (record, request) = (flow.record, flow.request)
    switch record.purpose {
    case .factor(let provider, .recover):
      forgetDevices(&outcome)
      dropUnsettled(&outcome, request)
      try await recordReset(of: provider, &outcome, flow)
      let kinds = registry(request)[provider]?.descriptor.identifierKinds ?? []
      try await clearCounters(at: provider, record.proved.last { kinds.contains($0.kind) }, &outcome, flow)
      clearCountersOfNames(at: provider, &outcome, request)
      guard let before = try await lookup.loadAccount(record.account, flow),
        let (account, change) = try reclaimed(outcome.account, before: before, flow)
      else { return }
      outcome.account = account
      outcome.changes.append(change)
    case .factor(let provider, .reset):
      forgetDevices(&outcome)
      dropUnsettled(&outcome, request)
      try await recordReset(of: provider, &outcome, flow)
      try await clearCounters(at: provider, nil, &outcome, flow)
    case .change:
      for step in record.passed + record.basis.introduced
      where registry(request)[step.provider] is any CodeProvider {
        try await clearCounters(at: step.provider, nil, &outcome, flow)
      }
    default: break
    }
    try await applyDueChanges(&outcome, flow)
  }

  /// Applies the effects of secrets that the account had to replace. Others may have known the old one, so no device
  /// stays trusted.
  ///
  /// Attack: someone who reads the mailbox signs in by a code to an account whose password must be replaced, and the
  /// password that they set authorises what a code alone may not.
  private func applyDueChanges(_ outcome: inout AccountOutcome, _ flow: FlowTransaction) async throws(FlowError) {
    let replaced = flow.record.replacedAsDue
    if !replaced.isEmpty { forgetDevices(&outcome) }
    for provider in replaced where !flow.machine.hasPassed(provider) {
      try await recordReset(of: provider, &outcome, flow)
    }
  }

  /// No longer trusts any device for the account.
  ///
  /// Attack: someone else has signed in to the account before, on a device that would still be trusted after its owner
  /// has recovered it.
  private func forgetDevices(_ outcome: inout AccountOutcome) {
    outcome.account.devices = []
    outcome.changes.append(.forgetDevices(account: outcome.account.id, except: nil))
  }

  /// Records that a forgotten factor was replaced, unless another factor of the account authorised that: until
  /// `recovery_delay` has passed, it proves no more than what replaced it.
  private func recordReset(of provider: ProviderName, _ outcome: inout AccountOutcome, _ flow: FlowTransaction)
    async throws(FlowError)
  {
    let request = flow.request
    guard let before = try await lookup.loadAccount(flow.record.account, flow) else { return }
    let others = ChangeAuthority(replacing: provider, in: checks.authority(over: before, request))
    // Attack: a user who reads the owner's mailbox is signed in to another account, and what was just proved there
    // makes the new password count at once.
    let session = request.client.session.flatMap { $0.account.id == before.id ? $0.session : nil }
    let passed = (session?.passed ?? []) + flow.record.passed
    let isIndependent = passed.contains { others.factors.contains($0.provider) && others.accepts($0) }
    // A reset that removes one of several lost items replaces nothing: the others prove what they proved before. If
    // none is left, the next one that is set is as new as the reset.
    let keepsOthers = checks.keepsSeveral(provider, request) && outcome.account.credentials.contains(provider)
    guard !isIndependent, !keepsOthers else { return }
    outcome.account.resets[provider] = request.now
    outcome.changes.append(.recordReset(account: outcome.account.id, provider))
  }

  /// Clears the counters of a factor that was replaced. Its locks, and a provider that `disable` turned off, applied to
  /// the old factor.
  /// - Parameter identifier: the identifier by which the provider also counts attempts, if any.
  private func clearCounters(
    at name: ProviderName, _ identifier: Identifier?, _ outcome: inout AccountOutcome, _ flow: FlowTransaction
  ) async throws(FlowError) {
    let request = flow.request
    guard let policy = request.generation.policies[name] else { return }
    let account = outcome.account
    // Both the shared counters and those of this device.
    for isOwnDevice in Set([false, request.device != nil]) {
      var subject = try await policies.subject(policy, StepTarget(identifier: identifier, account: account.id), flow)
      subject.isOwnDevice = isOwnDevice
      let limits = try policies.limits(
        policy, subject, facts: policies.facts(flow, subject: subject, account: account), request)
      outcome.changes.append(.clearCounters(limits.verify.filter(\.key.isPersonal)))
    }
  }

  /// Clears what the provider has counted by the account's names and verified identifiers, which the steps of a
  /// recovery do not prove.
  private func clearCountersOfNames(
    at provider: ProviderName, _ outcome: inout AccountOutcome, _ request: RequestContext
  ) {
    let limits = PersonalLimits(keys: keys, providers: registry(request)).ownLimits(
      [.verify], of: outcome.account, at: provider, in: request.generation)
    outcome.changes.append(.clearCounters(limits))
  }

  /// The account after a new password was set by a code to an address that it had only claimed. Everything that someone
  /// else may have added is removed.
  ///
  /// Attack: the attacker registers an account in the victim's name before the victim comes, with a PIN, an
  /// authenticator app or a federated identity of their own, and waits until the victim recovers "their" password.
  /// - Returns: the account after the change, and the change; nil if the account had verified the identifier before.
  /// - Throws: 410 if the account was given to someone else in the meantime.
  private func reclaimed(_ account: Account, before: Account, _ flow: FlowTransaction) throws(FlowError) -> (
    Account, Change
  )? {
    let record = flow.record
    guard let proved = record.proved.last(where: { $0.kind == .email }),
      !before.identifiers.contains(where: { $0.identifier == proved && $0.verifiedAt != nil })
    else { return nil }
    guard before.isRecoverable(by: proved) else {
      throw flow.request.refusal(.flowExpired, because: .accountChanged)
    }
    let kept = Set(record.pendingProofs.records.filter { $0.value.sealed != nil }.keys)
    var reclaimed = account
    reclaimed.identifiers.removeAll { $0.identifier != proved }
    reclaimed.credentials.formIntersection(kept)
    return (reclaimed, .reclaimAccount(account.id, by: proved, keeping: kept))
  }
}
