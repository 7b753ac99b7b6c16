import MoongateSDK

// Imports accounts, for `moongate account import`.

extension AccountAdministration {
  /// The number of accounts that are looked up at once.
  private static let lookupStretch = 500

  /// The indices of the accounts that conflict with an existing one, or with the name of one before them: by their ID,
  /// a verified identifier, or a name that is taken or looks like one that is.
  package func conflicts(with accounts: [ImportedAccount]) async throws(StoreFault) -> [Int] {
    try await conflicts(with: accounts) { () async throws(StoreFault) in }
  }

  /// - Parameter between: called before each lookup.
  private func conflicts(
    with accounts: [ImportedAccount], between: () async throws(StoreFault) -> Void
  ) async throws(StoreFault) -> [Int] {
    var found: [Int] = []
    // The names of the accounts before, in the form that is compared.
    var skeletons: Set<String> = []
    for start in stride(from: 0, to: accounts.count, by: Self.lookupStretch) {
      let stretch = start..<min(accounts.count, start + Self.lookupStretch)
      var names = ImportedNames()
      for index in stretch { names.add(accounts[index]) }
      try await between()
      let existing = try await store.existing(names)
      for index in stretch {
        var isTaken = existing.hasAny(of: accounts[index])
        for skeleton in accounts[index].identifiers.compactMap(\.identifier.skeleton)
        where !skeletons.insert(skeleton).inserted { isTaken = true }
        if isTaken { found.append(index) }
      }
    }
    return found
  }

  /// Stores all the accounts or none, in many short transactions. The accounts are locked until all of them are stored.
  /// If the process ends before, they are deleted by the next import, or by a gateway (`Store.prune`).
  /// - Returns: the indices of the accounts that conflict (`conflicts(with:)`); then none is stored.
  package func add(_ accounts: [ImportedAccount]) async throws(StoreFault) -> [Int] {
    if accounts.isEmpty { return [] }
    try await settle()
    // Attack: two imports of the same accounts at the same moment. One of them gets the lease.
    guard var lease = try await store.beginImport(at: clock.now()) else {
      throw StoreFault("another import is under way, or was stopped less than a minute ago: try again in a minute")
    }
    do throws(StoreFault) {
      // The lookups of many accounts can take longer than the lease.
      let conflicts = try await conflicts(with: accounts) { () async throws(StoreFault) in
        lease = try await kept(lease)
      }
      if conflicts.isEmpty { try await put(accounts, under: lease) }
      await end(lease)
      return conflicts
    } catch {
      await end(lease)
      throw error
    }
  }

  /// The lease, renewed if less than half of its time is left.
  private func kept(_ lease: Lease) async throws(StoreFault) -> Lease {
    guard lease.heldUntil - clock.now() < AccountImport.length / 2 else { return lease }
    guard let renewed = try await store.renewLease(lease, for: AccountImport.length, at: clock.now()) else {
      throw Self.fault(.leaseLost)
    }
    return renewed
  }

  /// Releases the lease, and opens the accounts of a complete import, or deletes those of another one. If the store
  /// fails, a gateway does that.
  private func end(_ lease: Lease) async {
    let now = clock.now()
    try? await store.releaseLease(lease, dueAt: now, at: now)
    try? await settle()
  }

  private func settle() async throws(StoreFault) {
    while true {
      let began = ContinuousClock.now
      guard try await store.settleImport(at: clock.now()) else { return }
      await ImportPace.pause(after: ContinuousClock.now - began)
    }
  }

  private func put(_ accounts: [ImportedAccount], under lease: Lease) async throws(StoreFault) {
    let started = clock.now()
    var lease = lease
    var pace = ImportPace()
    var rest = accounts[...]
    while !rest.isEmpty {
      // Sealed before the transaction begins.
      let changes = try rest.prefix(pace.size).map { account throws(StoreFault) in
        Change.importAccount(try stored(account, at: started))
      }
      rest = rest.dropFirst(pace.size)
      lease = try await kept(lease)
      let began = ContinuousClock.now
      try await apply([.requireLease(lease)] + changes)
      let took = ContinuousClock.now - began
      pace.adjust(to: took)
      await ImportPace.pause(after: took)
    }
    var event = event(.accountsImported, nil, at: started)
    event.detail["count"] = String(accounts.count)
    try await apply([
      .requireLease(lease), .completeImport(lease, forgetting: providers.identifierSecrets), .audit(event),
    ])
  }

  private func apply(_ changes: [Change]) async throws(StoreFault) {
    if case .conflict(let conflict) = try await store.apply(changes, at: clock.now()) { throw Self.fault(conflict) }
  }

  private static func fault(_ conflict: ApplyResult.Conflict) -> StoreFault {
    conflict == .leaseLost
      ? StoreFault("the import paused for more than a minute, so its accounts are deleted: try again")
      : StoreFault("an account was created meanwhile that conflicts with one of these: try again")
  }

  private func stored(_ imported: ImportedAccount, at now: Timestamp) throws(StoreFault) -> StoredImport {
    let id = imported.id ?? "ac_" + Base64URL.encode(random.bytes(16))
    let created = imported.createdAt ?? now
    let account = Account(
      id: id, firstName: imported.firstName, lastName: imported.lastName, createdAt: created,
      lastSeenAt: max(created, imported.lastSeenAt ?? created), isLocked: imported.isLocked,
      identifiers: imported.identifiers.map {
        HeldIdentifier(identifier: $0.identifier, verifiedAt: $0.isVerified ? created : nil)
      }, groups: imported.groups)
    var records: [StoredImport.Record] = []
    for (provider, record) in imported.records.sorted(by: { $0.key < $1.key }) {
      guard let sealed = try? record.sealed(for: ProviderRecord.owner(provider, id), by: keys) else {
        throw StoreFault("a record of \(provider) could not be sealed")
      }
      records.append(
        StoredImport.Record(
          provider: provider, sealed: sealed, importedHash: providers.importedHash(in: record.bytes, of: provider),
          dueChange: imported.dueChanges[provider] ?? (isWeakSecret(record, of: provider) ? .weak : nil)))
    }
    return StoredImport(account: account, records: records)
  }
}

extension ImportedNames {
  /// Adds what the account has and only one account can have.
  fileprivate mutating func add(_ account: ImportedAccount) {
    if let id = account.id { ids.insert(id) }
    for name in account.identifiers {
      if name.isVerified { verified.insert(name.identifier) }
      if name.identifier.kind.isExclusive { exclusive.insert(name.identifier) }
    }
  }

  fileprivate func hasAny(of account: ImportedAccount) -> Bool {
    account.id.map(ids.contains) ?? false
      || account.identifiers.contains {
        $0.isVerified && verified.contains($0.identifier) || exclusive.contains($0.identifier)
      }
  }
}

/// How many accounts a transaction of an import stores. All writers of a SQLite file wait for each other, so a
/// transaction is to take about `target`, and then others have the store for as long.
private struct ImportPace {
  private static let target: Duration = .milliseconds(40)
  private static let sizes = 20...500

  private(set) var size = Self.sizes.lowerBound

  mutating func adjust(to took: Duration) {
    let factor = took > .zero ? min(2, Self.target / took) : 2
    size = min(max(Int(Double(size) * factor), Self.sizes.lowerBound), Self.sizes.upperBound)
  }

  static func pause(after took: Duration) async { try? await Task.sleep(for: min(took, .milliseconds(100))) }
}
