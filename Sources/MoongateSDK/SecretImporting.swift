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
  /// PBKDF2 with SHA-1, SHA-256 or SHA-512, of Django, Keycloak, ASP.NET Core Identity, passlib and Werkzeug.
  case pbkdf2
  /// scrypt, of Firebase, Django, Node, passlib and Werkzeug.
  case scrypt
  /// `$5$…` and `$6$…`.
  case shaCrypt = "sha_crypt"
  /// `{SSHA}…`, `{SSHA512}…` and others of LDAP servers.
  case saltedDigest = "salted_digest"
  /// `$1$…`, `{SMD5}…`, `{MD5}…` and `md5$…`.
  case md5
}
