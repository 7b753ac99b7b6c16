import MoongateSDK

/// A person, as the store keeps them.
package struct Account: Sendable, Equatable, Codable {
  /// `ac_` and 128 bits of randomness in base64url.
  package let id: String
  package var firstName: String?
  package var lastName: String?
  package let createdAt: Timestamp
  package var lastSeenAt: Timestamp
  /// Locked by an operator: no session lives, none begins.
  package var isLocked: Bool
  package var identifiers: [HeldIdentifier]
  /// Which providers have a credential for it: `pin`, `password`.
  package var credentials: Set<ProviderName>
  /// Counts the changes after which nothing that was proved before is believed: a reset, a changed or removed
  /// identifier, password or factor, a lock or disabling by an operator, and signing out everywhere. A flow completes
  /// only under the epoch in which its account became known.
  package var epoch: Int
  /// The language of messages to it (BCP 47); nil: none is known.
  package var language: String?
  /// The groups that an operator added it to, defined in accounts.lua or not.
  package var groups: Set<GroupName>

  package init(
    id: String, firstName: String? = nil, lastName: String? = nil, createdAt: Timestamp, lastSeenAt: Timestamp,
    isLocked: Bool = false,
    identifiers: [HeldIdentifier] = [], credentials: Set<ProviderName> = [], epoch: Int = 0, language: String? = nil,
    groups: Set<GroupName> = []
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
  }

  /// The identifier of a kind: the verified one where there is one.
  package func identifier(_ kind: IdentifierKind) -> HeldIdentifier? {
    identifiers.first { $0.identifier.kind == kind && $0.verifiedAt != nil }
      ?? identifiers.first { $0.identifier.kind == kind }
  }
}

/// An account as it was when it became known to a flow.
package struct AccountVersion: Sendable, Equatable, Codable {
  package let id: String
  /// `Account.epoch` at that moment.
  package let epoch: Int

  package init(id: String, epoch: Int) {
    self.id = id
    self.epoch = epoch
  }

  package init(_ account: Account) { self.init(id: account.id, epoch: account.epoch) }
}

/// An identifier of an account. Only a verified one opens it, and only one account can hold it verified.
package struct HeldIdentifier: Sendable, Equatable, Codable {
  package var identifier: Identifier
  package var verifiedAt: Timestamp?

  package init(identifier: Identifier, verifiedAt: Timestamp?) {
    self.identifier = identifier
    self.verifiedAt = verifiedAt
  }
}
