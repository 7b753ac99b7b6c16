import MoongateSDK

/// What a provider tells policies about a step that has passed: `f.providers.NAME.FACT` for the rest of the flow.
enum ProvidedFacts {
  /// The longest value, in bytes.
  private static let longest = 300

  /// Whether a value is short enough.
  static func fits(_ value: String) -> Bool { value.utf8.count <= longest }

  /// The declared facts of a proof, by name; those of the proof itself first, then attributes of what it proves.
  ///
  /// Attack: a provider that tells facts of other names, to be read where an operator expects another provider's or the
  /// gateway's own. What is not declared is dropped, and each provider has a place of its own.
  /// - Parameters:
  ///   - identifiers: what the step proves, or was about.
  static func of(_ descriptor: ProviderDescriptor, _ proof: Proof, about identifiers: [Identifier]) -> [String: String]
  {
    var facts: [String: String] = [:]
    for field in descriptor.facts {
      let attributed = descriptor.of(field).flatMap { kind in
        identifiers.first { $0.kind == kind }?.attributes[field.name]
      }
      if let value = proof.facts[field.name] ?? attributed, fits(value) { facts[field.name] = value }
    }
    return facts
  }
}
