/// A provider that can try its site before users do. `moongate doctor` calls it, and the gateway when it
/// starts.
public protocol SiteProbing: Provider {
  /// Requests what a sign-in would need, and nothing that has an effect.
  /// - Returns: a sentence about what was found; nil if there was nothing to try.
  /// - Throws: what is wrong. Must not contain a secret.
  func probe(with tools: StepTools) async throws -> String?
}
