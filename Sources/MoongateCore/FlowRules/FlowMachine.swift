import MoongateSDK

/// The rules of a flow as a value type. It has a state (`State`), receives events by its methods, and returns the next
/// action. It reads no clock, store or policy; `FlowEngine` does that. Its diagram is `flow.mermaid` beside this file.
package struct FlowMachine: Sendable {
  /// The next action.
  package enum Action: Sendable, Equatable {
    /// Ask the policy whether the current step applies, and call `stepApplies`.
    case askWhether(FunctionName)
    /// Wait for the client to begin one of these.
    case offer([ProviderName])
    /// Wait until the user has chosen one of the accounts that claim the verified identifier.
    case chooseAccount
    /// All steps are done: create the session.
    case complete
  }

  /// Why a flow cannot continue.
  package enum Closed: Sendable, Equatable {
    /// 410: its lifetime has ended.
    case expired
    /// 404: no longer known.
    case gone
    /// 409: complete or failed.
    case over
  }

  package private(set) var record: FlowRecord

  package init(_ record: FlowRecord) { self.record = record }

  /// Records the user's choice to stay signed in; nil: the request said nothing.
  package mutating func remember(_ choice: Bool?) { record.remember(choice) }

  /// Why the flow accepts no more operations; nil if it is open. An expired flow reports `expired` for another
  /// lifetime, then `gone`.
  package func closed(at now: Timestamp) -> Closed? {
    if now >= record.expiresAt {
      return now >= record.expiresAt + (record.expiresAt - record.createdAt) ? .gone : .expired
    }
    return record.status == .pending ? nil : .over
  }

  /// The current step; nil if none is left.
  package var due: StepRule? { record.due }

  /// The next action. Call it again after each event.
  package var next: Action {
    if record.accountChoice != nil { return .chooseAccount }
    guard let due else { return .complete }
    if let when = due.when { return .askWhether(when) }
    return .offer(due.choices)
  }

  /// Handles the policy's answer to `askWhether`. The condition of a step that applies is removed, so that it is asked
  /// only once.
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

  /// Handles a step that was begun, or its code sent again. It replaces the step that was open before.
  package mutating func opened(_ step: StepRecord) { record.step = step }

  /// Narrows the accounts that the open step could be about; nil if it is not such a step.
  package mutating func updateClaimants(_ claimants: [AccountVersion]?) { record.step?.claimants = claimants }

  /// Handles a step that asks for more, redirects to another site, or waits.
  package mutating func waits(for round: StepRound) {
    record.step?.fields = round.fields
    record.step?.shown = round.shown
    record.step?.redirectTo = round.redirectTo
    record.step?.returned = nil
    record.step?.wait = round.wait
    record.step?.state = round.state
    record.step?.judgedBy = round.judgedBy
  }

  /// Handles fields that another site has posted; nil once they were fetched.
  package mutating func updateCallback(_ returned: PostedCallback?) { record.step?.returned = returned }

  /// Handles a poll of the waiting step.
  package mutating func polled(at now: Timestamp) {
    let wait = record.step?.wait?.polled(at: now)
    record.step?.wait = wait
  }

  /// Handles that the record was stored unchanged: the next change is based on the stored version.
  package mutating func stored() { record.version += 1 }

  /// Lets another session of the same account continue the flow.
  package mutating func continues(inSession session: String) { record.startedIn = session }

  /// Handles an open step that ended without a proof. The user can begin it again, or another one.
  package mutating func closedStep() { record.step = nil }

  /// Adds data that is handed over when the flow completes.
  package mutating func updatePendingProofs(_ change: (inout PendingProofs) -> Void) { change(&record.pendingProofs) }

  /// Stores the facts that a provider reports about its passed step.
  package mutating func recordFacts(_ facts: [String: String], of provider: ProviderName) {
    record.recordFacts(facts, of: provider)
  }

  /// Records that the provider's limits have counted the account that the flow creates.
  package mutating func countsRegistration(by provider: ProviderName) {
    record.registered = (record.registered ?? []).union([provider])
  }

  /// Handles a step that was judged to be proved. In the engine only `StepSettlement` calls this, after a charge; the
  /// check of guarantees runs the machine without sessions.
  ///
  /// A step that proves an identifier that is new to the account is stored in `ProofBasis.introduced` and is not a
  /// factor. The same applies to steps that passed before the account was known, because they proved nothing about an
  /// account.
  package mutating func passed(_ proof: PassedProof) {
    if record.account == nil, let account = proof.account {
      record.account = account.id
      record.basis.epoch = account.epoch
      record.basis.introduced += record.passed
      record.passed = []
      // Attack: the attacker proves a number of their own, then the victim's password: the number would be added to the
      // victim's account.
      record.proved = []
    }
    if record.account != nil, !proof.proved.isEmpty, proof.held.isEmpty {
      record.basis.introduced.append(proof.step)
    } else if proof.isFactor {
      record.passed.append(proof.step)
    }
    record.basis.held += proof.held
    record.basis.holder = proof.holder ?? record.basis.holder
    // An identifier that was proved twice is stored once.
    record.proved = record.proved.filter { !proof.proved.contains($0) } + proof.proved
    record.step = nil
    record.position += 1
  }

  /// Handles that the account is merged into another one by an identifier that is new to it. The step that proved the
  /// identifier proves what the other account holds, so it is a factor there.
  /// - Parameter until: until when the identifier is too new in the other account to count; nil: it counts.
  package mutating func joins(_ account: AccountVersion, tooNewUntil until: Timestamp? = nil) {
    record.passed = record.basis.introduced.map { $0.tooNew(until: until) }
    record.account = account.id
    record.basis.epoch = account.epoch
  }

  /// Handles that several accounts claim the verified identifier.
  package mutating func asks(toChoose choice: AccountChoice) { record.accountChoice = choice }

  /// Handles the user's choice: the account is the one that claims the identifier.
  package mutating func chose(_ account: AccountVersion, by identifier: Identifier) {
    record.account = account.id
    record.basis.epoch = account.epoch
    record.basis.held.append(identifier)
    record.accountChoice = nil
  }

  /// Skips the current step.
  /// - Returns: false if it may not be skipped.
  package mutating func skipped() -> Bool {
    guard let due, due.isSkippable, record.accountChoice == nil else { return false }
    record.step = nil
    record.position += 1
    return true
  }

  /// Adds a step for another provider that a policy requires, right after the step that was just passed.
  package mutating func requireNext(_ provider: ProviderName) {
    let isPassed = record.passed.contains { $0.provider == provider && $0.tooNewUntil == nil }
    guard !isPassed, !record.steps.dropFirst(record.position).contains(where: { $0.isOwed(provider) }) else {
      return
    }
    record.steps.insert(StepRule(choices: [provider], isSkippable: false, when: nil), at: record.position)
  }

  /// Requires another provider before the current step, even if the flow requires it later anyway. An open step is
  /// closed: a code that was sent before would otherwise pass in the place of the provider.
  package mutating func requireFirst(_ provider: ProviderName) {
    record.step = nil
    let later = record.steps.indices.dropFirst(record.position).first { record.steps[$0].isOwed(provider) }
    guard let later else { return requireNext(provider) }
    record.steps.insert(record.steps.remove(at: later), at: record.position)
  }

  /// Adds a step that `accounts.lua` or the account itself requires, after all other steps.
  package mutating func require(_ choices: [ProviderName], _ requirement: AccountStep) {
    record.steps.append(StepRule(choices: choices, isSkippable: false, when: nil, requirement: requirement))
  }

  /// Whether the provider was passed in this flow.
  package func hasPassed(_ provider: ProviderName) -> Bool { record.passed.contains { $0.provider == provider } }

  /// The provider of the step after the current one, if that step has one choice and no condition.
  package var certainNext: ProviderName? {
    guard record.position + 1 < record.steps.count else { return nil }
    let rule = record.steps[record.position + 1]
    return rule.when == nil && rule.choices.count == 1 ? rule.choices[0] : nil
  }

  /// Completes the flow.
  /// - Parameters:
  ///   - account: the account after the flow.
  ///   - next: nil if an app receives the result. Its address contains the code, which is only sent once.
  ///   - code: the code that the app redeems, if any.
  package mutating func completed(account: AccountVersion, isNew: Bool, next: String?, code: GrantCode? = nil) {
    record.grantCode = code
    record.status = .complete
    record.step = nil
    record.account = account.id
    record.basis = ProofBasis(epoch: account.epoch)
    record.isNewAccount = isNew
    record.completedNext = next
    record.close()
  }

  /// Handles that the app has redeemed its code.
  package mutating func redeemed() { record.grantCode = nil }

  /// Handles that the user lets the app have the result of the flow.
  package mutating func allowsApp() { record.grant?.allow() }

  /// Ends the flow as failed.
  package mutating func failed() {
    record.status = .failed
    record.close()
    record.step = nil
  }
}

/// What a full provider asks for or waits for next.
package struct StepRound: Sendable, Equatable {
  /// The fields that it asks for; nil if it redirects to another site.
  package let fields: [InputField]?
  /// What the page displays beside the fields, sealed.
  package var shown: SealedBytes?
  /// The site that the user is redirected to.
  package var redirectTo: String?
  /// When the step may be polled, if it waits.
  package var wait: StepWait?
  /// The provider's state, sealed.
  package let state: [UInt8]
  /// The record that the attempt was judged by; nil if the step asks for the first time.
  package var judgedBy: StoredRecord.Judged?

  package init(fields: [InputField]?, state: [UInt8]) {
    self.fields = fields
    self.state = state
  }
}

extension StepRule {
  /// Whether this provider must be passed in this step without alternative.
  fileprivate func isOwed(_ provider: ProviderName) -> Bool { choices == [provider] && !isSkippable && when == nil }
}
