import MoongateSDK

// Reads accounts. Identifiers that accounts claim without having verified them are not exclusive: claiming an
// identifier takes nothing away from other accounts.

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

/// Finds the accounts that a flow is about. An account is read once per request by its ID.
struct AccountLookup: FlowPart {
  let services: FlowServices

  /// The maximum number of unverified claims on an identifier. Beyond that it must be verified, so that searching the
  /// claims stays cheap.
  static let maxClaims = 64
  /// The maximum number of candidates of each group (known to this device, oldest, newest).
  private static let maxPerKind = 4

  /// The ID of no account, for reads that are made without one so that their time tells nothing.
  static let nobody = ""

  /// The account of this ID; nil without an ID or an account.
  func loadAccount(_ id: String?, _ flow: FlowTransaction) async throws(FlowError) -> Account? {
    guard let id else { return nil }
    if let read = flow.accounts[id] { return read }
    let account = try await asking { () async throws(StoreFault) in try await store.account(id) }
    flow.accounts.keep(account)
    return account
  }

  /// The account, if it has signed in on the device and may therefore trust it. An account that has not is not read.
  func loadTrusting(_ device: DeviceToken?, _ id: String, _ flow: FlowTransaction) async throws(FlowError) -> Account? {
    keys.mayTrust(device, id) ? try await loadAccount(id, flow) : nil
  }

  /// The account that the flow has identified; nil if it has identified none yet.
  /// - Throws: 410 if the account has changed since then (`Account.epoch`).
  func loadOwn(_ flow: FlowTransaction) async throws(FlowError) -> Account? {
    let account = try await loadAccount(flow.record.account, flow)
    if let account, account.epoch != flow.record.basis.epoch {
      throw flow.request.refusal(.flowExpired, because: .accountChanged)
    }
    return account
  }

  /// The account that has verified the identifier. The first lookup may be the one that was made with the flow.
  func holder(of identifier: Identifier, _ flow: FlowTransaction) async throws(FlowError) -> Account? {
    if let known = flow.accounts.takeHolder(of: identifier) { return known }
    let holder = try await asking { () async throws(StoreFault) in try await store.account(holding: identifier) }
    flow.accounts.keep(holder)
    return holder
  }

  /// The accounts that an identifier leads to at a provider that keeps a secret for them.
  func owners(of identifier: Identifier, claimedWith provider: ProviderName, _ flow: FlowTransaction)
    async throws(FlowError) -> IdentifierOwners
  {
    let holder = try await holder(of: identifier, flow)
    // Attack: the time of a step that begins tells whether its address is known, at no cost. The claims are therefore
    // read in either case. (An address that an account has verified has none.)
    let claims = try await claims(on: identifier, having: provider)
    // A name leads to one account, which is read next.
    if claims.isEmpty, identifier.kind.isExclusive { try await readNobody() }
    if let holder { return IdentifierOwners(holder: holder) }
    return IdentifierOwners(claimants: try await claimants(among: claims, having: provider, flow))
  }

  /// Whether an account that is about to be created cannot have the identifier: another one has verified it or, if only
  /// one account can have it, claims it or one that looks like it.
  func isTaken(_ identifier: Identifier, _ flow: FlowTransaction) async throws(FlowError) -> Bool {
    guard identifier.kind.isExclusive else { return try await holder(of: identifier, flow) != nil }
    return try await asking { () async throws(StoreFault) in try await store.isTaken(identifier) }
  }

  /// Reads the account that no identifier leads to, so that the time is that of reading one.
  func readNobody() async throws(FlowError) {
    _ = try await asking { () async throws(StoreFault) in try await store.account(Self.nobody) }
  }

  /// The accounts whose forgotten factor, such as a password, may be replaced by a code to the identifier in a recovery
  /// flow.
  ///
  /// Attack: the attacker makes an account that they can also open in another way, claims a victim's address on it, and
  /// waits until the victim recovers "their" password there. An account that has verified some other identifier
  /// cannot be recovered by an address that it only claims.
  func recoverable(by identifier: Identifier, _ flow: FlowTransaction) async throws(FlowError) -> IdentifierOwners {
    guard let provider = flow.record.purpose.recoveredProvider else { return .none }
    var owners = try await owners(of: identifier, claimedWith: provider, flow)
    owners.claimants.removeAll { !$0.isRecoverable(by: identifier) }
    return owners
  }

  /// The accounts that are unchanged and that a proof of the identifier may still recover.
  func recoverable(_ accounts: [AccountVersion], by identifier: Identifier, _ flow: FlowTransaction)
    async throws(FlowError) -> [Account]
  {
    var left: [Account] = []
    for version in accounts {
      guard let account = try await loadAccount(version.id, flow), AccountVersion(account) == version,
        account.isRecoverable(by: identifier)
      else {
        continue
      }
      left.append(account)
    }
    return left
  }

  /// The accounts that claim the identifier and have a record of the provider, oldest first.
  private func claims(on identifier: Identifier, having provider: ProviderName) async throws(FlowError) -> [String] {
    try await asking { () async throws(StoreFault) in
      try await store.accounts(claiming: identifier, having: provider, limit: 2 * Self.maxClaims)
    }
  }

  /// The claimants that are considered: those that have signed in on this device before, the oldest ones, and the
  /// newest ones.
  ///
  /// Attack: so many claims on an address that the password of its first owner is no longer compared. The oldest claims
  /// always keep their place. A newer claim keeps its place on the device that made it.
  private func claimants(among ids: [String], having provider: ProviderName, _ flow: FlowTransaction)
    async throws(FlowError) -> [Account]
  {
    let known = ids.filter { keys.mayTrust(flow.request.device, $0) }
    let considered = Set(known.suffix(Self.maxPerKind) + ids.prefix(Self.maxPerKind) + ids.suffix(Self.maxPerKind))
    var accounts: [Account] = []
    for id in ids where considered.contains(id) {
      if let account = try await loadAccount(id, flow) { accounts.append(account) }
    }
    return accounts
  }

  /// The unverified claims of a flow, without those on identifiers that have too many claims.
  ///
  /// Attack: an unlimited number of claims on one address, all of which every password attempt there must search.
  /// - Throws: 403 `email_not_verified` if the account would be left with no identifier.
  func admittedClaims(_ flow: FlowTransaction) async throws(FlowError) -> [Identifier] {
    let record = flow.record
    var admitted: [Identifier] = []
    for claimed in record.pendingProofs.claimed where !record.proved.contains(claimed) {
      let claims = try await asking { () async throws(StoreFault) in
        try await store.accounts(claiming: claimed, having: nil, limit: Self.maxClaims)
      }
      if claims.count < Self.maxClaims {
        admitted.append(claimed)
      } else if record.proved.isEmpty, record.account == nil {
        throw flow.request.refusal(
          .emailNotVerified,
          detail: "This address was registered too often without being verified. Verify it with a code.")
      }
    }
    return admitted
  }
}

extension Account {
  /// Whether a code to an identifier that the account only claims may recover the account.
  ///
  /// Attack: someone has an address that the owner of a name has mistyped, and recovers "their" password. The account
  /// belongs to the name, so an address that it only claims does not lead to it.
  func isRecoverable(by identifier: Identifier) -> Bool {
    identifiers.contains { $0.identifier == identifier } && !hasOwnIdentifier
  }
}
