import MoongateSDK

// The documents that providers publish under `/.well-known/`.

extension ProviderRegistry {
  /// The names of the documents that the configured providers publish.
  package func wellKnown(in generation: any PolicyGeneration) -> Set<String> {
    Set(all.filter { generation.policies[$0.descriptor.name] != nil }.flatMap { $0.descriptor.wellKnown })
  }

  /// The configured provider that publishes the document. If a provider has several instances, the first one.
  package func publisher(of document: String, in generation: any PolicyGeneration) -> (any WellKnownPublisher)? {
    all.lazy.filter { generation.policies[$0.descriptor.name] != nil && $0.descriptor.wellKnown.contains(document) }
      .compactMap { $0 as? any WellKnownPublisher }.first
  }
}
