import MoongateSDK

/// What a full provider keeps for an account, with the version of its form.
///
/// Version 1 is sealed as it always was. A later one has a mark and its number before the sealed bytes, and is bound to
/// the number: a gateway that does not know versions cannot open it and answers a fault, so that no older provider
/// reads a newer form for its own. Where such a gateway has written over the record, the mark is gone, and it is of
/// version 1 again.
package struct ProviderRecord: Sendable, Equatable {
  package let bytes: [UInt8]
  /// `ProviderDescriptor.recordVersion` of the provider that made it.
  package let version: Int

  package init(bytes: [UInt8], version: Int) {
    self.bytes = bytes
    self.version = version
  }

  /// Whose record it is, as it is sealed for.
  package static func owner(_ provider: ProviderName, _ account: String) -> String { "\(provider) \(account)" }

  /// Seals it for its owner.
  package func sealed(for owner: String, by keys: KeyRing) throws -> [UInt8] {
    guard version > 1 else { return try keys.seal(bytes, for: owner) }
    let number = (0..<4).map { UInt8(truncatingIfNeeded: version >> (24 - 8 * $0)) }
    return Self.mark + number + (try keys.seal(bytes, for: Self.owner(owner, version)))
  }

  /// Opens what `sealed` made.
  /// - Throws: where it was changed, moved, or sealed under a key that is not in the ring.
  package init(opening sealed: [UInt8], for owner: String, by keys: KeyRing) throws {
    self = try Self.opening(sealed, for: owner, by: keys).record
  }

  /// Opens what `sealed` made.
  /// - Returns: the record, and the name of the key that it was sealed with.
  static func opening(_ sealed: [UInt8], for owner: String, by keys: KeyRing) throws -> (
    record: ProviderRecord, key: String
  ) {
    let head = mark.count + 4
    if sealed.starts(with: mark), sealed.count > head {
      let version = sealed[mark.count..<head].reduce(0) { $0 << 8 | Int($1) }
      if let opened = try? keys.opening(Array(sealed[head...]), for: Self.owner(owner, version)) {
        return (ProviderRecord(bytes: opened.record, version: version), opened.key)
      }
    }
    // A nonce is random: that one begins like the mark is not to be expected, and is no reason to fail.
    let opened = try keys.opening(sealed, for: owner)
    return (ProviderRecord(bytes: opened.record, version: 1), opened.key)
  }

  private static let mark = Array("moongate record ".utf8)

  private static func owner(_ owner: String, _ version: Int) -> String { "\(owner) version \(version)" }
}
