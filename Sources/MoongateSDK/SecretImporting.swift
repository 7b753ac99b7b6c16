/// A provider that accepts hashes of secrets from other systems. `moongate account import` reads them under the
/// provider's name, and `moongate account export --hashes` prints them.
///
/// ``SecretHasher/verify(_:against:)`` verifies the hash and rehashes the secret at the next sign-in.
public protocol SecretImporting: Provider {
  /// The kinds of hash that it accepts.
  var importedHashes: Set<SecretHashKind> { get }

  /// The record for a hash of another system.
  /// - Parameter hash: of one of the accepted kinds, well formed and at an acceptable cost.
  func record(importing hash: String) -> [UInt8]

  /// The hash in a record; nil if the record contains none.
  func hash(exporting record: [UInt8]) -> String?
}

/// The kinds of hash that the gateway can verify.
public enum SecretHashKind: String, Sendable, CaseIterable, Codable {
  /// `$argon2id$…` and `$argon2i$…`, as PHC strings (RFC 9106).
  case argon2
  /// `$2a$…`, `$2b$…` and `$2y$…`, 60 characters.
  case bcrypt
}
