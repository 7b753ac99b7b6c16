import MoongateSDK

// Identifiers that accounts claim without having verified them. A claim is not exclusive: claiming an identifier takes
// nothing away from other accounts.

/// The accounts that an identifier leads to while the flow does not know the user yet.
struct IdentifierOwners: Sendable {
  /// The account that has verified the identifier.
  var holder: Account?
  /// If no account has verified it: the accounts that claim it, oldest first.
  var claimants: [Account] = []

  static let none = IdentifierOwners()

  /// The account whose facts a policy sees; nil if there are several candidates.
  var only: Account? { holder ?? (claimants.count == 1 ? claimants[0] : nil) }
  var isEmpty: Bool { holder == nil && claimants.isEmpty }
}

/// An account that a step may be about.
struct Candidate: Sendable {
  /// The step as if it were about this account alone.
  let step: StepRecord
  let capabilities: StepCapabilities
  /// An additional provider that the policy requires.
  let also: ProviderName?
}

extension FlowEngine {
  /// The maximum number of unverified claims on an identifier. Beyond that it must be verified, so that searching the
  /// claims stays cheap.
  static let maxClaims = 64
  /// The maximum number of candidates of each group (known to this device, oldest, newest).
  private static let maxPerKind = 4

  /// The accounts that an identifier leads to at a provider that keeps a secret for them.
  func owners(of identifier: Identifier, claimedWith provider: ProviderName, _ request: RequestContext)
    async throws(FlowError) -> IdentifierOwners
  {
    if let holder = try await holder(of: identifier) { return IdentifierOwners(holder: holder) }
    return IdentifierOwners(claimants: try await claimants(of: identifier, having: provider, request))
  }

  /// The accounts whose forgotten factor, such as a password, may be replaced by a code to the identifier in a recovery
  /// flow.
  ///
  /// Attack: the attacker makes an account that they can also open in another way, claims a stranger's address on it,
  /// and waits until the stranger recovers "their" password there. An account that has verified some other identifier
  /// cannot be recovered by an address that it only claims.
  func recoverable(by identifier: Identifier, in purpose: FlowPurpose, _ request: RequestContext)
    async throws(FlowError) -> IdentifierOwners
  {
    guard let provider = purpose.recoveredProvider else { return .none }
    var owners = try await owners(of: identifier, claimedWith: provider, request)
    owners.claimants.removeAll { !$0.isRecoverable(by: identifier) }
    return owners
  }

  /// The claimants that are considered: those for which this device has passed the provider before, the oldest ones,
  /// and the newest ones.
  ///
  /// Attack: so many claims on an address that the password of its first owner is no longer compared. The oldest claims
  /// always keep their place. A newer claim keeps its place on the device that made it.
  private func claimants(of identifier: Identifier, having provider: ProviderName, _ request: RequestContext)
    async throws(FlowError) -> [Account]
  {
    let ids = try await asking { () async throws(StoreFault) in
      try await store.accounts(claiming: identifier, having: provider, limit: 2 * Self.maxClaims)
    }
    let known = ids.filter { keys.knows(request.device, $0, by: provider) }
    let considered = Set(known.suffix(Self.maxPerKind) + ids.prefix(Self.maxPerKind) + ids.suffix(Self.maxPerKind))
    var accounts: [Account] = []
    for id in ids where considered.contains(id) {
      if let account = try await loadAccount(id) { accounts.append(account) }
    }
    return accounts
  }

  /// The unverified claims of a flow, without those on identifiers that have too many claims.
  ///
  /// Attack: an unlimited number of claims on one address, all of which every password attempt there must search.
  /// - Throws: 403 `email_not_verified` if the account would be left with no identifier.
  func admittedClaims(_ record: FlowRecord, _ request: RequestContext) async throws(FlowError) -> [Identifier] {
    var admitted: [Identifier] = []
    for claimed in record.gathered.claimed where !record.proved.contains(claimed) {
      let claims = try await asking { () async throws(StoreFault) in
        try await store.accounts(claiming: claimed, having: nil, limit: Self.maxClaims)
      }
      if claims.count < Self.maxClaims {
        admitted.append(claimed)
      } else if record.proved.isEmpty, record.account == nil {
        throw request.refusal(
          .emailNotVerified,
          detail: "This address was registered too often without being verified. Verify it with a code.")
      }
    }
    return admitted
  }

  /// The salt for hashes at one address, shared by all accounts that claim it, so that one hash suffices to compare a
  /// password with all of them. The salt is keyed: it cannot be computed outside, and differs for each address. nil for
  /// secrets that belong to no identifier.
  func salt(for provider: any FullProvider, _ capabilities: StepContext) -> [UInt8]? {
    let kinds = provider.descriptor.identifierKinds
    let own = capabilities.identifier ?? capabilities.account?.identifiers.first { kinds.contains($0.kind) }
    guard let own, kinds.contains(own.kind) else { return nil }
    let parts = ["shared salt", provider.descriptor.name.rawValue, own.kind.rawValue, own.value]
    return Array(keys.counterKey(parts.map { Array($0.utf8) }).prefix(16))
  }
}

// MARK: - Judging

extension FlowEngine {
  /// The limits that an attempt is charged against, and the accounts that it may be about. Returns at least one
  /// candidate: without an account if none exists.
  ///
  /// Attack: someone registers an account with another person's address to lock that person out, to get extra attempts
  /// at that person's password, or to pass a policy that would refuse that person. All claimants share one counter, and
  /// the policy judges each account separately.
  func admitClaimants(
    _ provider: any FullProvider, _ input: ProviderInput, _ step: StepRecord, _ policy: ProviderPolicy,
    _ before: FlowMachine, id: FlowID,
    _ request: RequestContext
  ) async throws(FlowError) -> (limits: StepLimits, candidates: [Candidate]) {
    let subject = subject(of: step, policy, before.record, request)
    var accounts: [Account] = []
    for version in step.claimants ?? [] {
      // Skip an account that has lost the address or has changed since the step began.
      guard let account = try await loadAccount(version.id), AccountVersion(account) == version,
        account.identifiers.contains(where: { $0.identifier == step.identifier })
      else { continue }
      accounts.append(account)
    }
    let only = accounts.count == 1 ? accounts[0] : nil
    let limits = try limits(
      policy, subject, facts: facts(before.record, subject: subject, account: only, request), expiredAt: nil, request)
    var candidates: [Candidate] = []
    var refused: FlowError?
    for account in accounts {
      let own = step.of(AccountVersion(account))
      do throws(FlowError) {
        let facts = facts(before.record, subject: subject, account: account, request)
        let also = try await judge(.verify, by: policy, limits, facts: facts, account: account, request)
        candidates.append(
          Candidate(step: own, capabilities: try await makeCapabilities(provider, own, input, before.record, id: id, request), also: also))
      } catch {
        guard case .refused = error else { throw error }
        refused = refused ?? error
      }
    }
    if !candidates.isEmpty { return (limits, candidates) }
    if let refused { throw refused }
    let facts = facts(before.record, subject: subject, account: nil, request)
    let also = try await judge(.verify, by: policy, limits, facts: facts, account: nil, request)
    let nobody = step.of(nil)
    return (
      limits,
      [
        Candidate(
          step: nobody, capabilities: try await makeCapabilities(provider, nobody, input, before.record, id: id, request), also: also)
      ]
    )
  }

  /// Charges an attempt at a step that may be about several accounts.
  ///
  /// A device that has passed the provider for one of the accounts has separate counters, which do not apply to the
  /// other accounts. If all accounts are candidates, the attempt is charged against both sets of counters. If the
  /// shared counters are used up, only the accounts that this device knows are judged.
  func charge(
    _ limits: [ResolvedLimit], _ candidates: [Candidate], _ step: StepRecord, _ policy: ProviderPolicy,
    _ before: FlowMachine,
    _ request: RequestContext
  ) async throws(FlowError) -> (Charged, [Candidate]) {
    let hides = hides(policy, before.record)
    let known = candidates.filter { keys.knows(request.device, $0.step.account, by: policy.provider) }
    guard step.claimants != nil, known.count < candidates.count else {
      return (try await charge(limits, for: .verify, timer: nil, hidesDisabled: hides, request), candidates)
    }
    var subject = subject(of: step, policy, before.record, request)
    subject.isOwnDevice = false
    let strangers = try self.limits(
      policy, subject, facts: facts(before.record, subject: subject, account: nil, request), expiredAt: nil, request
    ).verify
    if known.isEmpty {
      return (try await charge(strangers, for: .verify, timer: nil, hidesDisabled: hides, request), candidates)
    }
    let both = limits + strangers.filter { stranger in !limits.contains { $0.counter == stranger.counter } }
    do throws(FlowError) {
      let charged = try await charge(both, for: .verify, timer: nil, hidesDisabled: hides, request)
      if !charged.isOff { return (charged, candidates) }
      try await settle([charged.settled(.refund, request)], request)
    } catch {
      guard case .refused = error else { throw error }
    }
    return (try await charge(limits, for: .verify, timer: nil, hidesDisabled: hides, request), known)
  }

  /// Lets a provider judge the candidates in turn, until it accepts one or asks for more.
  func ask(
    _ provider: any FullProvider, _ input: ProviderInput, about candidates: [Candidate], with slot: (any SecretHasher)?,
    _ request: RequestContext
  ) async throws(FlowError) -> (StepAnswer, Candidate) {
    var refused: (StepAnswer, Candidate)?
    for candidate in candidates {
      let capabilities = candidate.capabilities.granting(slot)
      let answer = try await fulfil(.submit, of: candidate.step.provider, capabilities, request) { () async throws in
        try await provider.submit(capabilities.context, input)
      }
      switch answer {
      case .refused: break
      // If there are several candidates, the next round of one of them is not shown.
      case .refusedAndAsked(let reason, _) where candidates.count > 1:
        refused = refused ?? (.refused(reason), candidate)
      default: return (answer, candidate)
      }
      refused = refused ?? (answer, candidate)
    }
    guard let refused else { throw request.refusal(.stepNotOpen) }
    return refused
  }
}

extension StepRecord {
  /// A copy that is about this account alone, or about no account if nil.
  fileprivate func of(_ account: AccountVersion?) -> StepRecord {
    var step = StepRecord(
      provider: provider, identifier: identifier, isSkippable: isSkippable, account: account, challenge: challenge,
      state: state)
    step.claimants = account.map { [$0] }
    step.fields = fields
    step.redirectTo = redirectTo
    step.shown = shown
    step.wait = wait
    step.judgedBy = judgedBy
    return step
  }
}

extension Account {
  /// Whether a code to an identifier that the account only claims may recover the account.
  func isRecoverable(by identifier: Identifier) -> Bool {
    identifiers.contains { $0.identifier == identifier } && !identifiers.contains { $0.verifiedAt != nil }
  }
}
