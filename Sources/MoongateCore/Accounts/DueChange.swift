/// Why an account must replace a secret, such as its password, before its next session. The raw value is stored, and is
/// the value of `change_due` in the API.
package enum DueChange: String, Sendable, Codable, CaseIterable {
  /// Attackers know the secret from a data breach (`SecretExposure`).
  case breached
  /// It was imported with a hash from which most secrets can be found out (`StoredHash.isWeak`).
  case weak
}
