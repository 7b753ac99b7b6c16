import MoongateSDK

/// An operator's operations on service tokens, for `moongate token` and the admin listener. Each operation is one
/// transaction together with its audit event, and takes effect on every gateway of the store within a second.
package struct ServiceTokens: Sendable {
  private let store: any Store
  private let keys: KeyRing
  private let clock: any GatewayClock
  private let random: any RandomSource
  /// The operator.
  private var actor: OperatorIdentity?

  package init(store: any Store, keys: KeyRing, clock: any GatewayClock, random: any RandomSource) {
    self.store = store
    self.keys = keys
    self.clock = clock
    self.random = random
  }

  /// A copy that records its operations as this operator's.
  package func acting(as identity: OperatorIdentity) -> ServiceTokens {
    var tokens = self
    tokens.actor = identity
    return tokens
  }

  /// Why an operation failed.
  package enum Failure: Error, Sendable, Equatable {
    /// Another token has the name.
    case nameTaken
    /// The token does not exist.
    case unknown
    /// The token has expired, so a new secret would be expired too.
    case expired
    case store(StoreFault)
  }

  /// The properties of a token to create.
  package struct NewToken: Sendable {
    package let name: ServiceTokenName
    package let groups: [GroupName]
    package let lifetime: Duration?
    package let networks: [AddressBlock]

    /// - Parameter lifetime: nil: it does not expire.
    package init(name: ServiceTokenName, groups: [GroupName], lifetime: Duration?, networks: [AddressBlock]) {
      self.name = name
      self.groups = Set(groups).sorted()
      self.lifetime = lifetime
      self.networks = networks
    }
  }

  /// The default for how long the old secret stays valid after a rotation.
  package static let standardOverlap: Duration = .seconds(24 * 3600)

  /// All service tokens, sorted by name.
  package func list() async throws(StoreFault) -> [ServiceToken] {
    let rows = try await store.accessTokens(of: nil)
    let now = clock.now()
    return rows.filter { !$0.isSuperseded }.map { token in
      let previous = rows.filter { $0.isSuperseded && $0.name == token.name && !$0.isExpired(at: now) }.compactMap(
        \.expiresAt
      ).max()
      return ServiceToken(token: token, previousUntil: previous, isExpired: token.isExpired(at: now))
    }
  }

  package func create(_ wanted: NewToken) async throws(Failure) -> CreatedAccessToken {
    let now = clock.now()
    let made = make(
      wanted.name.text, groups: wanted.groups, networks: wanted.networks, expiresAt: wanted.lifetime.map { now + $0 },
      at: now)
    try await apply([.putAccessToken(made.token), .audit(event(.tokenCreated, made.token, at: now))], at: now)
    return made
  }

  /// Gives the token a new secret with the same lifetime as the old one.
  /// - Parameter overlap: how long the old secret stays valid beside the new one.
  package func rotate(_ name: String, overlap: Duration = Self.standardOverlap) async throws(Failure)
    -> CreatedAccessToken
  {
    let now = clock.now()
    guard let old = try await current(name) else { throw .unknown }
    if old.isExpired(at: now) { throw .expired }
    let lifetime = old.expiresAt.map { $0 - old.createdAt }
    let made = make(name, groups: old.groups, networks: old.networks, expiresAt: lifetime.map { now + $0 }, at: now)
    let event = event(.tokenRotated, made.token, at: now, ["replaces": old.id, "overlap": overlap.asWritten])
    try await apply(
      [.supersedeAccessToken(old.id, until: now + overlap), .putAccessToken(made.token), .audit(event)], at: now)
    return made
  }

  /// Revokes the token, including its superseded secrets.
  package func revoke(_ name: String) async throws(Failure) {
    let now = clock.now()
    let rows: [AccessToken]
    do { rows = try await store.accessTokens(of: nil).filter { $0.name == name } } catch { throw .store(error) }
    guard let token = rows.first(where: { !$0.isSuperseded }) else { throw .unknown }
    try await apply(rows.map { Change.endAccessToken($0.id) } + [.audit(event(.tokenRevoked, token, at: now))], at: now)
  }

  /// An audit event about an operator's operation on a token.
  private func event(_ kind: AuditEvent.Kind, _ token: AccessToken, at now: Timestamp, _ more: [String: String] = [:])
    -> AuditEvent
  {
    var event = AuditEvent.about(token, kind, at: now, random, more.merging(actor?.detail ?? [:]) { mine, _ in mine })
    event.address = actor?.address
    return event
  }

  private func current(_ name: String) async throws(Failure) -> AccessToken? {
    do { return try await store.accessTokens(of: nil).first { $0.name == name && !$0.isSuperseded } } catch {
      throw .store(error)
    }
  }

  private func make(
    _ name: String, groups: [GroupName], networks: [AddressBlock], expiresAt: Timestamp?, at now: Timestamp
  ) -> CreatedAccessToken {
    let secret = AccessTokenSecret(from: random).text
    let token = AccessToken(
      id: AccessToken.newID(random), name: name, owner: nil, groups: groups, networks: networks, createdAt: now,
      expiresAt: expiresAt,
      hash: keys.accessTokenHash(secret))
    return CreatedAccessToken(token: token, secret: secret)
  }

  private func apply(_ changes: [Change], at now: Timestamp) async throws(Failure) {
    let result: ApplyResult
    do { result = try await store.apply(changes, at: now) } catch { throw .store(error) }
    switch result {
    case .applied: return
    case .conflict(.tokenNameTaken): throw .nameTaken
    case .conflict: throw .unknown
    }
  }
}

/// A new token with its secret, which cannot be read again.
package struct CreatedAccessToken: Sendable {
  package let token: AccessToken
  package let secret: SecretText
}

/// A service token as its operator sees it.
package struct ServiceToken: Sendable, Equatable {
  package let token: AccessToken
  /// Until when the secret before the last rotation is valid; nil if it is not valid any more.
  package let previousUntil: Timestamp?
  package let isExpired: Bool

  package init(token: AccessToken, previousUntil: Timestamp?, isExpired: Bool) {
    self.token = token
    self.previousUntil = previousUntil
    self.isExpired = isExpired
  }
}

extension AccessToken {
  /// Generates the ID of a new token.
  static func newID(_ random: any RandomSource) -> String { "tk_" + Base64URL.encode(random.bytes(12)) }
}
