/// A provider that takes the hashes of secrets from other systems: `moongate account import` reads them under the
/// provider's name, and `moongate account export --hashes` prints them.
///
/// The hash is verified by ``SecretHasher/verify(_:against:)``, which makes it anew at the next sign-in.
public protocol SecretImporting: Provider {
  /// The kinds of hash that it takes.
  var importedHashes: Set<SecretHashKind> { get }

  /// The record that keeps a hash of another system.
  /// - Parameter hash: of one of the kinds, well formed and at a cost that can be afforded.
  func record(importing hash: String) -> [UInt8]

  /// The hash in a record; nil where there is none.
  func hash(exporting record: [UInt8]) -> String?
}

/// The kinds of hash that the gateway can verify.
public enum SecretHashKind: String, Sendable, CaseIterable, Codable {
  /// `$argon2id$…` and `$argon2i$…`, as PHC strings (RFC 9106).
  case argon2
  /// `$2a$…`, `$2b$…` and `$2y$…`, 60 characters.
  case bcrypt
}
