import MoongateSDK

// Operations of users on their own account. Export and deletion need a recent proof of something that the account
// holds, because a session that was left open or stolen must not be enough.

extension FlowEngine {
  /// Exports everything that is stored about the session's user.
  /// - Returns: `step_up_required` without a recent proof; `busy` while too many other exports are running.
  package func exportAccount(client: ClientContext) async -> Result<AccountExport, Refusal> {
    await answer(client, flow: nil) { request throws(FlowError) in
      let account = try checks.accountForChange(request)
      // Attack: an unlimited number of exports, each of which reads the whole audit trail.
      guard exports.enter() else { throw request.refusal(.busy) }
      defer { exports.leave() }
      return try await asking { () async throws(StoreFault) in
        try await AccountExport(of: account, in: store, keys: keys, at: request.now)
      }
    }
  }

  /// Deletes the session's account and everything stored about the user.
  package func deleteAccount(client: ClientContext) async -> Result<Void, Refusal> {
    await answer(client, flow: nil) { request throws(FlowError) in
      let account = try checks.accountForChange(request)
      let deletion = AccountDeletion(store: store, keys: keys, random: random)
      let isDone = try await asking { () async throws(StoreFault) in try await deletion.delete(account, at: request.now)
      }
      guard isDone else { throw request.unauthenticated() }
    }
  }

  /// Replaces the names of the session's account. Names are not evidence of identity, so no recent proof is required.
  /// - Parameter last: nil or empty if the account has no last name.
  /// - Returns: 422 `invalid_input` with the field for an invalid name; 429 `rate_limited` after 20 changes within an
  ///   hour.
  package func renameAccount(first: String, last: String?, client: ClientContext) async -> Result<Void, Refusal> {
    await answer(client, flow: nil) { request throws(FlowError) in
      let own = try request.liveSession()
      guard let first = PersonName(first) else {
        throw request.refusal(.invalidInput, detail: "Please enter your first name.", field: "first_name")
      }
      let lastText = last ?? ""
      let lastName = PersonName(lastText)
      guard lastName != nil || lastText.allSatisfy(\.isWhitespace) else {
        throw request.refusal(.invalidInput, detail: "Please enter your last name.", field: "last_name")
      }
      // An unchanged form, or one sent twice, changes nothing.
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

  /// Attack: a session renames its account in a loop. Each change writes to the store and to the audit trail.
  private func countRename(of account: String, _ request: RequestContext) async throws(FlowError) {
    let counter = keys.counterKey(["rename", account].map { Array($0.utf8) })
    let limit = ResolvedLimit(
      provider: "account", name: "rename", key: .account, counter: counter, max: 20, window: .seconds(3600))
    switch try await parts.ledger.count(limit, request) {
    case .reserved: break
    case .refused(let refusal): throw parts.ledger.flowError(for: refusal, of: .begin, request)
    case .filledByPending, .barred, .flowChanged: throw request.refusal(.rateLimited, until: request.now + .seconds(1))
    }
  }

  /// The audit event about an identifier that is removed outside of a flow.
  func event(removing identifier: Identifier, from account: Account, _ request: RequestContext) -> AuditEvent {
    var event = ownEvent(.identifierRemoved, of: account, request)
    event.provider = registry(request).prover(of: identifier)
    event.detail["identifier_kind"] = identifier.kind.rawValue
    event.identifier = keys.logHash(identifier.value)
    return event
  }

  /// An audit event for an operation of users on their own account outside of a flow.
  func ownEvent(_ kind: AuditEvent.Kind, of account: Account, _ request: RequestContext) -> AuditEvent {
    AuditEvent(
      id: DecisionID(from: random), at: request.now, kind: kind, account: account.id,
      address: request.client.address.description,
      detail: ["request": request.client.decision.text])
  }

  /// Whether the user can still sign in to the account after its identities of a provider are removed.
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
          guard descriptor.signInKinds.contains(held.identifier.kind) else { return false }
          if held.identifier.kind == .federated {
            return held.verifiedAt != nil && registry.proves(held.identifier, by: choice)
          }
          // An unverified address can be used to sign in only together with its password.
          return held.verifiedAt != nil || descriptor.role.contains(.keepsFactor)
        }
      }
    }
  }

  /// Removes the identities at a site from the session's account. All other sessions of the account end. This session
  /// forgets its steps by the provider and continues with a new token. The owner is notified.
  ///
  /// Attack: a session that has passed the site keeps access to routes that require it after the account has lost its
  /// identity there.
  /// - Returns: the session with its new token; nil if there was nothing to remove. `step_up_required` without a recent
  ///   proof; `denied` if the user could not sign in by anything else.
  package func disconnect(_ provider: ProviderName, client: ClientContext) async -> Result<SessionView?, Refusal> {
    await answer(client, flow: nil) { request throws(FlowError) in
      let account = try checks.accountForChange(request)
      let own = try request.liveSession()
      let gone = identities(of: provider, in: account, registry(request))
      if gone.isEmpty { return nil }
      // Attack: a stolen session leaves the owner without a way to sign in. The owner can also do this by mistake.
      guard canDisconnect(provider, from: account, request.generation) else {
        throw request.refusal(
          .denied, detail: "This is the only way to sign in to your account. Add another one first.")
      }
      let token = SessionToken(from: random)
      let lines = gone.map { identifier -> Change in
        var event = event(removing: identifier, from: account, request)
        event.detail["sessions"] = "all others"
        event.detail["session"] = own.session.id
        event.detail["session_hash"] = token.hash.trace
        return .audit(event)
      }
      let kept = own.session.passed.filter { $0.provider != provider }
      let session = own.session.renewed(token.hash, of: account.id, passed: kept, by: request.use)
      let changes =
        [.requireEpoch(AccountVersion(account))] + gone.map { Change.removeIdentifier(account: account.id, $0) }
        + [
          .raiseEpoch(account: account.id), .replaceSession(own.session.token, by: session),
          .endSessions(account: account.id, except: session.token),
        ] + lines
      let result = try await asking { () async throws(StoreFault) in try await store.apply(changes, at: request.now) }
      if case .conflict(let conflict) = result { throw request.refusal(conflict) }
      parts.notices.notifyOfDisconnection(provider, account, request)
      return SessionView(session, token: token.secret, at: request.now)
    }
  }

  /// The account's identities at the provider's site.
  private func identities(of provider: ProviderName, in account: Account, _ registry: ProviderRegistry) -> [Identifier]
  {
    account.identifiers.map(\.identifier).filter { registry.proves($0, by: provider) }
  }

  /// Lets the client's session continue a flow in which another session of the same account verifies an address that
  /// the account claims. If users sign in again while the mail is on its way, its code works in the newer session too.
  ///
  /// Only such flows can be adopted: their result belongs to the account, whichever of its sessions enters the code.
  /// Attack: the flow of a thief's session that the owner is led to complete. Verifying an address that the account
  /// already claims gives a session nothing.
  package func adopt(_ id: FlowID, client: ClientContext) async -> Result<Void, Refusal> {
    await answer(client, flow: id) { request throws(FlowError) in
      let own = try request.liveSession()
      guard let stored = try await storage.find(id), let record = try await storage.bound(stored, request),
        record.startedIn != nil,
        record.account == own.account.id, case .verify = record.purpose
      else { throw request.refusal(.flowNotFound, because: .unknownFlow) }
      guard own.account.epoch == record.basis.epoch else {
        throw request.refusal(.flowExpired, because: .accountChanged)
      }
      var flow = FlowTransaction(id, FlowMachine(record), request)
      guard flow.machine.closed(at: request.now) == nil else {
        throw request.refusal(.flowExpired, because: .lifetimeOver)
      }
      flow.machine.continues(inSession: own.session.id)
      _ = try await views.store(flow)
    }
  }
}
