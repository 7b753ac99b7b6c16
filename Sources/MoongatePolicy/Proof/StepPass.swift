import MoongateCore
import MoongateSDK

/// One possibility for a provider to pass a step.
struct StepPass {
  /// The facts that it requires.
  var facts: KnownFacts
  /// Whether the flow knows the account afterwards.
  var knowsAccount: Bool
  /// The kind of the identifier that functions receive.
  var identifier: IdentifierKind?
  /// The kinds of the identifiers that it verifies.
  var proves: [IdentifierKind] = []
  /// Whether a known account already has the verified identifier. A new one is not a factor.
  var isHeld = true
  /// False if a secret was set.
  var isFactor = true
  /// Whether it sets a secret.
  var sets = false
  /// The provider that the account has to pass next, because the verified identity only leads to the account without
  /// opening it.
  var confirmedBy: ProviderName?
  /// Whether `verify` receives the facts of the account.
  var countsAccount = true
}

extension FlowSearch {
  /// The possibilities for the provider to pass the current step.
  func passes(_ provider: any Provider, _ situation: FlowSituation, _ flow: FlowDefinition) -> [StepPass] {
    let purpose = flow.purpose
    let kinds = provider.descriptor.identifierKinds
    if situation.machine.due?.requirement == .enroll {
      return [StepPass(facts: situation.facts, knowsAccount: true, isFactor: false, sets: true)]
    }
    if purpose.step(of: provider.descriptor.name) == .set { return choosing(kinds, purpose, situation) }
    if provider is any CodeProvider {
      return situation.knowsAccount ? toOwn(kinds, purpose, situation) : toNamed(provider, purpose, situation, flow)
    }
    if kinds.contains(.federated), purpose.connectsSite, situation.knowsAccount {
      // The identity is new to the account, so it does not verify the account.
      return bySite(kinds, StepPass(facts: situation.facts, knowsAccount: true, proves: [.federated], isHeld: false))
    }
    if kinds.contains(.federated) { return byFederation(kinds, situation) }
    return bySecret(provider, kinds, situation)
  }

  /// A secret is set at registration, or by a user with a recent proof (`demandProof`).
  private func choosing(_ kinds: [IdentifierKind], _ purpose: FlowPurpose, _ situation: FlowSituation) -> [StepPass] {
    var pass = StepPass(facts: situation.facts, knowsAccount: situation.knowsAccount, sets: true)
    switch purpose {
    case .register:
      guard !situation.knowsAccount else { return [] }
      // A registration by each kind, because functions may read the identifier.
      if !kinds.isEmpty {
        return kinds.map { kind in
          pass.identifier = kind
          return pass
        }
      }
    case .factor(_, .set): pass.isFactor = false
    default:
      guard situation.knowsAccount, !situation.passed.isEmpty else { return [] }
      // Setting a secret does not pass a step, except in a registration with a password, where nothing else can be
      // passed.
      pass.isFactor = false
    }
    return [pass]
  }

  /// A code is sent to an identifier of the account, or to its new identifier.
  private func toOwn(_ kinds: [IdentifierKind], _ purpose: FlowPurpose, _ situation: FlowSituation) -> [StepPass] {
    kinds.compactMap { kind in
      if kind == purpose.newIdentifier {
        // Attack: a thief verifies their own phone number. This does not verify the account.
        return StepPass(
          facts: situation.facts, knowsAccount: true, identifier: kind, proves: [kind], isHeld: false,
          countsAccount: false)
      }
      var facts = situation.facts
      let acceptsClaimed =
        purpose.accepts(.sample(kind, isVerified: false)) && situation.machine.due?.requirement == nil
      switch (purpose.accepts(.sample(kind, isVerified: true)), acceptsClaimed) {
      case (true, true): guard facts.assume(.holds(kind), true) else { return nil }
      case (true, false): guard facts.assume(.verified(kind), true) else { return nil }
      case (false, _): guard facts.assume(.verified(kind), false), facts.assume(.holds(kind), true) else { return nil }
      }
      return StepPass(facts: facts, knowsAccount: true, identifier: kind, proves: [kind])
    }
  }

  /// A code is sent to an identifier that an unknown user enters.
  private func toNamed(
    _ provider: any Provider, _ purpose: FlowPurpose, _ situation: FlowSituation, _ flow: FlowDefinition
  ) -> [StepPass] {
    // A flow that only creates accounts sends nothing to existing ones, unless the policy conceals which exist.
    let descriptor = provider.descriptor
    let sendsToKnown = flow.account != .new || generation.policies[descriptor.name]?.unknownAccount == .conceal
    return descriptor.identifierKinds.flatMap { kind -> [StepPass] in
      var passes: [StepPass] = []
      if sendsToKnown, let facts = situation.facts.assuming(.verified(kind), true) {
        passes.append(StepPass(facts: facts, knowsAccount: true, identifier: kind, proves: [kind]))
      }
      // Several accounts may claim the address, so `verify` receives no account.
      if let recovered = purpose.recoveredProvider, let facts = recoverable(kind, by: recovered, situation.facts) {
        passes.append(
          StepPass(facts: facts, knowsAccount: true, identifier: kind, proves: [kind], countsAccount: false))
      }
      // If an existing account is required, no code is sent to an identifier without one.
      if flow.account != .existing {
        passes.append(StepPass(facts: situation.facts, knowsAccount: false, identifier: kind, proves: [kind]))
      }
      return passes
    }
  }

  /// An account that only claims the address and has no verified identifier is given to the user who verifies the
  /// address.
  private func recoverable(_ kind: IdentifierKind, by provider: ProviderName, _ facts: KnownFacts) -> KnownFacts? {
    let kinds = providers[provider]?.descriptor.identifierKinds ?? []
    guard kind == .email, kinds.contains(kind) else { return nil }
    var facts: KnownFacts? = facts.assuming(.holds(.email), true)?.assuming(.keeps(provider), true)
    // The account belongs to its name.
    if kinds.contains(.name) { facts = facts?.assuming(.holds(.name), false) }
    for kind in IdentifierKind.allCases { facts = facts?.assuming(.verified(kind), false) }
    return facts
  }

  /// A federated identity: one of the account, one whose address the account has verified, or one without an account.
  private func byFederation(_ kinds: [IdentifierKind], _ situation: FlowSituation) -> [StepPass] {
    var passes = [BooleanFact.verified(.federated)].compactMap { situation.facts.assuming($0, true) }
    if kinds.contains(.email) { passes += [situation.facts.assuming(.verified(.email), true)].compactMap(\.self) }
    // The other site identifies the user only after `verify` was called.
    let known = passes.flatMap {
      bySite(
        kinds,
        StepPass(
          facts: $0, knowsAccount: true, identifier: nil, proves: [.federated], countsAccount: situation.knowsAccount))
    }
    if situation.knowsAccount { return known }
    let confirmed = kinds.contains(.email) ? confirmations(situation) : []
    let unknown = StepPass(facts: situation.facts, knowsAccount: false, identifier: nil, proves: [.federated])
    return known + confirmed + bySite(kinds, unknown)
  }

  /// The pass with the identity alone, and the one with an address too, if the site may be authoritative for some.
  ///
  /// Attack on the proof: `admit` refuses other domains, and is believed to refuse everybody who comes by a site.
  private func bySite(_ kinds: [IdentifierKind], _ pass: StepPass) -> [StepPass] {
    guard kinds.contains(.email) else { return [pass] }
    var withAddress = pass
    withAddress.proves.append(.email)
    return [pass, withAddress]
  }

  /// The identity belongs to no account, and the other site does not vouch for its email address, which belongs to this
  /// account. The account's own proof of the address is required next (`ProviderStep.confirmation`).
  private func confirmations(_ situation: FlowSituation) -> [StepPass] {
    let able = providers.all.filter { provider in
      let kinds = provider.descriptor.identifierKinds
      return generation.policies[provider.descriptor.name] != nil && kinds.contains(.email)
        && !kinds.contains(.federated)
    }
    let facts = situation.facts.assuming(.verified(.email), true)
    let chosen = able.first { $0 is any CodeProvider }.map { [$0] } ?? able
    // Of secrets next to the address, the first one that the account has.
    return chosen.compactMap { provider in
      guard let facts = provider.keepsRecords ? facts?.assuming(.keeps(provider.descriptor.name), true) : facts else {
        return nil
      }
      return StepPass(
        facts: facts, knowsAccount: true, proves: [.federated], isHeld: false, confirmedBy: provider.descriptor.name,
        countsAccount: false)
    }
  }

  /// A secret, or any other proof that the provider verifies itself.
  private func bySecret(_ provider: any Provider, _ kinds: [IdentifierKind], _ situation: FlowSituation) -> [StepPass] {
    let name = provider.descriptor.name
    let isKept = provider.descriptor.hashesSecrets || generation.flow(for: .factor(name, .set)) != nil
    // Functions may read the identifier, so each kind is a possibility of its own.
    let named: [IdentifierKind?] = kinds.isEmpty ? [nil] : kinds
    let known: [(identifier: IdentifierKind?, facts: KnownFacts?)]
    if situation.knowsAccount {
      known = named.map { ($0, isKept ? situation.facts.assuming(.keeps(name), true) : situation.facts) }
    } else if isKept {
      known =
        kinds.map { ($0, situation.facts.assuming(.holds($0), true)?.assuming(.keeps(name), true)) }
        + (provider.descriptor.role.contains(.findsAccount)
          ? [(kinds.first, situation.facts.assuming(.keeps(name), true))] : [])
    } else {
      known = kinds.map { ($0, situation.facts.assuming(.verified($0), true)) }
    }
    var passes = known.compactMap { identifier, facts in
      facts.map { StepPass(facts: $0, knowsAccount: true, identifier: identifier) }
    }
    // A proof that needs no record may come from a user without an account.
    if !situation.knowsAccount, !isKept {
      passes.append(
        StepPass(
          facts: situation.facts, knowsAccount: false, identifier: kinds.first, proves: kinds.first.map { [$0] } ?? []))
    }
    return passes
  }
}

extension HeldIdentifier {
  /// Any identifier of the kind.
  static func sample(_ kind: IdentifierKind, isVerified: Bool) -> Self {
    HeldIdentifier(
      identifier: Identifier(kind: kind, value: "", display: ""), verifiedAt: isVerified ? Moment.now : nil)
  }
}
