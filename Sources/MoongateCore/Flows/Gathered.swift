import MoongateSDK

/// What a flow has gathered on its way and hands over when it completes: until then nothing of it touches an account.
package struct Gathered: Sendable, Equatable, Codable {
  /// What they say is theirs and nobody has proved.
  package var claimed: [Identifier] = []
  package var firstName: String?
  package var lastName: String?
  /// What providers want to keep, or to remove, of the account that the flow ends in.
  package var records: [ProviderName: KeptRecord] = [:]

  package init() {}
}

/// What becomes of one provider's record.
package struct KeptRecord: Sendable, Equatable, Codable {
  /// Sealed for the flow, since its account may not exist yet; nil: to be removed.
  package let sealed: [UInt8]?

  package init(sealed: [UInt8]?) { self.sealed = sealed }
}

extension KeyedDecodingContainer {
  /// A flow that an older program stored has gathered nothing.
  func decode(_ type: Gathered.Type, forKey key: Key) throws -> Gathered { try decodeIfPresent(Gathered.self, forKey: key) ?? Gathered() }
}
