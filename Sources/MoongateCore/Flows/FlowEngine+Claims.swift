import MoongateSDK

// Identifiers that accounts claim and nobody has proved. They belong to nobody: whoever claims one first, or last,
// takes nothing from the others (account-security.md section 3, rule 6).

/// The accounts that an identifier leads to while the flow does not know yet who the person is.
struct IdentifierOwners: Sendable {
  /// The account that holds it verified.
  var holder: Account?
  /// Where nobody does: the accounts that only claim it, oldest first.
  var claimants: [Account] = []

  static let none = IdentifierOwners()

  /// The account whose facts a policy sees; nil where it could be one of several.
  var only: Account? { holder ?? (claimants.count == 1 ? claimants[0] : nil) }
  var isEmpty: Bool { holder == nil && claimants.isEmpty }
}

/// An account that a step may be about.
struct Candidate: Sendable {
  /// The step as if it were about this account alone.
  let step: StepRecord
  let lent: StepCapabilities
  /// What its policy demands besides.
  let also: ProviderName?
}

extension FlowEngine {
  /// The most claims that an identifier can have. Beyond them it has to be proved: looking through them must stay
  /// cheap.
  static let mostClaims = 64
  /// The most candidates of each sort.
  private static let mostOfASort = 4

  /// The accounts that an identifier leads to by a provider that keeps a secret for them.
  func owners(of identifier: Identifier, claimedWith provider: ProviderName, _ request: RequestContext)
    async throws(FlowError) -> IdentifierOwners
  {
    if let holder = try await holder(of: identifier) { return IdentifierOwners(holder: holder) }
    return IdentifierOwners(claimants: try await claimants(of: identifier, having: provider, request))
  }

  /// The accounts whose forgotten factor, such as a password, a code to the identifier may replace in a flow that
  /// recovers it.
  ///
  /// Attack: someone makes an account that they can open otherwise, claims a stranger's address on it, and waits until
  /// the stranger recovers "their" password there. An account that holds something else verified is not given to
  /// whoever proves an address that it only claims.
  func recoverable(by identifier: Identifier, in purpose: FlowPurpose, _ request: RequestContext)
    async throws(FlowError) -> IdentifierOwners
  {
    guard let provider = purpose.recoveredProvider else { return .none }
    var owners = try await owners(of: identifier, claimedWith: provider, request)
    owners.claimants.removeAll { !$0.isRecoverable(by: identifier) }
    return owners
  }

  /// The claimants that are considered: those for which this device has passed the provider before, the oldest, and the
  /// newest.
  ///
  /// Attack: so many claims on an address that its first owner is not among those whose password is compared any more.
  /// The oldest keep their place whatever comes after them; a newer one keeps it on the device on which it was made.
  private func claimants(of identifier: Identifier, having provider: ProviderName, _ request: RequestContext)
    async throws(FlowError) -> [Account]
  {
    let ids = try await asking { () async throws(StoreFault) in
      try await store.accounts(claiming: identifier, having: provider, limit: 2 * Self.mostClaims)
    }
    let known = ids.filter { keys.knows(request.device, $0, by: provider) }
    let considered = Set(known.suffix(Self.mostOfASort) + ids.prefix(Self.mostOfASort) + ids.suffix(Self.mostOfASort))
    var accounts: [Account] = []
    for id in ids where considered.contains(id) {
      if let account = try await loadAccount(id) { accounts.append(account) }
    }
    return accounts
  }

  /// What a flow claims and has not proved, without the claims that an identifier has too many of.
  ///
  /// Attack: claims on one address without end, which every try at a password there looks through.
  /// - Throws: 403 `email_not_verified` where nothing would be left of a person but such a claim.
  func admittedClaims(_ record: FlowRecord, _ request: RequestContext) async throws(FlowError) -> [Identifier] {
    var admitted: [Identifier] = []
    for claimed in record.gathered.claimed where !record.proved.contains(claimed) {
      let claims = try await asking { () async throws(StoreFault) in
        try await store.accounts(claiming: claimed, having: nil, limit: Self.mostClaims)
      }
      if claims.count < Self.mostClaims {
        admitted.append(claimed)
      } else if record.proved.isEmpty, record.account == nil {
        throw request.refusal(
          .emailNotVerified,
          detail: "This address was registered too often without being verified. Verify it by a code.")
      }
    }
    return admitted
  }

  /// The salt of hashes that one address shares with all who claim it, so that a password is compared with all of
  /// theirs for the price of one. Keyed: nobody outside can know it, and no two addresses share one. nil for secrets
  /// that go with no identifier.
  func salt(for provider: any FullProvider, _ lent: StepContext) -> [UInt8]? {
    let kinds = provider.descriptor.identifierKinds
    let own = lent.identifier ?? lent.account?.identifiers.first { kinds.contains($0.kind) }
    guard let own, kinds.contains(own.kind) else { return nil }
    let parts = ["shared salt", provider.descriptor.name.rawValue, own.kind.rawValue, own.value]
    return Array(keys.counterKey(parts.map { Array($0.utf8) }).prefix(16))
  }
}

// MARK: - Judging

extension FlowEngine {
  /// What a try at a step is charged against, and the accounts that it may be about: at least one candidate, of nobody
  /// where there is no account.
  ///
  /// Attack: an account that somebody makes with the address of another, to lock the other out, to get tries of their
  /// own at the other's password, or to pass a policy that would refuse the other. All claimants have one counter, and
  /// each is judged by the policy for itself.
  func admitClaimants(
    _ provider: any FullProvider, _ input: ProviderInput, _ step: StepRecord, _ policy: ProviderPolicy,
    _ before: FlowMachine, id: FlowID,
    _ request: RequestContext
  ) async throws(FlowError) -> (limits: StepLimits, candidates: [Candidate]) {
    let subject = subject(of: step, policy, before.record, request)
    var accounts: [Account] = []
    for version in step.claimants ?? [] {
      // One who has lost the address since, or has changed, is not meant any more.
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
          Candidate(step: own, lent: try await lend(provider, own, input, before.record, id: id, request), also: also))
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
          step: nobody, lent: try await lend(provider, nobody, input, before.record, id: id, request), also: also)
      ]
    )
  }

  /// Charges a try at a step that several accounts may be about.
  ///
  /// A device that has passed the provider for one of them has counters of its own, and those are no tries at the
  /// others. Where all are meant, a try is charged against both; where strangers have used up theirs, the device's own
  /// accounts are still judged.
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

  /// Lets a provider judge one candidate after the other, until it accepts one or asks for more.
  func ask(
    _ provider: any FullProvider, _ input: ProviderInput, about candidates: [Candidate], with slot: (any SecretHasher)?,
    _ request: RequestContext
  ) async throws(FlowError) -> (StepAnswer, Candidate) {
    var refused: (StepAnswer, Candidate)?
    for candidate in candidates {
      let lent = candidate.lent.lending(slot)
      let answer = try await fulfil(.submit, of: candidate.step.provider, lent, request) { () async throws in
        try await provider.submit(lent.context, input)
      }
      switch answer {
      case .refused: break
      // The next round of one account is not shown where several may be meant.
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
  /// The step as if it were about this account alone; nil: about nobody.
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
  /// Whether a code to an identifier that it only claims may give it to whoever has the code.
  func isRecoverable(by identifier: Identifier) -> Bool {
    identifiers.contains { $0.identifier == identifier } && !identifiers.contains { $0.verifiedAt != nil }
  }
}
