import MoongateSDK

/// Stores when the sites of identities are asked about them again (`IdentityRechecks`). `Change.putRecheck` writes it.
package protocol RecheckStore: Sendable {
  /// Claims rechecks that are due, the most overdue first. Until the given time no other gateway gets them.
  func claimRechecks(limit: Int, until end: Timestamp, at now: Timestamp) async throws(StoreFault) -> [ClaimedRecheck]
}

/// When and by what an identity is rechecked.
package struct StoredRecheck: Sendable, Equatable {
  package let provider: ProviderName
  /// `Proof.recheck`, sealed for the identity; empty if no proof has brought one; nil to keep what is stored.
  package let sealed: [UInt8]?
  /// The last time at which the site has confirmed the identity.
  package let confirmedAt: Timestamp
  package let dueAt: Timestamp

  package init(provider: ProviderName, sealed: [UInt8]?, confirmedAt: Timestamp, dueAt: Timestamp) {
    self.provider = provider
    self.sealed = sealed
    self.confirmedAt = confirmedAt
    self.dueAt = dueAt
  }
}

/// A recheck that this gateway has claimed.
package struct ClaimedRecheck: Sendable, Equatable {
  package let account: String
  package let identity: Identifier
  package let recheck: StoredRecheck
  /// Increases with each claim and each proof of the identity. Writes under an older one are refused.
  package let fence: Int64

  package init(account: String, identity: Identifier, recheck: StoredRecheck, fence: Int64) {
    self.account = account
    self.identity = identity
    self.recheck = recheck
    self.fence = fence
  }
}
