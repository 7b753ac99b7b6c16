import MoongateSDK

/// An operator's operations on accounts, for `moongate account` and the admin listener. Each operation is one
/// transaction together with its audit event, and takes effect in every process that uses the store within a second.
package struct AccountAdministration: Sendable {
  let store: any Store
  let providers: ProviderRegistry
  let keys: KeyRing
  let clock: any GatewayClock
  let random: any RandomSource
  /// The operator.
  private var actor: OperatorIdentity?

  package init(
    store: any Store, providers: ProviderRegistry, keys: KeyRing, clock: any GatewayClock, random: any RandomSource
  ) {
    self.store = store
    self.providers = providers
    self.keys = keys
    self.clock = clock
    self.random = random
  }

  /// A copy that records its operations as this operator's.
  package func acting(as identity: OperatorIdentity) -> AccountAdministration {
    var administration = self
    administration.actor = identity
    return administration
  }

  // MARK: Queries

  /// Accounts in the order of their IDs.
  /// - Parameters:
  ///   - id: the last ID of the previous page; nil for the first page.
  ///   - limit: the maximum number, 1 or more.
  package func accounts(after id: String? = nil, limit: Int) async throws(StoreFault) -> [Account] {
    try await store.accounts(after: id, limit: limit)
  }

  /// The accounts that a text refers to: by ID, or by a number, an address or a name in any spelling, verified or only
  /// claimed.
  /// The account that has verified it comes first.
  /// - Parameter region: ISO 3166-1 alpha-2, for numbers without `+`.
  package func accounts(named text: String, region: String) async throws(StoreFault) -> [Account] {
    if let account = try await store.account(text) { return [account] }
    var found: [Account] = []
    for identifier in identifiers(named: text, region: region) {
      for account in try await store.accounts(naming: identifier) where !found.contains(where: { $0.id == account.id })
      { found.append(account) }
    }
    return found
  }

  /// The live sessions of an account, newest first.
  package func sessions(of account: String) async throws(StoreFault) -> [Session] {
    try await store.liveSessions(of: account, at: clock.now())
  }

  /// The trusted devices of an account, the one that was seen last first.
  package func devices(of account: String) async throws(StoreFault) -> [TrustedDevice] {
    try await store.devices(of: account, at: clock.now())
  }

  /// The identifiers that a text may refer to, in canonical form. A name that is typed for a directory counts attempts,
  /// so operators find its locks by it.
  package func identifiers(named text: String, region: String) -> [Identifier] {
    let typed = providers.all.compactMap { provider -> Identifier? in
      let fields = provider.descriptor.beginFields.filter(\.isRequired)
      let input = ProviderInput(
        fields: Dictionary(fields.map { ($0.name, .text(text)) }) { first, _ in first }, defaultRegion: region)
      if let provider = provider as? any CodeProvider { return try? provider.readIdentifier(input) }
      guard let provider = provider as? any FullProvider, fields.contains(where: { $0.kind == .text }),
        provider.descriptor.identifierKinds.contains(.federated)
      else { return nil }
      return try? provider.readIdentifier(input)
    }
    if let address = EmailAddress(text) { return [Identifier(address)] + typed.filter { $0.kind == .federated } }
    return typed
      + [UserName(text).map(Identifier.init), Identifier(kind: .federated, value: text, display: text)]
      .compactMap(\.self)
  }

  // MARK: Operations

  /// The result of an operation.
  package enum Outcome: Sendable, Equatable {
    case done
    /// The account does not exist.
    case unknown
  }

  /// Locks the account: its sessions end, and it cannot sign in until it is unlocked.
  /// - Parameter reason: why, for the audit trail; nil if the operator gives none.
  package func lock(_ account: String, because reason: String? = nil) async throws(StoreFault) -> Outcome {
    try await apply(
      [
        .setLocked(account: account, true), .raiseEpoch(account: account),
        .forgetDevices(account: account, except: nil),
      ],
      .accountLocked, account, because: reason)
  }

  /// Lets the account sign in again.
  package func unlock(_ account: String) async throws(StoreFault) -> Outcome {
    try await apply([.setLocked(account: account, false)], .accountUnlocked, account)
  }

  /// For a compromised account: locks it and deletes its PIN, its password and all other records of its providers, and
  /// its identities at other sites. After unlocking, it can only be opened by a code to one of its identifiers. An
  /// account that holds nothing else that signs in keeps its identities.
  ///
  /// Attack: a thief has joined an identity of their own, which still opens the account after it was disabled.
  /// - Parameter reason: why, for the audit trail; nil if the operator gives none.
  package func disable(_ account: String, because reason: String? = nil) async throws(StoreFault) -> Outcome {
    guard let found = try await store.account(account) else { return .unknown }
    let now = clock.now()
    let doors = found.identifiers.filter { held in
      held.verifiedAt != nil && (held.identifier.kind == .federated || found.isWaiting(held.identifier, at: now))
    }
    let keepsDoors = doors.count == found.identifiers.count { $0.verifiedAt != nil }
    let forgotten =
      found.credentials.sorted().map { Change.putProviderRecord(account: account, $0, sealed: nil) }
      + (keepsDoors ? [] : doors.map { Change.removeIdentifier(account: account, $0.identifier) })
    return try await apply(
      [
        .setLocked(account: account, true), .raiseEpoch(account: account),
        .forgetDevices(account: account, except: nil),
      ] + forgotten, .accountDisabled, account, because: reason)
  }

  /// Ends the account's sessions, and no longer trusts any device. Signing in remains possible.
  package func endSessions(of account: String) async throws(StoreFault) -> Outcome {
    guard try await store.account(account) != nil else { return .unknown }
    return try await apply(
      [
        .endSessions(account: account, except: nil), .raiseEpoch(account: account),
        .forgetDevices(account: account, except: nil),
      ], .sessionEnded, account)
  }

  /// No longer trusts a device for the account. Its sessions continue.
  /// - Returns: `unknown` if the account does not trust such a device.
  package func removeDevice(_ id: String, of account: String) async throws(StoreFault) -> Outcome {
    guard try await devices(of: account).contains(where: { $0.id == id }) else { return .unknown }
    let now = clock.now()
    var event = event(.deviceRemoved, account, at: now)
    event.detail["device"] = id
    _ = try await store.apply([.forgetDevice(account: account, id: id), .audit(event)], at: now)
    return .done
  }

  /// Deletes the account and everything stored about the user (`AccountDeletion`).
  package func delete(_ account: String) async throws(StoreFault) -> Outcome {
    guard let found = try await store.account(account) else { return .unknown }
    let deletion = AccountDeletion(store: store, keys: keys, random: random, detail: actor?.detail ?? [:])
    return try await deletion.delete(found, at: clock.now()) ? .done : .unknown
  }

  private func apply(
    _ changes: [Change], _ kind: AuditEvent.Kind, _ account: String, because reason: String? = nil
  ) async throws(StoreFault) -> Outcome {
    let now = clock.now()
    var event = event(kind, account, at: now)
    event.detail["reason"] = reason.map { OperatorIdentity.printable($0, max: 300) }
    switch try await store.apply(changes + [.audit(event)], at: now) {
    case .applied: return .done
    case .conflict: return .unknown
    }
  }

  /// An audit event about an operator's operation.
  func event(_ kind: AuditEvent.Kind, _ account: String?, at now: Timestamp) -> AuditEvent {
    AuditEvent(
      id: DecisionID(from: random), at: now, kind: kind, account: account, address: actor?.address,
      detail: actor?.detail ?? [:])
  }

  // MARK: Locks of limits

  /// All active locks.
  package func locks() async throws(StoreFault) -> [LockRecord] { try await store.locks(at: clock.now()) }

  /// Ends a lock, or re-enables what a limit has disabled.
  package func clearLock(_ id: String) async throws(StoreFault) -> Outcome {
    let now = clock.now()
    guard try await store.liftLock(id, at: now) else { return .unknown }
    var event = event(.lockLifted, nil, at: now)
    event.detail["lock"] = id
    try await store.append([event])
    return .done
  }
}

// MARK: - Import and export

extension AccountAdministration {
  /// The kinds of imported hash that each provider has in these accounts and, if it has any there, in the store.
  package func importedHashes(with accounts: [ImportedAccount]) async throws(StoreFault) -> [ProviderName:
    Set<HashWork>]
  {
    var all: [ProviderName: Set<HashWork>] = [:]
    for (provider, record) in accounts.flatMap(\.records) {
      guard let hash = providers.importedHash(in: record.bytes, of: provider) else { continue }
      all[provider, default: []].insert(hash)
    }
    for provider in all.keys { all[provider]?.formUnion(try await store.importedHashes(of: provider)) }
    return all
  }

  /// All the records that providers store for the account.
  package func records(of account: Account) async throws(StoreFault) -> ExportedRecords {
    var records: [ProviderName: ProviderRecord] = [:]
    for provider in account.credentials { records[provider] = try await record(of: account.id, for: provider) }
    return ExportedRecords(records: records, dueChanges: account.dueChanges)
  }

  private func record(of account: String, for provider: ProviderName) async throws(StoreFault) -> ProviderRecord? {
    guard let sealed = try await store.providerRecord(of: account, for: provider) else { return nil }
    guard let record = try? ProviderRecord(opening: sealed, for: ProviderRecord.owner(provider, account), by: keys)
    else {
      throw StoreFault(
        "the record of \(provider) for \(account) cannot be opened: it was changed, or sealed under another key")
    }
    return record
  }

  /// The compiled-in providers and instances that can import hashes.
  package var importers: [any SecretImporting] { providers.all.compactMap { $0 as? any SecretImporting } }

  /// The compiled-in providers and instances that can import factors of other systems.
  package var factorImporters: [any FactorImporting] { providers.all.compactMap { $0 as? any FactorImporting } }

  /// The maximum size of a provider's record, in bytes, whether a flow or an import makes it.
  package static var maxRecordBytes: Int { 65_536 }

  /// The numbers of accounts with a hash that only `--weak` imports: of a password, which the account must replace at
  /// its next sign-in, and of another secret.
  package func weakHashes(in accounts: [ImportedAccount]) -> (passwords: Int, others: Int) {
    let weak = accounts.map { $0.records.filter { providers.isWeakHash(in: $0.value.bytes, of: $0.key) } }
    return (
      weak.count { $0.contains { isWeakSecret($0.value, of: $0.key) } },
      weak.count { $0.contains { !isWeakSecret($0.value, of: $0.key) } }
    )
  }

  /// Whether a record holds the weak hash of a secret that belongs to an identifier, as a password does. A user
  /// who proves the identifier may replace it.
  func isWeakSecret(_ record: ProviderRecord, of provider: ProviderName) -> Bool {
    providers.identifierSecrets.contains(provider) && providers.isWeakHash(in: record.bytes, of: provider)
  }

  /// The hash that a provider stores for the account; nil if it stores none or something else.
  package func hash(of account: String, for importer: any SecretImporting) async throws(StoreFault) -> String? {
    try await record(of: account, for: importer.descriptor.name).flatMap { importer.hash(exporting: $0.bytes) }
  }
}

/// A validated account to import.
package struct ImportedAccount: Sendable {
  /// An identifier of the account.
  package struct Name: Sendable {
    package let identifier: Identifier
    package let isVerified: Bool

    package init(identifier: Identifier, isVerified: Bool) {
      self.identifier = identifier
      self.isVerified = isVerified
    }
  }

  /// The ID of an exported account; nil for a new one.
  package var id: String?
  package var identifiers: [Name]
  package var firstName: String?
  package var lastName: String?
  package var createdAt: Timestamp?
  /// nil: never since it was created. A policy may treat the number of an account that was unused for long as recycled.
  package var lastSeenAt: Timestamp?
  package var isLocked: Bool
  /// The groups that an operator added it to.
  package var groups: Set<GroupName> = []
  /// The records of its providers: created by the provider that imports a hash, or taken from the gateway that exported
  /// the account.
  package var records: [ProviderName: ProviderRecord]
  /// Why an exported account must replace some of its records.
  package var dueChanges: [ProviderName: DueChange] = [:]

  /// More than five parameters: one for each field.
  package init(
    id: String? = nil, identifiers: [Name], firstName: String? = nil, lastName: String? = nil,
    createdAt: Timestamp? = nil,
    lastSeenAt: Timestamp? = nil, isLocked: Bool = false, records: [ProviderName: ProviderRecord] = [:]
  ) {
    self.id = id
    self.identifiers = identifiers
    self.firstName = firstName
    self.lastName = lastName
    self.createdAt = createdAt
    self.lastSeenAt = lastSeenAt
    self.isLocked = isLocked
    self.records = records
  }
}
