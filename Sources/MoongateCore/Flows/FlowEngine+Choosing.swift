import MoongateSDK

// Several accounts claim the address to which a code was right: the person chooses theirs (account-security.md section
// 3, rule 6).

/// An account that the person may choose, by what they can recognise and nothing that tells who else has it.
package struct AccountOption: Sendable, Equatable {
  /// What the client sends back as `account`.
  package let value: String
  package let createdAt: Timestamp
  /// The last request or sign-in.
  package let lastUsedAt: Timestamp
}

extension FlowEngine {
  static var accountField: String { "account" }

  /// Whose a right code is: one account's, or that of several, of which the person chooses one.
  /// - Throws: 410 where none of those for which the code was sent may be given to the person any more.
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

  /// Those of the accounts that are as they were and that whoever has proved the identifier may still be given.
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

  /// Takes the person's choice. Nothing is compared and nothing counted: whoever is here has proved the address that
  /// all of them claim.
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
        .invalidInput, detail: "Choose one of the accounts that this step names.", field: Self.accountField)
    }
    try demandUnlocked(account, request)
    var machine = before
    machine.chose(AccountVersion(account), by: choice.identifier)
    return try await carryOn(&machine, id: id, request, changes: [])
  }

  /// What the person chooses from.
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

  /// What a new password leaves of an account whose address was only claimed until then: nothing that somebody else may
  /// have put there.
  ///
  /// Attack: an account that is registered in the victim's name before the victim comes, with a PIN, an authenticator
  /// app or an identity elsewhere of the attacker's own, for the day on which the victim recovers "their" password.
  /// - Returns: the account as it will be, and the change that makes it so; nil where the identifier was the account's
  ///   own before.
  /// - Throws: 410 where the account has been given to somebody else meanwhile.
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
