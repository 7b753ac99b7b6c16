import MoongateCore
import MoongateSDK

// Passing a step. Each rule mirrors one of the engine, in `CodeStep`, `ProviderStep` and `StepSettlement`.

extension FlowSearch {
  /// The possible results of `send` or `verify`.
  private enum Answers {
    /// The result depends on an undecided fact: the situations with the fact decided.
    case branches([FlowSituation])
    /// Nil: allow; otherwise the provider that has to be passed as well. Refusals are left out.
    case verdicts([ProviderName?])
  }

  /// The situations that follow when the current step is passed with one of its choices.
  func pass(_ provider: ProviderName, _ situation: FlowSituation, _ flow: FlowDefinition) throws(ProofBudget.Exhausted)
    -> [FlowSituation]
  {
    guard let implementation = providers[provider], let policy = generation.policies[provider] else { return [] }
    var ways: [FlowSituation] = []
    for pass in passes(implementation, situation, flow) {
      var before = situation
      before.facts = pass.facts
      if implementation is any CodeProvider, let send = policy.send {
        switch try ask(send, .send, provider, pass, before, knowsAccount: pass.knowsAccount, flow) {
        case .branches(let branches):
          ways += branches
          continue
        case .verdicts(let verdicts):
          // The additional provider comes first, if the flow already knows the account.
          for also in verdicts.compactMap(\.self) where situation.knowsAccount {
            ways += factsAllowing(also, before).map { facts in
              var way = before
              way.facts = facts
              way.hasBegun = true
              way.requireNext(also, by: functions.location(send) ?? flow.location)
              return way
            }
          }
          guard verdicts.contains(nil) else { continue }
        }
      }
      ways += try verified(provider, policy, pass, before, flow)
    }
    return ways
  }

  /// The situations after the step is passed and `verify` has allowed it.
  private func verified(
    _ provider: ProviderName, _ policy: ProviderPolicy, _ pass: StepPass, _ before: FlowSituation,
    _ flow: FlowDefinition
  ) throws(ProofBudget.Exhausted) -> [FlowSituation] {
    guard let verify = policy.verify else { return [passed(provider, pass, before, flow)] }
    let knowsAccount = pass.knowsAccount && pass.countsAccount
    switch try ask(verify, .verify, provider, pass, before, knowsAccount: knowsAccount, flow) {
    case .branches(let branches): return branches
    case .verdicts(let verdicts):
      var ways: [FlowSituation] = []
      for verdict in verdicts {
        guard let also = verdict else {
          ways.append(passed(provider, pass, before, flow))
          continue
        }
        for facts in factsAllowing(also, before) where knowsAccount {
          var way = passed(provider, pass, before, flow)
          way.facts = facts
          way.requireNext(also, by: functions.location(verify) ?? flow.location)
          ways.append(way)
        }
      }
      return ways
    }
  }

  private func passed(_ provider: ProviderName, _ pass: StepPass, _ before: FlowSituation, _ flow: FlowDefinition)
    -> FlowSituation
  {
    var way = before
    let here = location(before, flow)
    way.hasBegun = true
    way.knowsAccount = pass.knowsAccount
    way.proved += pass.proves
    if pass.sets { way.set.append(provider) }
    var proof = PassedProof(
      PassedStep(provider: provider, at: Moment.now), account: pass.knowsAccount ? Moment.version : nil)
    proof.proved = pass.proves.map { Identifier(kind: $0, value: "", display: "") }
    proof.held = pass.knowsAccount && pass.isHeld ? proof.proved : []
    proof.isFactor = pass.isFactor
    way.machine.passed(proof)
    if let confirmedBy = pass.confirmedBy { way.requireNext(confirmedBy, by: here) }
    way.events.append(
      !pass.isFactor
        ? .chose(provider, at: here) : pass.isHeld ? .passed(provider, at: here) : .introduced(provider, at: here))
    return way
  }

  /// More than five parameters: the facts of one call of the function.
  private func ask(
    _ function: FunctionName, _ action: LimitAction, _ provider: ProviderName, _ pass: StepPass,
    _ before: FlowSituation, knowsAccount: Bool,
    _ flow: FlowDefinition
  ) throws(ProofBudget.Exhausted) -> Answers {
    var moment = moment(before, flow)
    moment.action = action
    moment.provider = provider
    moment.identifier = pass.identifier ?? before.proved.last
    moment.knowsAccount = knowsAccount
    moment.isCreation = false
    switch try functions.verdict(function, moment, before.facts) {
    case .depends(let fact): return .branches(branches(before, on: fact))
    case .answers(let answers, _):
      let done = Set(before.passed)
      return .verdicts(
        answers.compactMap { answer -> ProviderName?? in
          switch answer {
          case .allow: .some(nil)
          case .requireAlso(let provider): .some(done.contains(provider) ? nil : provider)
          case .deny, .fault: nil
          }
        })
    }
  }

  /// The facts that allow the account to pass the provider, one set for each possibility.
  func factsAllowing(_ provider: ProviderName, _ situation: FlowSituation) -> [KnownFacts] {
    factors(provider).compactMap { situation.facts.assuming($0, true) }
  }

  /// The facts any of which allows an account to pass the provider, as in `AccountChecks.hasFactor`.
  func factors(_ provider: ProviderName) -> [BooleanFact] {
    guard let implementation = providers[provider], generation.policies[provider] != nil else { return [] }
    if implementation.keepsRecords { return [.keeps(provider)] }
    // A federated provider stores only the identity itself.
    let kinds = implementation.descriptor.identifierKinds
    return implementation is any CodeProvider ? kinds.map(BooleanFact.verified) : [.verified(.federated)]
  }
}

extension KnownFacts {
  /// The facts with one more decided; nil if it contradicts them.
  func assuming(_ fact: BooleanFact, _ value: Bool) -> Self? {
    var facts = self
    return facts.assume(fact, value) ? facts : nil
  }
}
