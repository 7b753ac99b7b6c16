import MoongateSDK

/// A token with which a program can use routes that accept tokens, without a user: a service token of the installation,
/// or a personal token that a user has created.
///
/// Only the holder knows the secret; the store has a keyed hash of it.
package struct AccessToken: Sendable, Equatable {
  /// `tk_` followed by 96 random bits in base64url. Not a secret: it identifies the token in lists, events and changes.
  package let id: String
  /// For a service token: its `ServiceTokenName`, which is unique. For a personal token: a name chosen by its owner,
  /// unique within the account.
  package let name: String
  /// The owner of a personal token, as the account was when the token was created; nil for a service token.
  ///
  /// Attack: a thief with a stolen session creates a token, and keeps access when the owner resets the password or
  /// signs out everywhere. Each of those raises the account's epoch, and a token of an older epoch is invalid.
  package let owner: AccountVersion?
  /// The groups of a service token, sorted. A personal token has the current groups of its account.
  package let groups: [GroupName]
  /// The networks from which a service token may be used; empty: from everywhere.
  package let networks: [AddressBlock]
  package let createdAt: Timestamp
  /// When it expires; nil: never.
  package var expiresAt: Timestamp?
  /// Whether its secret was replaced by a new one. It then stays valid until `expiresAt`, but no longer occupies its
  /// name.
  package var isSuperseded: Bool
  package var lastUsedAt: Timestamp?
  /// The network (/24 or /48) of its last use, such as `203.0.113.0/24`.
  package var lastUsedFrom: String?
  package var hash: AccessTokenHash

  /// More than five parameters: one for each field.
  package init(
    id: String, name: String, owner: AccountVersion?, groups: [GroupName] = [], networks: [AddressBlock] = [],
    createdAt: Timestamp,
    expiresAt: Timestamp?, isSuperseded: Bool = false, lastUsedAt: Timestamp? = nil, lastUsedFrom: String? = nil,
    hash: AccessTokenHash
  ) {
    self.id = id
    self.name = name
    self.owner = owner
    self.groups = groups
    self.networks = networks
    self.createdAt = createdAt
    self.expiresAt = expiresAt
    self.isSuperseded = isSuperseded
    self.lastUsedAt = lastUsedAt
    self.lastUsedFrom = lastUsedFrom
    self.hash = hash
  }

  /// Whether it has expired. It is expired at `expiresAt`.
  package func isExpired(at now: Timestamp) -> Bool { expiresAt.map { now >= $0 } ?? false }

  /// Whether a client with this address may use it.
  package func admits(_ address: ClientAddress) -> Bool { networks.isEmpty || networks.contains { address.isIn($0) } }

  /// The hash by which changes of the token are announced to caches (`SessionChanges.tokens`). Unlike the token's own
  /// hash, it never changes.
  package static func announcement(of id: String) -> TokenHash { TokenHash(of: id.utf8) }
}

/// The secret of a token: `mgt_` followed by 256 random bits in base64url. Scanners for leaked secrets recognise the
/// prefix.
package struct AccessTokenSecret: Sendable {
  package static let prefix: StaticString = "mgt_"
  /// In bytes, including the prefix.
  package static let length = 47

  package let text: SecretText

  /// Generates a secret.
  package init(from random: any RandomSource) {
    text = SecretText("\(Self.prefix)\(Base64URL.encode(random.bytes(32)))")
  }
}

/// A token as it is stored.
package struct FoundAccessToken: Sendable, Equatable {
  package let token: AccessToken
  /// The current account of a personal token's owner; nil for a service token, or if the account no longer exists.
  package let account: Account?

  package init(token: AccessToken, account: Account?) {
    self.token = token
    self.account = account
  }
}

/// A use of a token, to be recorded.
package struct AccessTokenUse: Sendable, Equatable {
  package let id: String
  package let at: Timestamp
  /// In the form of `AccessToken.lastUsedFrom`.
  package let network: String
  /// Stored if the token was never used from this network before.
  package let event: AuditEvent

  package init(id: String, at: Timestamp, network: String, event: AuditEvent) {
    self.id = id
    self.at = at
    self.network = network
    self.event = event
  }
}

extension ClientAddress {
  /// The network in CIDR notation: `203.0.113.0/24`, `2001:db8:1::/48`.
  package var networkText: String { "\(Self.text(networkKey))/\(bytes.count == 4 ? 24 : 48)" }
}

extension SessionSnapshot {
  /// The idle timeout of a token's session: unlimited in practice.
  private static let idle: Duration = .seconds(100 * 365 * 86_400)

  /// The session for a request with the token. It has passed no steps, so it meets no requirement that asks for one.
  /// - Returns: nil if the token is invalid because its owner was deleted, locked, or changed since the token was
  ///   created.
  package init?(_ found: FoundAccessToken) {
    let token = found.token
    let account: Account
    if let owner = token.owner {
      guard let held = found.account, held.id == owner.id, held.epoch == owner.epoch, !held.isLocked else { return nil }
      account = held
    } else {
      account = Account(id: "token:\(token.name)", createdAt: token.createdAt, lastSeenAt: token.createdAt)
    }
    self.init(
      session: Session(
        id: token.id, token: AccessToken.announcement(of: token.id), account: account.id, createdAt: token.createdAt,
        expiresAt: token.expiresAt ?? Timestamp(milliseconds: .max), idle: Self.idle,
        lastSeenAt: token.lastUsedAt ?? token.createdAt, passed: [],
        userAgent: nil), account: account, token: token)
  }
}
