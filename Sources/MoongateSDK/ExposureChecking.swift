/// A provider that finds out whether attackers know a secret, such as from a list of leaked passwords.
///
/// The core asks about a new secret before it is hashed, and about an existing one after it was accepted at a sign-in.
/// It never asks about a wrong secret, so the time of an answer tells nothing about an account.
public protocol ExposureChecking: FullProvider {
  /// Whether the operator has turned the check on.
  func checksExposure(_ settings: StepSettings) -> Bool

  /// Looks the secret up. Must answer within two seconds and must not depend on the account: the answer for a new
  /// secret would reveal whether an address is known.
  /// - Parameter input: the fields of `submit`, which `check` has accepted.
  func exposure(_ step: StepContext, _ input: ProviderInput) async -> SecretExposure
}

/// Whether attackers know a secret.
public enum SecretExposure: Sendable, Equatable {
  /// As far as the source knows, they do not.
  case notFound
  /// It could not be looked up. The secret is accepted: a source that is down keeps nobody out.
  /// - Parameter reason: for the audit trail. Must not depend on the secret.
  case unknown(reason: String)
  /// They do.
  /// - Parameters:
  ///   - problem: why a new secret is refused.
  ///   - demandsChange: whether an existing secret must be replaced before the sign-in completes.
  case found(InputProblem, demandsChange: Bool)
}
