import MoongateCore
import MoongateSDK

/// One way in which a provider can pass a step.
struct StepPass {
  /// With what has to be true for it.
  var facts: KnownFacts
  /// Whether the flow knows the account once it has passed.
  var knowsAccount: Bool
  /// The kind of the identifier that functions are told of.
  var identifier: IdentifierKind?
  /// The kinds of the identifiers that it proves.
  var proves: [IdentifierKind] = []
  /// Whether the account, where it is known, has what is proved. What is new to it is no factor.
  var isHeld = true
  /// False where a secret was chosen.
  var isFactor = true
  /// Whether it sets a secret.
  var sets = false
  /// What the account has to pass next, since what was proved leads to it and does not open it.
  var confirmedBy: ProviderName?
  /// Whether `verify` is told of the account.
  var countsAccount = true
}

extension FlowSearch {
  /// The ways in which the provider can pass the step at hand.
  func passes(_ provider: any Provider, _ situation: FlowSituation, _ flow: FlowDefinition) -> [StepPass] {
    let purpose = flow.purpose
    let kinds = provider.descriptor.identifierKinds
    if situation.machine.due?.requirement == .enroll {
      return [StepPass(facts: situation.facts, knowsAccount: true, isFactor: false, sets: true)]
    }
    if purpose.step(of: provider.descriptor.name) == .set { return choosing(provider, purpose, situation) }
    if provider is any CodeProvider {
      return situation.knowsAccount ? toOwn(kinds, purpose, situation) : toNamed(provider, purpose, situation, flow)
    }
    if kinds.contains(.federated), purpose.connectsSite, situation.knowsAccount {
      // New to the account, and so no proof of it.
      return [StepPass(facts: situation.facts, knowsAccount: true, proves: [.federated], isHeld: false)]
    }
    if kinds.contains(.federated) { return byFederation(kinds, situation) }
    return bySecret(provider, kinds, situation)
  }

  /// A secret is chosen: at registration, or by somebody who has proved enough just before (`demandProof`).
  private func choosing(_ provider: any Provider, _ purpose: FlowPurpose, _ situation: FlowSituation) -> [StepPass] {
    var pass = StepPass(facts: situation.facts, knowsAccount: situation.knowsAccount, sets: true)
    switch purpose {
    case .register:
      guard !situation.knowsAccount else { return [] }
      pass.identifier = provider.descriptor.identifierKinds.first
    case .factor(_, .set): pass.isFactor = false
    default:
      guard situation.knowsAccount, !situation.passed.isEmpty else { return [] }
      // Setting is not passing. Only who makes an account by a password has nothing else to have passed.
      pass.isFactor = false
    }
    return [pass]
  }

  /// A code to what the account has, or to what it is to be given.
  private func toOwn(_ kinds: [IdentifierKind], _ purpose: FlowPurpose, _ situation: FlowSituation) -> [StepPass] {
    kinds.compactMap { kind in
      if kind == purpose.newIdentifier {
        // Attack: a thief proves a number of their own. It is no proof of the account's.
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

  /// A code to what somebody names who is not known yet.
  private func toNamed(
    _ provider: any Provider, _ purpose: FlowPurpose, _ situation: FlowSituation, _ flow: FlowDefinition
  ) -> [StepPass] {
    // A flow that only makes accounts sends nothing to what an account holds, unless its policy hides who has one.
    let descriptor = provider.descriptor
    let sendsToKnown = flow.account != .new || generation.policies[descriptor.name]?.unknownAccount == .conceal
    return descriptor.identifierKinds.flatMap { kind -> [StepPass] in
      var passes: [StepPass] = []
      if sendsToKnown, let facts = situation.facts.assuming(.verified(kind), true) {
        passes.append(StepPass(facts: facts, knowsAccount: true, identifier: kind, proves: [kind]))
      }
      // Several accounts may claim the address, so `verify` is told of none.
      if let recovered = purpose.recoveredProvider, let facts = recoverable(kind, by: recovered, situation.facts) {
        passes.append(
          StepPass(facts: facts, knowsAccount: true, identifier: kind, proves: [kind], countsAccount: false))
      }
      // Nobody is told the code to what no account holds, where accounts have to be there.
      if flow.account != .existing {
        passes.append(StepPass(facts: situation.facts, knowsAccount: false, identifier: kind, proves: [kind]))
      }
      return passes
    }
  }

  /// An account that only claims the address, and holds nothing verified, is given to who proves it.
  private func recoverable(_ kind: IdentifierKind, by provider: ProviderName, _ facts: KnownFacts) -> KnownFacts? {
    guard kind == .email, providers[provider]?.descriptor.identifierKinds.contains(kind) ?? false else { return nil }
    var facts: KnownFacts? = facts.assuming(.holds(.email), true)?.assuming(.keeps(provider), true)
    for kind in IdentifierKind.allCases { facts = facts?.assuming(.verified(kind), false) }
    return facts
  }

  /// An identity elsewhere: the account's own, or one whose address the account has verified; else it may be nobody's.
  private func byFederation(_ kinds: [IdentifierKind], _ situation: FlowSituation) -> [StepPass] {
    var passes = [BooleanFact.verified(.federated)].compactMap { situation.facts.assuming($0, true) }
    if kinds.contains(.email) { passes += [situation.facts.assuming(.verified(.email), true)].compactMap(\.self) }
    // Whose identity it is the other site tells, after `verify` was asked.
    let known = passes.map {
      StepPass(
        facts: $0, knowsAccount: true, identifier: nil, proves: [.federated], countsAccount: situation.knowsAccount)
    }
    if situation.knowsAccount { return known }
    let confirmed = kinds.contains(.email) ? confirmations(situation) : []
    return known + confirmed + [
      StepPass(facts: situation.facts, knowsAccount: false, identifier: nil, proves: [.federated])
    ]
  }

  /// The identity is nobody's and comes with the account's address, for which the other site does not vouch: the
  /// account's own proof of the address is asked for next (`FlowEngine.confirmation`).
  private func confirmations(_ situation: FlowSituation) -> [StepPass] {
    let able = providers.all.filter { provider in
      let kinds = provider.descriptor.identifierKinds
      return generation.policies[provider.descriptor.name] != nil && kinds.contains(.email)
        && !kinds.contains(.federated)
    }
    let facts = situation.facts.assuming(.verified(.email), true)
    let chosen = able.first { $0 is any CodeProvider }.map { [$0] } ?? able
    // Of secrets beside the address, the first that the account has.
    return chosen.compactMap { provider in
      guard let facts = provider.keepsRecords ? facts?.assuming(.keeps(provider.descriptor.name), true) : facts else {
        return nil
      }
      return StepPass(
        facts: facts, knowsAccount: true, proves: [.federated], isHeld: false, confirmedBy: provider.descriptor.name,
        countsAccount: false)
    }
  }

  /// A secret, or whatever else a provider judges by itself.
  private func bySecret(_ provider: any Provider, _ kinds: [IdentifierKind], _ situation: FlowSituation) -> [StepPass] {
    let name = provider.descriptor.name
    let isKept = provider.descriptor.hashesSecrets || generation.flow(for: .factor(name, .set)) != nil
    let known: [KnownFacts?]
    if situation.knowsAccount {
      known = [isKept ? situation.facts.assuming(.keeps(name), true) : situation.facts]
    } else if isKept {
      known =
        kinds.map { situation.facts.assuming(.holds($0), true)?.assuming(.keeps(name), true) }
        + (provider.descriptor.role.contains(.findsAccount) ? [situation.facts.assuming(.keeps(name), true)] : [])
    } else {
      known = kinds.map { situation.facts.assuming(.verified($0), true) }
    }
    var passes = known.compactMap(\.self).map { StepPass(facts: $0, knowsAccount: true, identifier: kinds.first) }
    // What needs no record may prove nobody, or somebody new.
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
