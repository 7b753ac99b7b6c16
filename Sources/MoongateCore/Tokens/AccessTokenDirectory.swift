import Logging

/// Finds out whose a token is, for the data path.
package struct AccessTokenDirectory: Sendable {
  /// What a token came to.
  package enum Answer: Sendable {
    case live(SessionSnapshot)
    /// There is none like it, or it is over. It was counted against its address.
    case wrong
    /// Tokens of the address are refused until then.
    case locked(until: Timestamp)
  }

  package let limiter: FailedTokenLimiter
  private let store: any Store
  private let keys: KeyRing
  private let clock: any GatewayClock
  private let random: any RandomSource
  private let logger: Logger

  package init(
    store: any Store, generations: ActiveGeneration, keys: KeyRing, clock: any GatewayClock, random: any RandomSource,
    logger: Logger
  ) {
    limiter = FailedTokenLimiter(store: store, generations: generations, keys: keys, clock: clock, random: random)
    self.store = store
    self.keys = keys
    self.clock = clock
    self.random = random
    self.logger = logger
  }

  /// Looks a token up. A wrong one is counted before the answer.
  ///
  /// The ledger is asked before the token is, and charged after it: a right one leaves no trace. So of wrong ones that
  /// come at the same moment a few more are looked up than the limit says (as many as one event loop asks for at once),
  /// which is nothing against 256 bits.
  /// - Parameter secret: nil for a text that cannot be a token: it is counted like a wrong one.
  package func find(_ secret: SecretText?, from address: ClientAddress) async throws(StoreFault) -> Answer {
    if let until = try await limiter.lockedUntil(address) { return .locked(until: until) }
    if let secret, let snapshot = try await find(secret) { return .live(snapshot) }
    if let until = try await limiter.charge(address) { return .locked(until: until) }
    return .wrong
  }

  /// Looks up again what was found before: for what lives as long as its token.
  package func find(_ id: String) async throws(StoreFault) -> SessionSnapshot? {
    guard let found = try await store.accessToken(id) else { return nil }
    return live(found)
  }

  private func find(_ secret: SecretText) async throws(StoreFault) -> SessionSnapshot? {
    let hashes = keys.accessTokenHashes(secret)
    guard let found = try await store.accessToken(hashed: hashes.map(\.bytes)), let snapshot = live(found) else {
      return nil
    }
    // Only who brings the secret can move it to another key (`moongate keys retire` waits for that).
    if let current = hashes.first, found.token.hash.key != current.key {
      do {
        try await store.rehashAccessToken(found.token.id, from: found.token.hash, to: current, at: clock.now())
      } catch {
        logger.warning(
          "a token could not be moved to the current key",
          metadata: ["token": "\(found.token.id)", "fault": "\(error)"])
      }
    }
    return snapshot
  }

  private func live(_ found: FoundAccessToken) -> SessionSnapshot? {
    found.token.isExpired(at: clock.now()) ? nil : SessionSnapshot(found)
  }

  /// Writes down what tokens were used, and tells of networks that are new.
  package func record(_ uses: [(token: AccessToken, at: Timestamp, address: ClientAddress)]) async throws(StoreFault) {
    let written = uses.map { use in
      AccessTokenUse(
        id: use.token.id, at: use.at, network: use.address.networkText,
        event: .about(
          use.token, .tokenUsed, at: use.at, random, address: use.address, ["network": use.address.networkText]))
    }
    if !written.isEmpty { try await store.recordAccessTokenUses(written) }
  }
}

extension AuditEvent {
  /// A line about a token: which one, never its secret.
  package static func about(
    _ token: AccessToken, _ kind: Kind, at now: Timestamp, _ random: any RandomSource, address: ClientAddress? = nil,
    _ more: [String: String] = [:]
  ) -> AuditEvent {
    // What a person calls a token may tell of them: the id is enough to find it.
    let name = token.owner == nil ? ["name": token.name] : [:]
    return AuditEvent(
      id: DecisionID(from: random), at: now, kind: kind, account: token.owner?.id, address: address?.description,
      detail: ["token": token.id].merging(name) { $1 }.merging(more) { $1 })
  }
}
