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

/// Counts invalid tokens by client address, in the ledger that all gateways of a store share.
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
  private let locks = Mutex<[ClientAddress: Lock]>([:])
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
      guard let lock = locks[address] else { return .open }
      guard now < lock.until else { return .open }
      return now < lock.checkedAt + Self.trust ? .locked(until: lock.until) : .unknown
    }
  }

  /// Asks the ledger whether tokens from the address are refused. Charges nothing.
  /// - Returns: until when; nil if they are not refused.
  package func lockedUntil(_ address: ClientAddress) async throws(StoreFault) -> Timestamp? {
    let now = clock.now()
    let limits = limits(for: address)
    guard !limits.isEmpty else { return nil }
    let until = try await store.counters(limits, at: now).filter { $0.isLocked(at: now) }.compactMap(\.lockedUntil)
      .max()
    note(address, until, at: now)
    return until
  }

  /// Counts an invalid token.
  /// - Returns: until when tokens from the address are refused; nil if the attempt was counted without a lock.
  package func charge(_ address: ClientAddress) async throws(StoreFault) -> Timestamp? {
    let now = clock.now()
    let limits = limits(for: address)
    guard !limits.isEmpty else { return nil }
    let id = ReservationID(from: random)
    switch try await store.reserve(ReservationRequest(id: id, now: now, limits: limits, timer: nil)) {
    case .refused(let refusal):
      let until: Timestamp
      switch refusal.reason {
      case .locked(let end), .full(let end), .timer(let end): until = end
      case .disabled: until = now + .seconds(60)
      }
      note(address, until, at: now)
      return until
    case .filledByPending, .barred, .flowChanged: return now + .seconds(1)
    case .reserved:
      let settlement = Settlement(reservation: id, outcome: .failure, limits: limits, timer: nil, now: now)
      guard case .applied(let begun, _) = try await store.apply([.settle(settlement)], at: now) else { return nil }
      if let until = begun.compactMap(\.until).max() {
        note(address, until, at: now)
        let event = AuditEvent(
          id: DecisionID(from: random), at: now, kind: .locked, provider: .token, address: address.description,
          detail: ["limit": begun[0].limit.name, "until": until.text])
        try await store.append([event])
      }
      return nil
    }
  }

  private func note(_ address: ClientAddress, _ until: Timestamp?, at now: Timestamp) {
    locks.withLock { locks in
      if locks.count >= Self.most { locks = locks.filter { now < $0.value.until } }
      // Attack: an unlimited number of locked addresses. If the cache is full it is cleared, and the ledger is asked
      // for those addresses.
      if locks.count >= Self.most { locks = [:] }
      locks[address] = until.map { Lock(until: $0, checkedAt: now) }
      hasLocks.store(!locks.isEmpty, ordering: .releasing)
    }
  }

  private func limits(for address: ClientAddress) -> [ResolvedLimit] {
    let subject = StepSubject(
      provider: .token, identifier: nil, account: nil, conceals: false, flow: TokenHash(bytes: []), challenge: nil,
      address: address)
    let resolved = try? generations.current.tokenPolicy.resolve(
      .verify, for: subject, keys: keys, number: { number throws(PolicyFault) in number.fixedValue ?? 1 },
      duration: { length throws(PolicyFault) in length.fixedValue ?? .seconds(3600) })
    return resolved ?? []
  }
}
