import MoongateSDK

/// What a flow has collected so far, and hands over when it completes. Nothing of it changes an account before that.
package struct PendingProofs: Sendable, Equatable, Codable {
  /// Identifiers that the user has claimed but not verified.
  package var claimed: [Identifier] = []
  package var firstName: String?
  package var lastName: String?
  /// The records that providers store in, or remove from, the flow's account.
  package var records: [ProviderName: StoredRecord] = [:]
  /// The providers that have accepted a secret that attackers know; nil: none.
  package var exposed: Set<ProviderName>?
  /// The identities that are rechecked from now on, by their providers; nil: none.
  package var rechecks: [ProviderName: PendingRecheck]?

  package init() {}
}

/// An identity that its provider has proved and can recheck.
package struct PendingRecheck: Sendable, Equatable, Codable {
  package let identity: Identifier
  /// `Proof.recheck`, sealed for the identity; nil if the provider has nothing new.
  package let sealed: [UInt8]?
  /// When it was proved.
  package let at: Timestamp
}

/// The change of one provider's record.
package struct StoredRecord: Sendable, Equatable, Codable {
  /// The record by which a proof was judged.
  package struct Judged: Sendable, Equatable, Codable {
    /// The hash of its sealed bytes; nil if there was no record.
    package let hash: TokenHash?

    package init(hash: TokenHash?) { self.hash = hash }
  }

  /// Sealed for the flow, because its account may not exist yet; nil to remove the record.
  package let sealed: [UInt8]?
  /// For a proof that is valid once: the account's record must still be this one when the flow completes.
  package let judgedBy: Judged?
  /// Whether it is only the judged record in a newer form. If another record was stored in the meantime, the renewal is
  /// dropped and the flow is not refused.
  package let isRenewal: Bool?

  package init(sealed: [UInt8]?, judgedBy: Judged? = nil, isRenewal: Bool? = nil) {
    self.sealed = sealed
    self.judgedBy = judgedBy
    self.isRenewal = isRenewal
  }
}
