import MoongateSDK

// What people do with their whole account (account-security.md section 3, rule 10). Both need a recent proof of
// something that the account holds: a session that was left open, or stolen, must not take everything away.

extension FlowEngine {
  /// Everything that is stored about the person of the session.
  /// - Returns: `step_up_required` without a recent proof; `busy` while too many others are exported.
  package func exportAccount(client: ClientContext) async -> Result<AccountExport, Refusal> {
    await answer(client, flow: nil) { request throws(FlowError) in
      let account = try held(request)
      // Attack: exports without end: each looks through the whole audit trail.
      guard exports.enter() else { throw request.refusal(.busy) }
      defer { exports.leave() }
      return try await asking { () async throws(StoreFault) in
        try await AccountExport(of: account, in: store, keys: keys, at: request.now)
      }
    }
  }

  /// Removes the account of the session, and all that tells of the person.
  package func deleteAccount(client: ClientContext) async -> Result<Void, Refusal> {
    await answer(client, flow: nil) { request throws(FlowError) in
      let account = try held(request)
      let deletion = AccountDeletion(store: store, keys: keys, random: random)
      let isDone = try await asking { () async throws(StoreFault) in try await deletion.delete(account, at: request.now)
      }
      guard isDone else { throw request.refusal(.unauthenticated) }
    }
  }

  /// Replaces the names of the session's account. Names prove nothing, so no recent proof is asked for.
  /// - Parameter last: nil or empty: the account has none.
  /// - Returns: 422 `invalid_input`, with the field, for what is no name; 429 `rate_limited` after 20 changes within an
  ///   hour.
  package func renameAccount(first: String, last: String?, client: ClientContext) async -> Result<Void, Refusal> {
    await answer(client, flow: nil) { request throws(FlowError) in
      guard let own = request.client.session, own.isLive(at: request.now) else {
        throw request.refusal(.unauthenticated)
      }
      guard let first = PersonName(first) else {
        throw request.refusal(.invalidInput, detail: "Please enter your first name.", field: "first_name")
      }
      let lastText = last ?? ""
      let lastName = PersonName(lastText)
      guard lastName != nil || lastText.allSatisfy(\.isWhitespace) else {
        throw request.refusal(.invalidInput, detail: "Please enter your last name.", field: "last_name")
      }
      // A form that was sent unchanged, or twice, changes nothing.
      guard own.account.firstName != first.text || own.account.lastName != lastName?.text else { return }
      try await countRename(of: own.account.id, request)
      let event = ownEvent(.accountRenamed, of: own.account, request)
      let changes = [
        Change.renameAccount(account: own.account.id, firstName: first.text, lastName: lastName?.text), .audit(event),
      ]
      let result = try await asking { () async throws(StoreFault) in try await store.apply(changes, at: request.now) }
      if case .conflict(let conflict) = result { throw request.refusal(conflict) }
    }
  }

  /// Attack: a session renames its account without end. Each change is a write to the store and a line of the audit
  /// trail.
  private func countRename(of account: String, _ request: RequestContext) async throws(FlowError) {
    let counter = keys.counterKey(["rename", account].map { Array($0.utf8) })
    let limit = ResolvedLimit(
      provider: "account", name: "rename", key: .account, counter: counter, max: 20, window: .seconds(3600),
      counts: .all, lock: [], disables: false)
    switch try await count(limit, request) {
    case .reserved: break
    case .refused(let refusal): throw halt(refusal, of: .begin, request)
    case .filledByPending: throw request.refusal(.rateLimited, until: request.now + .seconds(1))
    }
  }

  /// A line of the audit trail about what a person does with their account outside of a flow.
  private func ownEvent(_ kind: AuditEvent.Kind, of account: Account, _ request: RequestContext) -> AuditEvent {
    AuditEvent(
      id: DecisionID(from: random), at: request.now, kind: kind, account: account.id,
      address: request.client.address.description,
      detail: ["request": request.client.decision.text])
  }

  /// Whether the account can be signed in to without its identities of a provider.
  package func canDisconnect(_ provider: ProviderName, from account: Account, _ generation: any PolicyGeneration)
    -> Bool
  {
    let registry = generation.registry ?? providers
    let gone = identities(of: provider, in: account, registry)
    guard !gone.isEmpty else { return false }
    let kept = account.identifiers.filter { !gone.contains($0.identifier) }
    return generation.flows.values.contains { flow in
      guard flow.purpose == .signIn, flow.account != .new, let first = flow.steps.first else { return false }
      return first.choices.contains { choice in
        guard generation.policies[choice] != nil, let descriptor = registry.descriptor(choice) else { return false }
        if descriptor.role.contains(.keepsFactor), !account.credentials.contains(choice) { return false }
        return kept.contains { held in
          guard descriptor.identifierKinds.first == held.identifier.kind else { return false }
          if held.identifier.kind == .federated {
            return held.verifiedAt != nil && registry.proves(held.identifier, by: choice)
          }
          // An address that nobody has verified opens the account together with its password alone.
          return held.verifiedAt != nil || descriptor.role.contains(.keepsFactor)
        }
      }
    }
  }

  /// Removes the identities at a site from the session's account. All its other sessions end. This one forgets what it
  /// has passed by the site, and goes on under a new token. The owner receives a notice.
  ///
  /// Attack: a session that has passed the site goes on into routes that require it when the account has no identity
  /// there any more.
  /// - Returns: the session's new token; nil where there was nothing to remove. `step_up_required` without a recent
  ///   proof; `denied` where nothing else would sign the person in.
  package func disconnect(_ provider: ProviderName, client: ClientContext) async -> Result<SecretText?, Refusal> {
    await answer(client, flow: nil) { request throws(FlowError) in
      let account = try held(request)
      guard let own = request.client.session else { throw request.refusal(.unauthenticated) }
      let gone = identities(of: provider, in: account, registry(request))
      if gone.isEmpty { return nil }
      // Attack: a stolen session leaves the owner without a way in. Mistake: so does the owner.
      guard canDisconnect(provider, from: account, request.generation) else {
        throw request.refusal(
          .denied, detail: "This is the only way to sign in to your account. Add another one first.")
      }
      let lines = gone.map { identifier -> Change in
        var event = ownEvent(.identifierRemoved, of: account, request)
        event.provider = provider
        event.detail["identifier_kind"] = identifier.kind.rawValue
        event.identifier = keys.logHash(identifier.value)
        return .audit(event)
      }
      let token = SessionToken(from: random)
      let kept = own.session.passed.filter { $0.provider != provider }
      let session = own.session.renewed(token.hash, of: account.id, passed: kept, at: request.now)
      let changes =
        [.demandEpoch(AccountVersion(account))] + gone.map { Change.removeIdentifier(account: account.id, $0) }
        + [
          .raiseEpoch(account: account.id), .replaceSession(own.session.token, by: session),
          .endSessions(account: account.id, except: session.token),
        ] + lines
      let result = try await asking { () async throws(StoreFault) in try await store.apply(changes, at: request.now) }
      if case .conflict(let conflict) = result { throw request.refusal(conflict) }
      tellOfDisconnection(provider, account, request)
      return token.secret
    }
  }

  /// The account's identities at the site of a provider.
  private func identities(of provider: ProviderName, in account: Account, _ registry: ProviderRegistry) -> [Identifier]
  {
    account.identifiers.map(\.identifier).filter { registry.proves($0, by: provider) }
  }

  /// Lets the session of the client go on with a flow that another session of the same account has begun to verify an
  /// address which the account claims. A person signs in again while the mail is under way, and the code of that mail
  /// is good in the newer session too.
  ///
  /// Only such flows: what they end in is the account's, whichever of its sessions types the code. Attack: the flow of
  /// a thief's session that the owner is led to complete. Verifying an address that the account has already gives a
  /// session nothing.
  package func adopt(_ id: FlowID, client: ClientContext) async -> Result<Void, Refusal> {
    await answer(client, flow: id) { request throws(FlowError) in
      guard let own = request.client.session, own.isLive(at: request.now) else {
        throw request.refusal(.unauthenticated)
      }
      var found = pending.find(id.hash)
      if found == nil { found = try await asking { () async throws(StoreFault) in try await store.flow(id.hash) } }
      guard let stored = found, let record = try await bound(stored, to: request.client, for: .drive, request),
        record.startedIn != nil,
        record.account == own.account.id, case .verify = record.purpose
      else { throw request.refusal(.flowNotFound) }
      guard own.account.epoch == record.basis?.epoch else { throw request.refusal(.flowExpired) }
      var machine = FlowMachine(record)
      guard machine.closed(at: request.now) == nil else { throw request.refusal(.flowExpired) }
      machine.continues(inSession: own.session.id)
      _ = try await store(machine, [], id: id, request)
    }
  }

  /// The account of the session that has proved enough just before.
  func held(_ request: RequestContext) throws(FlowError) -> Account {
    guard let own = request.client.session, own.isLive(at: request.now) else { throw request.refusal(.unauthenticated) }
    try demandHeldProof(of: own, request)
    return own.account
  }
}
