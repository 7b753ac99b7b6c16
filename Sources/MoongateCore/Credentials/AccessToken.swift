import MoongateSDK

/// A token by which a program gets through routes that take tokens, without a person: one of the installation's own (a
/// service token), or one that a person has made (a personal token).
///
/// The secret itself is known to its holder alone: the store has a keyed hash of it.
package struct AccessToken: Sendable, Equatable {
  /// `tk_` and 96 random bits in base64url. Not a secret: it names the token in lists, events and changes.
  package let id: String
  /// Of a service token: `ServiceTokenName`, unique among them. Of a personal one: what its owner calls it, unique for
  /// the account.
  package let name: String
  /// The owner of a personal token, as the account was when the token was made; nil for a service token.
  ///
  /// Attack: a thief with a stolen session makes a token, and stays when the owner resets the password or signs out
  /// everywhere. Each of those raises the account's epoch, and a token of an older epoch is dead.
  package let owner: AccountVersion?
  /// Of a service token, sorted. A personal token has the groups that its account has now.
  package let groups: [GroupName]
  /// Where a service token may be used from; empty: from everywhere.
  package let networks: [AddressBlock]
  package let createdAt: Timestamp
  /// From then on it is dead; nil: never.
  package var expiresAt: Timestamp?
  /// Whether another secret has taken its place: it is good until `expiresAt`, and does not hold the name any more.
  package var isSuperseded: Bool
  package var lastUsedAt: Timestamp?
  /// The network (/24 or /48) that it was last used from, such as `203.0.113.0/24`.
  package var lastUsedFrom: String?
  package var hash: AccessTokenHash

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

  /// Whether it has come to its end. At `expiresAt` it has.
  package func isExpired(at now: Timestamp) -> Bool { expiresAt.map { now >= $0 } ?? false }

  /// Whether a client of this address may use it.
  package func admits(_ address: ClientAddress) -> Bool { networks.isEmpty || networks.contains { address.isIn($0) } }

  /// By what a change of it is announced to caches (`SessionChanges.tokens`). It stays the same for as long as the
  /// token lives, which its hash does not.
  package static func announcement(of id: String) -> TokenHash { TokenHash(of: id.utf8) }
}

/// The secret of a token: `mgt_` and 256 random bits in base64url. Programs that scan for leaked secrets know it by its
/// beginning.
package struct AccessTokenSecret: Sendable {
  package static let prefix: StaticString = "mgt_"
  /// In bytes, with the prefix.
  package static let length = 47

  package let text: SecretText

  /// A new one.
  package init(from random: any RandomSource) {
    text = SecretText("\(Self.prefix)\(Base64URL.encode(random.bytes(32)))")
  }
}

/// A token as the store found it.
package struct FoundAccessToken: Sendable, Equatable {
  package let token: AccessToken
  /// The owner of a personal token, as the account is now; nil for a service token, or where the account is gone.
  package let account: Account?

  package init(token: AccessToken, account: Account?) {
    self.token = token
    self.account = account
  }
}

/// One use of a token, to be written down.
package struct AccessTokenUse: Sendable, Equatable {
  package let id: String
  package let at: Timestamp
  /// As `AccessToken.lastUsedFrom`.
  package let network: String
  /// Stored where the token was never used from this network before.
  package let event: AuditEvent

  package init(id: String, at: Timestamp, network: String, event: AuditEvent) {
    self.id = id
    self.at = at
    self.network = network
    self.event = event
  }
}

extension ClientAddress {
  /// Its network as an operator writes it: `203.0.113.0/24`, `2001:db8:1::/48`.
  package var networkText: String { "\(Self.text(networkKey))/\(bytes.count == 4 ? 24 : 48)" }
}

extension SessionSnapshot {
  /// How long a token lives without a request: as long as it lives.
  private static let idle: Duration = .seconds(100 * 365 * 86_400)

  /// What a request with the token is judged by: nobody has passed a step, so nothing that asks for one is met.
  /// - Returns: nil where the token is dead because of its owner: gone, locked, or changed since the token was made.
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
