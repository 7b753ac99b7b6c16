import MoongateSDK
import Synchronization

extension ProviderName {
  /// The name under which the policy for tokens (`policies/token.lua`) and its locks are listed. No provider has this
  /// name.
  package static let token: ProviderName = "token"
}

extension ProviderPolicy {
  /// The default policy for invalid tokens, equal to the shipped `policies/token.lua`.
  package static let tokens = ProviderPolicy(
    provider: .token, code: .none, resendAfter: [],
    limits: [
      Limit(
        name: "wrong", action: .verify, key: .ip, max: .fixed(60), window: .fixed(.seconds(3600)), counts: .failures,
        lock: [.fixed(.seconds(900))],
        disables: false, location: SourceLocation(file: "policies/token.lua", line: 0))
    ], unknownAccount: .conceal, message: "", send: nil, verify: nil, locations: [:])
}

/// Counts invalid tokens by client address, in the ledger that all gateways of a store share. What is wrong at the
/// endpoints of an app (secrets, codes, tokens) is counted by client address and app.
///
/// Attack: someone sends wrong secrets of an app, so that its own server is refused. Only the address of the attacker
/// is counted, and only for that app.
///
/// A valid token in the data path's cache does not consult the ledger, so locks are cached here. An entry is trusted
/// for a second before the ledger is asked again, so that a lock that an operator lifts ends at once.
package final class FailedTokenLimiter: Sendable {
  /// The cached state of an address.
  package enum AddressState: Sendable, Equatable {
    case open
    case locked(until: Timestamp)
    /// It was locked a moment ago. The ledger must be asked.
    case unknown
  }

  private struct Key: Hashable {
    let address: ClientAddress
    /// The `client_id` of an app; nil: access tokens of routes.
    let client: String?
  }

  private struct Lock {
    let until: Timestamp
    let checkedAt: Timestamp
  }

  private static let trust: Duration = .seconds(1)
  private static let most = 10_000

  private let store: any Store
  private let generations: ActiveGeneration
  private let keys: KeyRing
  private let clock: any GatewayClock
  private let random: any RandomSource
  private let locks = Mutex<[Key: Lock]>([:])
  private let hasLocks = Atomic<Bool>(false)

  package init(
    store: any Store, generations: ActiveGeneration, keys: KeyRing, clock: any GatewayClock, random: any RandomSource
  ) {
    self.store = store
    self.generations = generations
    self.keys = keys
    self.clock = clock
    self.random = random
  }

  /// The cached state of the address. Does not wait.
  package func state(of address: ClientAddress, at now: Timestamp) -> AddressState {
    guard hasLocks.load(ordering: .acquiring) else { return .open }
    return locks.withLock { locks in
      guard let lock = locks[Key(address: address, client: nil)] else { return .open }
      guard now < lock.until else { return .open }
      return now < lock.checkedAt + Self.trust ? .locked(until: lock.until) : .unknown
    }
  }

  /// Asks the ledger whether tokens from the address are refused. Charges nothing.
  /// - Parameter client: the `client_id` of the app whose endpoints are used; nil for access tokens of routes.
  /// - Returns: until when; nil if they are not refused.
  package func lockedUntil(_ address: ClientAddress, client: String? = nil) async throws(StoreFault) -> Timestamp? {
    let now = clock.now()
    let key = Key(address: address, client: client)
    let limits = limits(for: key)
    guard !limits.isEmpty else { return nil }
    let until = try await store.counters(limits, at: now).filter { $0.isLocked(at: now) }.compactMap(\.lockedUntil)
      .max()
    note(key, until, at: now)
    return until
  }

  /// Counts an invalid token.
  /// - Parameter client: as for `lockedUntil`.
  /// - Returns: until when tokens from the address are refused; nil if the attempt was counted without a lock.
  @discardableResult
  package func charge(_ address: ClientAddress, client: String? = nil) async throws(StoreFault) -> Timestamp? {
    let now = clock.now()
    let key = Key(address: address, client: client)
    let limits = limits(for: key)
    guard !limits.isEmpty else { return nil }
    let id = ReservationID(from: random)
    switch try await store.reserve(ReservationRequest(id: id, now: now, limits: limits, timer: nil)) {
    case .refused(let refusal):
      let until: Timestamp
      switch refusal.reason {
      case .locked(let end), .full(let end), .timer(let end): until = end
      case .disabled: until = now + .seconds(60)
      }
      note(key, until, at: now)
      return until
    case .filledByPending, .barred, .flowChanged: return now + .seconds(1)
    case .reserved:
      let settlement = Settlement(reservation: id, outcome: .failure, limits: limits, timer: nil, now: now)
      guard case .applied(let begun, _) = try await store.apply([.settle(settlement)], at: now) else { return nil }
      if let until = begun.compactMap(\.until).max() {
        note(key, until, at: now)
        let event = AuditEvent(
          id: DecisionID(from: random), at: now, kind: .locked, provider: .token, address: address.description,
          detail: ["limit": begun[0].limit.name, "until": until.text, "app": client].compactMapValues(\.self))
        try await store.append([event])
      }
      return nil
    }
  }

  private func note(_ key: Key, _ until: Timestamp?, at now: Timestamp) {
    locks.withLock { locks in
      if locks.count >= Self.most { locks = locks.filter { now < $0.value.until } }
      // Attack: an unlimited number of locked addresses. If the cache is full it is cleared, and the ledger is asked
      // for those addresses.
      if locks.count >= Self.most { locks = [:] }
      locks[key] = until.map { Lock(until: $0, checkedAt: now) }
      hasLocks.store(!locks.isEmpty, ordering: .releasing)
    }
  }

  private func limits(for key: Key) -> [ResolvedLimit] {
    var subject = StepSubject(
      provider: .token, identifier: nil, account: nil, conceals: false, flow: TokenHash(bytes: []), challenge: nil,
      address: key.address)
    subject.app = key.client
    let resolved = try? generations.current.tokenPolicy.resolve(
      .verify, for: subject, keys: keys, number: { number throws(PolicyFault) in number.fixedValue ?? 1 },
      duration: { length throws(PolicyFault) in length.fixedValue ?? .seconds(3600) })
    // Attack: a limit over all addresses, which others fill, would refuse the app's own server.
    return (resolved ?? []).filter { key.client == nil || $0.key == .ip || $0.key == .network }
  }
}
