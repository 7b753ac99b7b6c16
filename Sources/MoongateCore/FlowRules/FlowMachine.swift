import MoongateSDK

/// The rules of a flow, as a value: it is told what happened and answers what is to be done. It reads no clock, asks no
/// store and runs no policy; `FlowEngine` does that for it. Its diagram is `flow.mermaid` beside this file.
package struct FlowMachine: Sendable {
  /// What is to be done next.
  package enum Action: Sendable, Equatable {
    /// Ask the policy whether the step at hand applies, and tell `stepApplies`.
    case askWhether(FunctionName)
    /// Wait for the client to begin one of these.
    case offer([ProviderName])
    /// Wait until the person has chosen one of the accounts that claim what they have proved.
    case chooseAccount
    /// Everything that had to be proved is: make the session.
    case complete
  }

  /// What a flow that cannot go on answers.
  package enum Closed: Sendable, Equatable {
    /// 410: its lifetime has passed.
    case expired
    /// 404: gone.
    case gone
    /// 409: complete or failed.
    case over
  }

  package private(set) var record: FlowRecord

  package init(_ record: FlowRecord) { self.record = record }

  /// Why the flow takes no verb any more; nil where it is alive. An expired flow says so until its lifetime has passed
  /// once more, then it never was.
  package func closed(at now: Timestamp) -> Closed? {
    if now >= record.expiresAt {
      return now >= record.expiresAt + (record.expiresAt - record.createdAt) ? .gone : .expired
    }
    // Begun by an older program, under weaker rules.
    if record.basis == nil { return .expired }
    return record.status == .pending ? nil : .over
  }

  /// The step that is due; nil when all are behind.
  package var due: StepRule? { record.due }

  /// What comes next. Call again after each answer.
  package var next: Action {
    if record.accountChoice != nil { return .chooseAccount }
    guard let due else { return .complete }
    if let when = due.when { return .askWhether(when) }
    return .offer(due.choices)
  }

  /// The policy's answer to `askWhether`. A step that applies has no condition any more: it is not asked twice.
  package mutating func stepApplies(_ applies: Bool) {
    guard let due else { return }
    if applies {
      record.steps[record.position] = StepRule(
        choices: due.choices, isSkippable: due.isSkippable, when: nil, requirement: due.requirement,
        isFallback: due.isFallback)
    } else {
      record.position += 1
    }
  }

  /// A step was begun, or its code was sent anew: what was open before is dead.
  package mutating func opened(_ step: StepRecord) { record.step = step }

  /// The open step is about these of the accounts that it could be about; nil where it is no such step.
  package mutating func isAbout(_ claimants: [AccountVersion]?) { record.step?.claimants = claimants }

  /// The open step asks for something more, leads to another site, or waits.
  /// - Parameters:
  ///   - shown: what the person sees beside the fields, sealed.
  ///   - wait: when the step may be polled, where it waits.
  ///   - state: what its provider wants back, sealed.
  ///   - judged: what a try was judged by before it asked; nil where it is asked for the first time.
  package mutating func waits(
    for fields: [InputField]?, showing shown: SealedBytes? = nil, at site: String?, polling wait: StepWait? = nil,
    state: [UInt8],
    judgedBy judged: StoredRecord.Judged? = nil
  ) {
    record.step?.fields = fields
    record.step?.shown = shown
    record.step?.redirectTo = site
    record.step?.returned = nil
    record.step?.wait = wait
    record.step?.state = state
    record.step?.judgedBy = judged
  }

  /// Another site has posted something with the person; nil: it was taken.
  package mutating func holds(_ returned: HeldReturn?) { record.step?.returned = returned }

  /// A poll of the waiting step is under way.
  package mutating func polled(at now: Timestamp) {
    let wait = record.step?.wait?.polled(at: now)
    record.step?.wait = wait
  }

  /// The record was stored as it is: the next change is made from the stored version.
  package mutating func stored() { record.version += 1 }

  /// Another session of the same account drives the flow from now on.
  package mutating func continues(inSession session: String) { record.startedIn = session }

  /// The open step has ended without a proof: the person begins it again, or another one.
  package mutating func closedStep() { record.step = nil }

  /// Something is to be handed over when the flow completes.
  package mutating func gathers(_ change: (inout PendingProofs) -> Void) { change(&record.gathered) }

  /// What the provider tells policies of its step, which has passed.
  package mutating func tells(_ facts: [String: String], of provider: ProviderName) {
    record.tells(facts, of: provider)
  }

  /// The account that the flow makes has been counted by the provider's limits.
  package mutating func countsRegistration(by provider: ProviderName) {
    record.registered = (record.registered ?? []).union([provider])
  }

  /// The core, and nobody else, has found that the open step was proved (security.md 19).
  ///
  /// A step that proves an identifier which is new to the account is kept in `ProofBasis.introduced` and is no factor.
  /// So are the steps that passed before the account was known: what they proved was nobody's.
  package mutating func passed(_ proof: PassedProof) {
    var basis = record.basis ?? ProofBasis(epoch: nil)
    if record.account == nil, let account = proof.account {
      record.account = account.id
      basis.epoch = account.epoch
      basis.introduced += record.passed
      record.passed = []
      // Attack: the attacker proves a number of their own, then the victim's password: the number would be the victim's
      // account's.
      record.proved = []
    }
    if record.account != nil, !proof.proved.isEmpty, proof.held.isEmpty {
      basis.introduced.append(proof.step)
    } else if proof.isFactor {
      record.passed.append(proof.step)
    }
    basis.held += proof.held
    basis.holder = proof.holder ?? basis.holder
    record.basis = basis
    // What is proved once more is not held twice.
    record.proved = record.proved.filter { !proof.proved.contains($0) } + proof.proved
    record.step = nil
    record.position += 1
  }

  /// The account joins another one by an identifier that is new to it. What introduced the identifier proves what the
  /// other account holds, so there it is a factor.
  package mutating func joins(_ account: AccountVersion) {
    record.passed = record.basis?.introduced ?? []
    record.account = account.id
    record.basis?.epoch = account.epoch
  }

  /// What was proved is claimed by several accounts.
  package mutating func asks(toChoose choice: AccountChoice) { record.accountChoice = choice }

  /// The person has chosen one of them: what was proved is what it claims.
  package mutating func chose(_ account: AccountVersion, by identifier: Identifier) {
    record.account = account.id
    record.basis?.epoch = account.epoch
    record.basis?.held.append(identifier)
    record.accountChoice = nil
  }

  /// The step at hand was left out.
  /// - Returns: false where it may not be.
  package mutating func skipped() -> Bool {
    guard let due, due.isSkippable, record.accountChoice == nil else { return false }
    record.step = nil
    record.position += 1
    return true
  }

  /// A policy wants another provider passed as well, right after the step that was just passed.
  package mutating func requireNext(_ provider: ProviderName) {
    guard !hasPassed(provider), !record.steps.dropFirst(record.position).contains(where: { $0.isOwed(provider) }) else {
      return
    }
    record.steps.insert(StepRule(choices: [provider], isSkippable: false, when: nil), at: record.position)
  }

  /// All steps are behind, and `accounts.lua` requires another of this account.
  package mutating func require(_ choices: [ProviderName], _ requirement: AccountStep) {
    record.steps.append(StepRule(choices: choices, isSkippable: false, when: nil, requirement: requirement))
  }

  /// Whether the provider was passed in this flow.
  package func hasPassed(_ provider: ProviderName) -> Bool { record.passed.contains { $0.provider == provider } }

  /// The step after the one at hand, where it has one choice and no condition.
  package var certainNext: ProviderName? {
    guard record.position + 1 < record.steps.count else { return nil }
    let rule = record.steps[record.position + 1]
    return rule.when == nil && rule.choices.count == 1 ? rule.choices[0] : nil
  }

  /// The flow is complete.
  /// - Parameters:
  ///   - account: as it is from now on.
  ///   - next: nil where an app takes over: the address that it goes to holds the code, which is told once.
  ///   - code: what its app redeems, where it has one.
  package mutating func completed(account: AccountVersion, isNew: Bool, next: String?, code: AppCode? = nil) {
    record.appCode = code
    record.status = .complete
    record.step = nil
    record.account = account.id
    record.basis = ProofBasis(epoch: account.epoch)
    record.isNewAccount = isNew
    record.completedNext = next
    record.close()
  }

  /// The app has its session: the code is spent.
  package mutating func redeemed() { record.appCode = nil }

  /// The flow can lead nowhere any more.
  package mutating func failed() {
    record.status = .failed
    record.close()
    record.step = nil
  }
}

extension StepRule {
  /// Whether this very provider has to be passed here, come what may.
  fileprivate func isOwed(_ provider: ProviderName) -> Bool { choices == [provider] && !isSkippable && when == nil }
}
