import MoongateSDK

/// A lock with its details for operators.
package struct NamedLock: Sendable, Equatable {
  /// An address that attempts came from, with their number.
  package struct Source: Sendable, Equatable {
    package let address: String
    package let count: Int

    package init(address: String, count: Int) {
      self.address = address
      self.count = count
    }
  }

  package let lock: LockRecord
  /// The identifier entered in the last attempt; nil if it had none or is unknown.
  package let identifier: Identifier?
  /// The account that the last attempt was about; nil if it had none or is unknown.
  package let account: String?
  /// The key of the limit; nil if the policy no longer has such a limit.
  package let key: LimitKey?
  /// The source location of the limit; nil if the policy no longer has it.
  package let location: SourceLocation?
  /// The number of stored failed attempts, at most `FailedAttempt.most`.
  package let failures: Int
  /// The addresses of the attempts, most frequent first.
  package let sources: [Source]

  /// - Parameter attempts: the attempts at the lock's counter, newest first.
  init(_ lock: LockRecord, _ attempts: [FailedAttempt], by keys: KeyRing, in generation: any PolicyGeneration) {
    self.lock = lock
    let limit = generation.policies[lock.provider]?.limits.first { $0.name == lock.limit }
    key = limit?.key
    location = limit?.location
    // Attempts that were sealed under a removed key have no details.
    let origins = attempts.compactMap { try? AttemptOrigin(opening: $0, by: keys) }
    identifier = origins.first { $0.identifier != nil }?.identifier
    account = origins.first { $0.account != nil }?.account
    failures = attempts.count
    let counts = Dictionary(grouping: origins, by: \.address).mapValues(\.count)
    sources = counts.map { Source(address: $0.key, count: $0.value) }.sorted {
      ($1.count, $0.address) < ($0.count, $1.address)
    }
  }
}

// MARK: - Operations on locks

extension AccountAdministration {
  /// The active locks with their details, oldest first.
  package func namedLocks(in generation: any PolicyGeneration) async throws(StoreFault) -> [NamedLock] {
    try await name(try await locks(), in: generation)
  }

  /// The active locks that concern an account, oldest first.
  package func locks(of account: Account, in generation: any PolicyGeneration) async throws(StoreFault) -> [NamedLock] {
    let now = clock.now()
    let traces = [keys.accountTrace(account.id)] + account.identifiers.map { keys.logHash($0.identifier.value) }
    var locks = try await store.locks(about: traces, at: now)
    // An attempt whose gateway died has no details. A lock that began by it is found by its counter.
    let counters = Set(
      PersonalLimits(keys: keys, providers: providers).limits(of: account, in: generation).map(\.counter))
    for lock in try await store.locks(at: now)
    where counters.contains(lock.counter) && !locks.contains(where: { $0.id == lock.id }) {
      locks.append(lock)
    }
    return try await name(locks.sorted { ($0.since, $0.id) < ($1.since, $1.id) }, in: generation)
  }

  /// The locks that a text refers to: by the ID of a lock or an account, or by a number or an address in any spelling.
  /// - Parameter region: ISO 3166-1 alpha-2, for numbers without `+`.
  package func locks(named text: String, region: String, in generation: any PolicyGeneration) async throws(StoreFault)
    -> [NamedLock]
  {
    let now = clock.now()
    let all = try await store.locks(at: now)
    if let lock = all.first(where: { $0.id == text }) { return try await name([lock], in: generation) }
    var found: [NamedLock] = []
    for account in try await accounts(named: text, region: region) {
      for lock in try await locks(of: account, in: generation) where !found.contains(lock) { found.append(lock) }
    }
    // Locks on identifiers without an account, such as a guessed number.
    let traces = identifiers(named: text, region: region).map { keys.logHash($0.value) }
    let others = try await store.locks(about: traces, at: now).filter { lock in
      !found.contains { $0.lock.id == lock.id }
    }
    return found + (try await name(others, in: generation))
  }

  /// Ends a lock, or re-enables what a limit has disabled.
  package func clear(_ lock: NamedLock) async throws(StoreFault) -> Outcome {
    let now = clock.now()
    guard try await store.liftLock(lock.lock.id, at: now) else { return .unknown }
    var event = event(.lockLifted, lock.account, at: now)
    event.identifier = lock.identifier.map { keys.logHash($0.value) }
    event.detail["lock"] = lock.lock.id
    event.detail["limit"] = "\(lock.lock.provider)/\(lock.lock.limit)"
    try await store.append([event])
    return .done
  }

  private func name(_ locks: [LockRecord], in generation: any PolicyGeneration) async throws(StoreFault) -> [NamedLock]
  {
    let attempts = Dictionary(grouping: try await store.failedAttempts(at: locks.map(\.counter)), by: \.counter)
    return locks.map { NamedLock($0, attempts[$0.counter] ?? [], by: keys, in: generation) }
  }
}

/// The result of unlocking an account.
package struct Unlocking: Sendable, Equatable {
  /// Whether the import of the account is not complete. Then nothing was changed.
  package var isPending = false
  /// Whether an operator had locked the account.
  package let wasLocked: Bool
  /// The locks of limits that were lifted.
  package let locks: [NamedLock]
  /// Locks at identifiers that the account only claims. They stay.
  package let kept: [NamedLock]

  /// Whether nothing had been locked.
  package var isNothing: Bool { !wasLocked && locks.isEmpty }
}

extension AccountAdministration {
  /// Removes everything that prevents an account from signing in by what is its own: an operator's lock, and the locks
  /// of limits at the account, its names and its verified identifiers.
  ///
  /// Attack: an account claims a victim's address, and an operator who unlocks it gives its owner further guesses at
  /// the victim's secret.
  ///
  /// An account whose import is not complete stays as it is: only the end of the import opens it.
  /// - Returns: nil if the account does not exist.
  package func unlock(_ id: String, in generation: any PolicyGeneration) async throws(StoreFault) -> Unlocking? {
    guard let account = try await store.account(id) else { return nil }
    if account.isPending { return Unlocking(isPending: true, wasLocked: false, locks: [], kept: []) }
    if account.isLocked, try await unlock(id) == .unknown { return nil }
    var (ended, kept): ([NamedLock], [NamedLock]) = ([], [])
    var owned = account
    owned.identifiers.removeAll { !$0.isOwn }
    let own = PersonalLimits(keys: keys, providers: providers).limits(of: owned, in: generation)
    for lock in try await locks(of: account, in: generation) {
      if !lock.isOwn(of: owned, counting: own) {
        kept.append(lock)
      } else if try await clear(lock) == .done {
        ended.append(lock)
      }
    }
    return Unlocking(wasLocked: account.isLocked, locks: ended, kept: kept)
  }
}

extension NamedLock {
  /// Whether the lock is one of the account.
  /// - Parameters:
  ///   - owned: the account with its own identifiers only.
  ///   - limits: the limits that count its attempts. A trusted device has further counters.
  fileprivate func isOwn(of owned: Account, counting limits: [ResolvedLimit]) -> Bool {
    if limits.contains(where: { $0.counter == lock.counter }) { return true }
    guard key != .account, let identifier else { return account == owned.id }
    return owned.identifiers.contains { $0.identifier == identifier }
  }
}
