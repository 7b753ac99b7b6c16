import MoongateSDK

/// A user account as it is stored.
package struct Account: Sendable, Equatable, Codable {
  /// `ac_` followed by 128 random bits in base64url.
  package let id: String
  package var firstName: String?
  package var lastName: String?
  package let createdAt: Timestamp
  package var lastSeenAt: Timestamp
  /// Whether an operator has locked the account, or its import is not complete. A locked account has no live sessions
  /// and cannot sign in.
  package var isLocked: Bool
  package var identifiers: [HeldIdentifier]
  /// The providers that have a credential for the account, such as `pin` or `password`.
  package var credentials: Set<ProviderName>
  /// A counter that increases with every change that invalidates earlier proofs: a reset, a changed or removed
  /// identifier, password or factor, a lock or disabling by an operator, and signing out everywhere. A flow can only
  /// complete in the epoch in which it identified the account.
  package var epoch: Int
  /// The language of messages to the account, as a BCP 47 tag; nil if unknown.
  package var language: String?
  /// The groups that an operator added the account to. accounts.lua may not define all of them.
  package var groups: Set<GroupName>
  /// The devices that are trusted for the account (`TrustedDevice.id`).
  package var devices: Set<String>
  /// When each factor was last reset by something else that the account holds.
  package var resets: [ProviderName: Timestamp]
  /// The secrets that must be replaced before the next session (`SignInRequirements.requireChange`), and why.
  package var dueChanges: [ProviderName: DueChange] = [:]
  /// Whether its import is not complete. If the import stops, the account is deleted.
  package var isPending = false

  /// More than five parameters: one for each field.
  package init(
    id: String, firstName: String? = nil, lastName: String? = nil, createdAt: Timestamp, lastSeenAt: Timestamp,
    isLocked: Bool = false,
    identifiers: [HeldIdentifier] = [], credentials: Set<ProviderName> = [], epoch: Int = 0, language: String? = nil,
    groups: Set<GroupName> = [], devices: Set<String> = [], resets: [ProviderName: Timestamp] = [:]
  ) {
    self.id = id
    self.firstName = firstName
    self.lastName = lastName
    self.createdAt = createdAt
    self.lastSeenAt = lastSeenAt
    self.isLocked = isLocked
    self.identifiers = identifiers
    self.credentials = credentials
    self.epoch = epoch
    self.language = language
    self.groups = groups
    self.devices = devices
    self.resets = resets
  }

  /// The account's identifier of a kind. Prefers a verified one.
  package func identifier(_ kind: IdentifierKind) -> HeldIdentifier? {
    identifiers.first { $0.identifier.kind == kind && $0.verifiedAt != nil }
      ?? identifiers.first { $0.identifier.kind == kind }
  }
}

extension Account {
  /// Whether the account has an identifier that no other account can have. Without one, it belongs to whoever verifies
  /// an address that it claims.
  package var hasOwnIdentifier: Bool { identifiers.contains(where: \.isOwn) }
}

/// An account at the time at which a flow identified it.
package struct AccountVersion: Sendable, Equatable, Codable {
  package let id: String
  /// The value of `Account.epoch` at that time.
  package let epoch: Int

  package init(id: String, epoch: Int) {
    self.id = id
    self.epoch = epoch
  }

  package init(_ account: Account) { self.init(id: account.id, epoch: account.epoch) }
}

/// An identifier of an account. Only a verified one can be used to sign in by itself, and only one account can hold it
/// verified.
package struct HeldIdentifier: Sendable, Equatable, Codable {
  package var identifier: Identifier
  package var verifiedAt: Timestamp?
  /// Until when it signs nobody in, because it came from an account that was merged into this one; nil: it does.
  package var waitsUntil: Timestamp?

  package init(identifier: Identifier, verifiedAt: Timestamp?, waitsUntil: Timestamp? = nil) {
    self.identifier = identifier
    self.verifiedAt = verifiedAt
    self.waitsUntil = waitsUntil
  }

  /// Whether no other account can have it: it is verified, or of a kind that only one account can have.
  package var isOwn: Bool { verifiedAt != nil || identifier.kind.isExclusive }
}
