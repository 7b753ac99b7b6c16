import MoongateSDK

/// How many stored records use each key of the ring, to decide whether a key can be removed.
///
/// Reads all accounts page by page. Others may change the store meanwhile.
package struct KeyUsage: Sendable, Equatable {
  /// The number of records sealed under each key, by key name.
  package private(set) var sealed: [String: Int] = [:]
  /// The number of records whose hashes are peppered with each key, by key name and provider. Only the user's secret
  /// can move such a record to another key.
  package private(set) var peppered: [String: [ProviderName: Int]] = [:]
  /// The number of records that no key of the ring opens.
  package private(set) var foreign = 0

  private static let page = 200

  /// Counts the records.
  package init(of store: any AccountStore, by keys: KeyRing) async throws(StoreFault) {
    var counted = Self()
    try await Self.walk(store) { account, provider, sealed throws(StoreFault) in
      counted.count(sealed, provider, account, keys)
    }
    self = counted
  }

  private init() {}

  /// Seals what is sealed under the named key again with the current key. Records that change meanwhile are skipped,
  /// because they are written with the current key.
  /// - Parameter drops: whether to delete records whose hashes are peppered with the named key. Otherwise they stay as
  ///   they are.
  /// - Returns: the counts afterwards.
  package static func move(
    from name: String, in store: any Store, by keys: KeyRing, dropping drops: Bool, at now: Timestamp
  ) async throws(StoreFault) -> KeyUsage {
    try await walk(store) { account, provider, sealed throws(StoreFault) in
      let owner = ProviderRecord.owner(provider, account)
      guard let opened = try? ProviderRecord.opening(sealed, for: owner, by: keys) else { return }
      let isLost = keys.peppering(opened.record.bytes).contains(name)
      let replacement: [UInt8]?
      if isLost {
        guard drops else { return }
        replacement = nil
      } else {
        guard opened.key == name else { return }
        do { replacement = try opened.record.sealed(for: owner, by: keys) } catch {
          throw StoreFault("a record of \(provider) could not be sealed")
        }
      }
      _ = try await store.apply(
        [
          .requireProviderRecord(account: account, provider, TokenHash(of: sealed)),
          .putProviderRecord(account: account, provider, sealed: replacement),
        ], at: now)
    }
    return try await KeyUsage(of: store, by: keys)
  }

  /// Moves the providers' key-value entries to a ring without a certain key. Call it once nothing is sealed with that
  /// key any more.
  package static func moveValues(
    from ring: KeyRing, to left: KeyRing, in store: any ProviderValueStore, at now: Timestamp
  ) async throws(StoreFault) {
    try await SealedProviderValue.move(in: store, from: ring, to: left, at: now)
  }

  private mutating func count(_ sealed: [UInt8], _ provider: ProviderName, _ account: String, _ keys: KeyRing) {
    guard let opened = try? ProviderRecord.opening(sealed, for: ProviderRecord.owner(provider, account), by: keys)
    else {
      foreign += 1
      return
    }
    self.sealed[opened.key, default: 0] += 1
    for name in keys.peppering(opened.record.bytes) { peppered[name, default: [:]][provider, default: 0] += 1 }
  }

  private static func walk(
    _ store: any AccountStore, _ body: (String, ProviderName, [UInt8]) async throws(StoreFault) -> Void
  ) async throws(StoreFault) {
    var last: String?
    while true {
      let accounts = try await store.accounts(after: last, limit: page)
      for account in accounts {
        for provider in account.credentials.sorted() {
          if let sealed = try await store.providerRecord(of: account.id, for: provider) {
            try await body(account.id, provider, sealed)
          }
        }
      }
      guard accounts.count == page, let id = accounts.last?.id else { return }
      last = id
    }
  }
}
