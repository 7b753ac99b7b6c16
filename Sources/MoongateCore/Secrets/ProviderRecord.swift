import MoongateSDK

/// A full provider's record for an account, with the version of its format.
///
/// Version 1 is sealed without a version. Later versions have a mark and the number before the sealed bytes, and are
/// bound to the number, so that a record is never read in the format of another version.
package struct ProviderRecord: Sendable, Equatable {
  package let bytes: [UInt8]
  /// The `ProviderDescriptor.recordVersion` of the provider that created it.
  package let version: Int

  package init(bytes: [UInt8], version: Int) {
    self.bytes = bytes
    self.version = version
  }

  /// The owner to which the record is bound when sealed.
  package static func owner(_ provider: ProviderName, _ account: String) -> String { "\(provider) \(account)" }

  /// Seals the record for its owner.
  package func sealed(for owner: String, by keys: KeyRing) throws -> [UInt8] {
    guard version > 1 else { return try keys.seal(bytes, for: owner) }
    let number = (0..<4).map { UInt8(truncatingIfNeeded: version >> (24 - 8 * $0)) }
    return Self.mark + number + (try keys.seal(bytes, for: Self.owner(owner, version)))
  }

  /// Opens what `sealed` sealed.
  /// - Throws: if it was changed, moved, or sealed under a key that is not in the ring.
  package init(opening sealed: [UInt8], for owner: String, by keys: KeyRing) throws {
    self = try Self.opening(sealed, for: owner, by: keys).record
  }

  /// Opens what `sealed` sealed.
  /// - Returns: the record, and the name of the key with which it was sealed.
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
    // A nonce is random, so it could begin like the mark. That is very unlikely and must not make opening fail.
    let opened = try keys.opening(sealed, for: owner)
    return (ProviderRecord(bytes: opened.record, version: 1), opened.key)
  }

  private static let mark = Array("moongate record ".utf8)

  private static func owner(_ owner: String, _ version: Int) -> String { "\(owner) version \(version)" }
}
