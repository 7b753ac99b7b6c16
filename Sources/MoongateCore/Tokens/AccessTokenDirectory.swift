import Logging

/// Resolves access tokens for the data path.
package struct AccessTokenDirectory: Sendable {
  /// The result of looking up a token.
  package enum Answer: Sendable {
    case live(SessionSnapshot)
    /// The token does not exist or has ended. The failure was counted against the client address.
    case wrong
    /// Tokens from this address are refused until this time.
    case locked(until: Timestamp)
  }

  package let limiter: FailedTokenLimiter
  private let store: any Store
  private let keys: KeyRing
  private let clock: any GatewayClock
  private let random: any RandomSource
  private let logger: Logger

  /// More than five parameters: one for each service.
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

  /// Looks up a token. An invalid token is counted before the call returns.
  ///
  /// The ledger is checked before the lookup and charged after it, so that a valid token leaves no trace. Of invalid
  /// tokens that arrive at the same moment, a few more than the limit may therefore be looked up (as many as one event
  /// loop requests at once), which does not matter with 256 bits.
  /// - Parameter secret: nil for a text that cannot be a token. It is counted as an invalid one.
  package func find(_ secret: SecretText?, from address: ClientAddress) async throws(StoreFault) -> Answer {
    if let until = try await limiter.lockedUntil(address) { return .locked(until: until) }
    if let secret, let snapshot = try await find(secret) { return .live(snapshot) }
    if let until = try await limiter.charge(address) { return .locked(until: until) }
    return .wrong
  }

  /// Looks up a known token again, for connections that last as long as their token is valid.
  package func find(_ id: String) async throws(StoreFault) -> SessionSnapshot? {
    guard let found = try await store.accessToken(id) else { return nil }
    return live(found)
  }

  private func find(_ secret: SecretText) async throws(StoreFault) -> SessionSnapshot? {
    let hashes = keys.accessTokenHashes(secret)
    guard let found = try await store.accessToken(hashed: hashes.map(\.bytes)), let snapshot = live(found) else {
      return nil
    }
    // Only its holder's request contains the secret that is needed to move the hash to another key (`moongate keys
    // retire` waits for that).
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

  /// Records the uses of tokens, and reports networks that are new for a token.
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
  /// More than five parameters: the members of the event.
  /// An audit event about a token. Contains its ID, never its secret.
  package static func about(
    _ token: AccessToken, _ kind: Kind, at now: Timestamp, _ random: any RandomSource, address: ClientAddress? = nil,
    _ more: [String: String] = [:]
  ) -> AuditEvent {
    // The name of a personal token may be private, and its ID is enough to find it.
    let name = token.owner == nil ? ["name": token.name] : [:]
    return AuditEvent(
      id: DecisionID(from: random), at: now, kind: kind, account: token.owner?.id, address: address?.description,
      detail: ["token": token.id].merging(name) { $1 }.merging(more) { $1 })
  }
}
