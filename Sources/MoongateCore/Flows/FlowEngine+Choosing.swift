import MoongateSDK

// If several accounts claim an address and the code to it was right, the user chooses one of them.

/// An account that the user may choose. Shows only what its owner can recognise, and nothing that reveals who else has
/// an account.
package struct AccountOption: Sendable, Equatable {
  /// The value that the client sends back as `account`.
  package let value: String
  package let createdAt: Timestamp
  /// The time of the last request or sign-in.
  package let lastUsedAt: Timestamp
}

extension FlowEngine {
  static var accountField: String { "account" }

  /// The account that a right code is about, or the accounts from which the user must choose.
  /// - Throws: 410 if none of the accounts for which the code was sent may be recovered any more.
  func whoseCode(_ step: StepRecord, _ record: FlowRecord, _ request: RequestContext) async throws(FlowError) -> (
    subject: ProofSubject, choice: AccountChoice?
  ) {
    guard let claimants = step.claimants, let identifier = step.identifier else {
      return (subject(ofCode: step, record), nil)
    }
    let left = try await recoverable(claimants, by: identifier).map(AccountVersion.init)
    switch left.count {
    case 0: throw request.refusal(.flowExpired)
    case 1: return (ProofSubject(account: left[0], held: [identifier]), nil)
    default: return (ProofSubject(), AccountChoice(provider: step.provider, identifier: identifier, accounts: left))
    }
  }

  /// The accounts that are unchanged and that a proof of the identifier may still recover.
  private func recoverable(_ accounts: [AccountVersion], by identifier: Identifier) async throws(FlowError) -> [Account]
  {
    var left: [Account] = []
    for version in accounts {
      guard let account = try await loadAccount(version.id), AccountVersion(account) == version,
        account.isRecoverable(by: identifier)
      else {
        continue
      }
      left.append(account)
    }
    return left
  }

  /// Accepts the user's choice. Nothing is compared or counted: the user has already proved the address that all the
  /// accounts claim.
  func choose(
    _ choice: AccountChoice, _ input: ProviderInput, _ before: FlowMachine, id: FlowID, _ request: RequestContext
  ) async throws(FlowError)
    -> FlowView
  {
    let typed: String
    do throws(InputProblem) { typed = try input.text(Self.accountField) } catch { throw request.refusal(error) }
    guard let number = Int(typed), choice.accounts.indices.contains(number - 1),
      let account = try await recoverable([choice.accounts[number - 1]], by: choice.identifier).first
    else {
      throw request.refusal(
        .invalidInput, detail: "Choose one of the accounts shown.", field: Self.accountField)
    }
    try demandUnlocked(account, request)
    var machine = before
    machine.chose(AccountVersion(account), by: choice.identifier)
    return try await carryOn(&machine, id: id, request, changes: [])
  }

  /// The options that the user chooses from.
  func options(_ choice: AccountChoice) async throws(FlowError) -> [AccountOption] {
    var options: [AccountOption] = []
    for (index, version) in choice.accounts.enumerated() {
      guard let account = try await recoverable([version], by: choice.identifier).first else { continue }
      let sessions = try await asking { () async throws(StoreFault) in try await store.sessions(of: account.id) }
      let used = sessions.map(\.lastSeenAt) + [account.lastSeenAt]
      options.append(
        AccountOption(
          value: String(index + 1), createdAt: account.createdAt, lastUsedAt: used.max() ?? account.lastSeenAt))
    }
    return options
  }

  /// The account after a new password was set by a code to an address that it had only claimed. Everything that someone
  /// else may have added is removed.
  ///
  /// Attack: the attacker registers an account in the victim's name before the victim comes, with a PIN, an
  /// authenticator app or a federated identity of their own, and waits until the victim recovers "their" password.
  /// - Returns: the account after the change, and the change; nil if the account had verified the identifier before.
  /// - Throws: 410 if the account was given to someone else in the meantime.
  func reclaimed(_ account: Account, before: Account, _ record: FlowRecord, _ request: RequestContext) throws(FlowError)
    -> (Account, Change)?
  {
    guard let proved = record.proved.last(where: { $0.kind == .email }),
      !before.identifiers.contains(where: { $0.identifier == proved && $0.verifiedAt != nil })
    else { return nil }
    guard before.isRecoverable(by: proved) else { throw request.refusal(.flowExpired) }
    let kept = Set(record.gathered.records.filter { $0.value.sealed != nil }.keys)
    var reclaimed = account
    reclaimed.identifiers.removeAll { $0.identifier != proved }
    reclaimed.credentials.formIntersection(kept)
    return (reclaimed, .reclaimAccount(account.id, by: proved, keeping: kept))
  }
}
