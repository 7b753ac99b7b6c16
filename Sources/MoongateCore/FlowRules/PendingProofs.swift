import MoongateSDK

/// What a flow has gathered on its way and hands over when it completes: until then nothing of it touches an account.
package struct PendingProofs: Sendable, Equatable, Codable {
  /// What they say is theirs and nobody has proved.
  package var claimed: [Identifier] = []
  package var firstName: String?
  package var lastName: String?
  /// What providers want to keep, or to remove, of the account that the flow ends in.
  package var records: [ProviderName: StoredRecord] = [:]

  package init() {}
}

/// What becomes of one provider's record.
package struct StoredRecord: Sendable, Equatable, Codable {
  /// The record by which a proof was judged.
  package struct Judged: Sendable, Equatable, Codable {
    /// Of its sealed bytes; nil: there was none.
    package let hash: TokenHash?

    package init(hash: TokenHash?) { self.hash = hash }
  }

  /// Sealed for the flow, since its account may not exist yet; nil: to be removed.
  package let sealed: [UInt8]?
  /// Where the proof is good once: the account's record must still be this one when the flow completes.
  package let judgedBy: Judged?
  /// Whether it is only the judged record in a newer form: then it gives way to whatever has taken that one's place,
  /// and no flow is refused for it.
  package let isRenewal: Bool?

  package init(sealed: [UInt8]?, judgedBy: Judged? = nil, isRenewal: Bool? = nil) {
    self.sealed = sealed
    self.judgedBy = judgedBy
    self.isRenewal = isRenewal
  }
}

extension KeyedDecodingContainer {
  /// A flow that an older program stored has gathered nothing.
  func decode(_ type: PendingProofs.Type, forKey key: Key) throws -> PendingProofs {
    try decodeIfPresent(PendingProofs.self, forKey: key) ?? PendingProofs()
  }
}
