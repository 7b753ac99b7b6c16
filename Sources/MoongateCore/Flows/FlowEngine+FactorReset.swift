import MoongateSDK

/// The result of removing a factor from an account.
package enum FactorReset: Sendable, Equatable {
  /// The factor was removed and all sessions of the account ended.
  case done
  /// The account does not exist.
  case unknown
  /// The account has no record of the provider. Lists the providers that have one.
  case none(kept: [ProviderName])
}

extension FlowEngine {
  /// Removes a provider's record from an account when the user has lost the factor, together with its attempt counters
  /// and locks. All sessions end, no device is trusted any more, earlier proofs become invalid, and the user is
  /// notified.
  /// - Parameter identity: the operator, for the audit trail.
  package func resetFactor(
    _ provider: ProviderName, of id: String, by identity: OperatorIdentity, client: ClientContext
  ) async throws(StoreFault) -> FactorReset {
    let request = RequestContext(client: client, now: clock.now(), generation: generations.current)
    guard let account = try await store.account(id) else { return .unknown }
    guard account.credentials.contains(provider) else { return .none(kept: account.credentials.sorted()) }
    let changes = resetting(provider, of: account, because: "reset by an operator", identity, request)
    guard case .applied = try await store.apply(changes, at: request.now) else { return .unknown }
    parts.notices.notifyOfRemoval(provider, account, request)
    return .done
  }

  /// The changes that remove a provider's record from an account, with everything that relies on it.
  private func resetting(
    _ provider: ProviderName, of account: Account, because reason: String, _ identity: OperatorIdentity,
    _ request: RequestContext
  ) -> [Change] {
    var event = AuditEvent(
      id: DecisionID(from: random), at: request.now, kind: .factorRemoved, provider: provider, account: account.id,
      detail: identity.detail)
    event.address = identity.address
    event.detail["reason"] = reason
    let personal = PersonalLimits(keys: keys, providers: providers)
    // An account that has nothing but claimed addresses would otherwise stay locked.
    let limits =
      account.identifiers.contains(where: \.isOwn)
      ? personal.ownLimits([.verify], of: account, at: provider, in: request.generation)
      : personal.limits([.verify], of: account, at: provider, in: request.generation)
    return [
      .putProviderRecord(account: account.id, provider, sealed: nil),
      .clearCounters(limits),
      .endSessions(account: account.id, except: nil), .forgetDevices(account: account.id, except: nil),
      .raiseEpoch(account: account.id), .audit(event),
    ]
  }
}

/// A link by which the owner of an account sets a new secret, such as a password. An operator hands it over.
///
/// It is a flow that waits for the secret alone. The store has the hash of its ID, so the link is known only to whoever
/// made it. It works once, and no longer than its time or the next change of the account, such as a lock or another
/// link.
package struct ResetLink: Sendable {
  package let address: String
  package let expiresAt: Timestamp

  /// How long a link may work.
  package static let lifetimes: ClosedRange<Duration> = .seconds(60)...(.seconds(7 * 86_400))
}

extension FlowEngine {
  /// Removes a provider's record from an account as `resetFactor` does, also if there is none, and makes the link by
  /// which its owner sets another one.
  /// - Parameters:
  ///   - provider: one whose secret belongs to an identifier (`ProviderRegistry.identifierSecrets`).
  ///   - lifetime: one of `ResetLink.lifetimes`.
  /// - Returns: nil if the account does not exist.
  package func makeResetLink(
    _ provider: ProviderName, of id: String, lasting lifetime: Duration, by identity: OperatorIdentity,
    client: ClientContext
  ) async throws(StoreFault) -> ResetLink? {
    let request = RequestContext(client: client, now: clock.now(), generation: generations.current)
    guard let account = try await store.account(id) else { return nil }
    let flow = FlowID(from: random)
    let purpose = FlowPurpose.factor(provider, .recover)
    let definition = FlowDefinition(
      name: purpose.usualName, purpose: purpose, account: .existing,
      steps: [StepRule(choices: [provider], isSkippable: false, when: nil)], lifetime: lifetime,
      session: SessionRule(lifetime: .zero, idle: .zero),
      next: NextPaths(new: PagePath.signIn, returning: PagePath.signIn), location: SourceLocation(file: "", line: 0))
    // The reset raises the epoch, so the link is of the account as it is then.
    var record = FlowRecord(
      id: flow.hash, definition: definition, codes: [:], createdAt: request.now, returnTo: nil, browser: nil,
      network: [], account: AccountVersion(id: id, epoch: account.epoch + 1))
    record.isByOperator = true
    let reason = "reset by an operator, with a link until \(record.expiresAt.text)"
    let changes =
      [.requireEpoch(AccountVersion(account))] + resetting(provider, of: account, because: reason, identity, request)
      + [.putFlow(record)]
    guard case .applied = try await store.apply(changes, at: request.now) else { return nil }
    if account.credentials.contains(provider) { parts.notices.notifyOfRemoval(provider, account, request) }
    let address = "\(request.generation.gateway.publicURL)\(PagePath.signIn)?id=\(flow.secret.reveal())"
    return ResetLink(address: address, expiresAt: record.expiresAt)
  }
}
