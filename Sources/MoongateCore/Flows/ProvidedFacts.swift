import MoongateSDK

/// The facts of a passed step that policies can read: `f.providers.NAME.FACT`, for the rest of the flow.
enum ProvidedFacts {
  /// The maximum length of a value, in bytes.
  private static let longest = 300

  /// Whether a value is short enough.
  static func fits(_ value: String) -> Bool { value.utf8.count <= longest }

  /// The declared facts of a proof, by name. Facts of the proof take precedence over attributes of the identifiers.
  ///
  /// Attack: a provider sends facts with other names, to be read where an operator expects another provider's facts or
  /// the gateway's own. Undeclared facts are dropped, and each provider has a namespace of its own.
  /// - Parameters:
  ///   - identifiers: the identifiers that the step proves or was about.
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
