import MoongateSDK
import MoongateStore
import MoongateTesting
import Synchronization
import Testing

@testable import MoongateCore

/// An import stores many accounts in many transactions, and all of them or none can be used.
@Suite struct AccountImportTests {
  private let clock = ManualClock()
  private let store: any Store
  private let random = SeededRandom()

  init() throws { store = try SQLiteStore.memory() }

  private func administration(_ store: any Store) throws -> AccountAdministration {
    AccountAdministration(
      store: store, providers: .none, keys: try KeyRing(master: [UInt8](repeating: 7, count: 32)), clock: clock,
      random: random)
  }

  private static func people(_ count: Int) -> [ImportedAccount] {
    (0..<count).map { number in
      let address = "user\(number)@example.com"
      let email = Identifier(kind: .email, value: address, display: address, attributes: ["domain": "example.com"])
      return ImportedAccount(
        id: "ac_\(number)", identifiers: [.init(identifier: email, isVerified: true)],
        records: ["pin": ProviderRecord(bytes: [1], version: 1)])
    }
  }

  @Test func manyAccountsAreStoredAndOpen() async throws {
    let accounts = Self.people(1_200)
    #expect(try await administration(store).add(accounts).isEmpty)
    let stored = try await store.accounts(after: nil, limit: 2_000)
    #expect(stored.count == 1_200)
    #expect(stored.allSatisfy { !$0.isLocked && $0.credentials == ["pin"] })
    #expect(try await administration(store).add(accounts) == Array(0..<1_200), "every conflict is reported")
    let events = try await store.events(limit: 10)
    #expect(events.map(\.kind) == [.accountsImported] && events.first?.detail["count"] == "1200")
  }

  /// Attack: an account that is created while an import is under way conflicts with one of its accounts, and the
  /// accounts before it stay.
  @Test func lateConflictLeavesNothing() async throws {
    let failing = InterruptedStore(store) { [store = store, clock = clock] number in
      guard number == 3 else { return }
      let taken = Self.people(1_000)[999].identifiers[0].identifier
      let account = Account(
        id: "ac_late", createdAt: clock.now(), lastSeenAt: clock.now(),
        identifiers: [HeldIdentifier(identifier: taken, verifiedAt: clock.now())])
      _ = try await store.apply([.createAccount(account)], at: clock.now())
    }
    await #expect(throws: StoreFault.self) { try await self.administration(failing).add(Self.people(1_000)) }
    #expect(try await store.accounts(after: nil, limit: 2_000).map(\.id) == ["ac_late"])
    #expect(try await administration(store).add(Self.people(10)).isEmpty, "the next import can begin")
  }

  /// Attack on ourselves: an import pauses, a gateway deletes its accounts, and another import begins. Then the first
  /// one goes on, and adds its rest to the accounts of the second.
  @Test func pausedImportAddsNothingToTheNextOne() async throws {
    let paused = InterruptedStore(store) { [store = store, clock = clock] number in
      guard number == 3 else { return }
      clock.advance(by: .seconds(90))
      while try await store.prune(at: clock.now()) {}
      guard let lease = try await store.beginImport(at: clock.now()) else { return }
      let account = Account(id: "ac_next", createdAt: clock.now(), lastSeenAt: clock.now())
      _ = try await store.apply(
        [.requireLease(lease), .importAccount(StoredImport(account: account, records: []))], at: clock.now())
    }
    await #expect(throws: StoreFault.self) { try await self.administration(paused).add(Self.people(1_000)) }
    let stored = try await store.accounts(after: nil, limit: 2_000)
    #expect(stored.map(\.id) == ["ac_next"] && stored.allSatisfy(\.isPending))
    #expect(try await store.beginImport(at: clock.now()) == nil, "the second one is still under way")
  }

  /// The lookups of many accounts take longer than the lease is held.
  @Test func slowLookupsKeepTheLease() async throws {
    let slow = InterruptedStore(store, lookup: { [clock = clock] in clock.advance(by: .seconds(40)) }) { _ in }
    #expect(try await administration(slow).add(Self.people(1_200)).isEmpty)
    let stored = try await store.accounts(after: nil, limit: 2_000)
    #expect(stored.count == 1_200 && stored.allSatisfy { !$0.isLocked })
  }

  /// A process that ends leaves its accounts locked. The next import deletes them first.
  @Test func nextImportRemovesWhatOneLeftThatStopped() async throws {
    let failing = InterruptedStore(store) { number in if number >= 3 { throw StoreFault("the store is gone") } }
    await #expect(throws: StoreFault.self) { try await self.administration(failing).add(Self.people(1_000)) }
    let left = try await store.accounts(after: nil, limit: 2_000)
    #expect(!left.isEmpty && left.allSatisfy(\.isLocked))
    // Attack: two imports at the same moment mix their accounts.
    await #expect(throws: StoreFault.self) { try await self.administration(self.store).add(Self.people(10)) }
    clock.advance(by: .seconds(60))
    #expect(try await administration(store).add(Self.people(10)).isEmpty)
    let stored = try await store.accounts(after: nil, limit: 2_000)
    #expect(stored.count == 10 && stored.allSatisfy { !$0.isLocked })
  }
}

/// A store that calls a function before each transaction with accounts of an import, and fails with its error from then
/// on.
private final class InterruptedStore: ForwardingStore {
  private let base: any Store
  private let before: @Sendable (Int) async throws -> Void
  private let lookup: @Sendable () -> Void
  private let state = Mutex((count: 0, isGone: false))

  /// - Parameters:
  ///   - lookup: called before each lookup of names.
  ///   - before: called with the number of the transaction, from 1.
  init(
    _ base: any Store, lookup: @escaping @Sendable () -> Void = {},
    before: @escaping @Sendable (Int) async throws -> Void
  ) {
    self.base = base
    self.lookup = lookup
    self.before = before
  }

  func store(for call: String) -> any Store { base }

  func reserve(_ request: ReservationRequest) async throws(StoreFault) -> ReservationResult {
    try await base.reserve(request)
  }

  func existing(_ names: ImportedNames) async throws(StoreFault) -> ImportedNames {
    lookup()
    return try await base.existing(names)
  }

  func apply(_ changes: [Change], reading query: LedgerQuery?, at now: Timestamp) async throws(StoreFault)
    -> ApplyResult
  {
    let number = state.withLock { state in
      state.count += 1
      return state.count
    }
    do { try await before(number) } catch {
      state.withLock { $0.isGone = true }
      throw StoreFault("\(error)")
    }
    return try await base.apply(changes, reading: query, at: now)
  }

  func releaseLease(_ lease: Lease, dueAt due: Timestamp, at now: Timestamp) async throws(StoreFault) {
    if state.withLock(\.isGone) { throw StoreFault("the store is gone") }
    try await base.releaseLease(lease, dueAt: due, at: now)
  }
}
