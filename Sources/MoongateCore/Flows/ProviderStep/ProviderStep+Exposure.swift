import MoongateSDK

// Asks providers whether attackers know a secret (`ExposureChecking`).

extension ProviderStep {
  /// The maximum number of new secrets that are looked up for one client address in an hour.
  private static let maxLookups = 60

  /// Refuses a new secret that attackers know. Called before anything is hashed or counted, and never with an account,
  /// so that it does the same for known and unknown addresses. If the source does not answer, the secret is taken.
  func demandUnexposed(
    _ provider: any FullProvider, _ capabilities: StepCapabilities, _ input: ProviderInput, _ flow: FlowTransaction
  ) async throws(FlowError) {
    let request = flow.request
    guard capabilities.context.purpose == .set || capabilities.context.purpose == .change,
      let checking = checking(provider, capabilities)
    else { return }
    let exposure: SecretExposure
    if try await isWithinLookups(provider.descriptor.name, request) {
      exposure = await checking.exposure(capabilities.withoutAccount.context, input)
    } else {
      exposure = .unknown(reason: "too many new secrets from this client address")
    }
    switch exposure {
    case .notFound: break
    case .unknown(let reason):
      var event = event(.secretUnchecked, flow)
      event.provider = provider.descriptor.name
      event.detail["fault"] = capabilities.redaction(reason)
      audit.record(event)
    case .found(let problem, _): throw request.refusal(problem)
    }
  }

  /// Attack: one client makes the gateway ask a service about passwords without end. Beyond the limit the client's new
  /// secrets are taken unchecked, which harms nobody else.
  private func isWithinLookups(_ provider: ProviderName, _ request: RequestContext) async throws(FlowError) -> Bool {
    let counted = [Array("exposure".utf8), Array(provider.rawValue.utf8), request.client.address.countingKey]
    let limit = ResolvedLimit(
      provider: provider, name: "exposure", key: .ip, counter: keys.counterKey(counted), max: Self.maxLookups,
      window: .seconds(3600))
    if case .reserved = try await ledger.count(limit, request) { return true }
    return false
  }

  /// Looks up a secret with which somebody has just signed in. If attackers know it, the event is recorded and the
  /// owner is told; if the operator demands another secret, the account must replace it from now on, whichever way it
  /// signs in.
  ///
  /// Attack: the password is right and demanded to change, so the attacker leaves the flow and signs in again while the
  /// service is down. What was found once is therefore stored at once.
  func lookUpProved(
    _ provider: any FullProvider, _ capabilities: StepCapabilities, _ input: ProviderInput, _ proved: FlowTransaction
  ) async throws(FlowError) -> FlowTransaction {
    let name = provider.descriptor.name
    guard capabilities.context.purpose == .prove, proved.record.startedIn == nil,
      let checking = checking(provider, capabilities), let id = proved.record.account,
      case .found(_, let demandsChange) = await checking.exposure(capabilities.withoutAccount.context, input)
    else { return proved }
    proved.accounts.forget()
    guard let account = try await lookup.loadAccount(id, proved) else { return proved }
    var event = event(.secretExposed, proved)
    event.provider = name
    event.detail["change"] = demandsChange ? "demanded" : "offered"
    audit.record(event)
    if demandsChange, account.dueChanges[name] == nil, let epoch = proved.record.basis.epoch {
      // If the account has changed meanwhile, the flow cannot complete.
      _ = try await asking { () async throws(StoreFault) in
        try await store.apply(
          [
            .requireEpoch(AccountVersion(id: id, epoch: epoch)),
            .setDueChange(account: id, name, .breached),
          ], at: proved.request.now)
      }
      proved.accounts.forget()
    }
    try await completion.notices.notifyOfExposure(of: name, account, proved.request)
    return proved.changing { machine in
      machine.updatePendingProofs { $0.exposed = ($0.exposed ?? []).union([name]) }
    }
  }

  /// The provider, if it checks and the operator has turned that on.
  private func checking(_ provider: any FullProvider, _ capabilities: StepCapabilities) -> (any ExposureChecking)? {
    guard let checking = provider as? any ExposureChecking,
      checking.checksExposure(capabilities.context.tools.settings)
    else { return nil }
    return checking
  }
}
