import MoongateSDK

/// The providers of this program, in the order of its list.
package struct ProviderRegistry: Sendable {
  package let all: [any Provider]
  private let byName: [ProviderName: any Provider]
  /// The descriptor of each provider, read once. Attack: a descriptor that changes with every call, with a secret in
  /// the sentence of an outcome.
  private let descriptors: [ProviderName: ProviderDescriptor]
  package let identityProvers: IdentityProvers

  /// - Throws: the first mistake in a provider, or a name that two providers share.
  package init(_ providers: [any Provider]) throws(ProviderMistake) {
    var byName: [ProviderName: any Provider] = [:]
    var descriptors: [ProviderName: ProviderDescriptor] = [:]
    for provider in providers {
      let descriptor = provider.descriptor
      if let mistake = (descriptor.mistakes + Self.clashes(of: descriptor)).first {
        throw ProviderMistake(provider: descriptor.name, mistake)
      }
      if byName.updateValue(provider, forKey: descriptor.name) != nil {
        throw ProviderMistake(provider: descriptor.name, "two providers of this program have this name")
      }
      if descriptor.receivesWebhooks, !(provider is any WebhookReceiver) {
        throw ProviderMistake(provider: descriptor.name, "it declares `receivesWebhooks` but is not a WebhookReceiver")
      }
      if descriptor.rechecks, !(provider is any Rechecking) {
        throw ProviderMistake(provider: descriptor.name, "it declares `rechecks` but is not Rechecking")
      }
      // Attack: a code that "reaches" a name verifies it.
      if provider is any CodeProvider, !descriptor.identifierKinds.allSatisfy(\.canBeVerified) {
        throw ProviderMistake(provider: descriptor.name, "it sends codes to names, which receive none")
      }
      if !descriptor.wellKnown.isEmpty, !(provider is any WellKnownPublisher) {
        throw ProviderMistake(provider: descriptor.name, "it declares `wellKnown` but is not a WellKnownPublisher")
      }
      if let page = descriptor.page, let other = descriptors.values.first(where: { $0.page == page }) {
        throw ProviderMistake(provider: descriptor.name, "its page `\(page)` is already the page of `\(other.name)`")
      }
      descriptors[descriptor.name] = descriptor
    }
    all = providers
    self.byName = byName
    self.descriptors = descriptors
    identityProvers = IdentityProvers(providers.compactMap { descriptors[$0.descriptor.name] })
  }

  /// The same registry with providers that stand in for its own. Their descriptors are not checked again.
  /// - Parameter replace: gives a provider with an equal descriptor.
  package init(of registry: ProviderRegistry, _ replace: (any Provider) -> any Provider) {
    all = registry.all.map(replace)
    byName = Dictionary(uniqueKeysWithValues: zip(registry.all.map(\.descriptor.name), all))
    descriptors = registry.descriptors
    identityProvers = registry.identityProvers
  }

  /// A registry without providers.
  package static let none = ProviderRegistry()

  private init() {
    (all, byName, descriptors) = ([], [:], [:])
    identityProvers = IdentityProvers()
  }

  package subscript(name: ProviderName) -> (any Provider)? { byName[name] }

  /// The descriptor of the provider when the program started.
  package func descriptor(_ name: ProviderName) -> ProviderDescriptor? { descriptors[name] }

  /// The providers whose secrets belong to an identifier, as a password belongs to an address: they store a factor and
  /// prove an identifier.
  package var identifierSecrets: Set<ProviderName> {
    Set(descriptors.values.filter { $0.role == [.provesIdentifier, .keepsFactor] }.map(\.name))
  }

  /// The work of comparing a secret with the hash of another program in a provider's record, as the store remembers
  /// it (`HashWork.remembered`); nil if it holds none.
  package func importedHash(in record: [UInt8], of provider: ProviderName) -> HashWork? {
    storedHash(in: record, of: provider).flatMap { $0.isForeign ? $0.work.remembered : nil }
  }

  /// Whether a provider's record holds a hash that only `--weak` imports.
  package func isWeakHash(in record: [UInt8], of provider: ProviderName) -> Bool {
    storedHash(in: record, of: provider)?.isWeak ?? false
  }

  private func storedHash(in record: [UInt8], of provider: ProviderName) -> StoredHash? {
    (byName[provider] as? any SecretImporting)?.hash(exporting: record).flatMap { try? StoredHash($0) }
  }

  /// The provider whose name prefixes a federated identity (`IdentityProvers.issuer`).
  package func issuer(of identity: Identifier) -> ProviderName? { identityProvers.issuer(of: identity) }

  /// The provider that a federated identity belongs to (`IdentityProvers.prover`).
  package func prover(of identity: Identifier) -> ProviderName? { identityProvers.prover(of: identity) }

  /// Whether a federated identity belongs to the provider.
  package func proves(_ identity: Identifier, by name: ProviderName) -> Bool { prover(of: identity) == name }

  /// The declared outcomes that are reserved for the core: a provider that could answer `too_many_attempts` would
  /// imitate a lock.
  private static func clashes(of descriptor: ProviderDescriptor) -> [String] {
    descriptor.outcomes.map(\.reason).filter {
      RefusalCode.reserved.contains($0.rawValue) && !RefusalReason.known.contains($0)
    }.map {
      "the outcome `\($0.rawValue)` is one of the gateway's own codes: choose another name"
    }
  }

  /// The provider that formats an identifier of this kind while the user types it; nil if none does.
  package func formatter(for kind: IdentifierKind) -> (any IdentifierFormatting)? {
    all.lazy.compactMap { $0 as? any IdentifierFormatting }.first { $0.identifierKind == kind }
  }
}

/// A provider that the program cannot use.
package struct ProviderMistake: Error, Sendable, Equatable, CustomStringConvertible {
  package let provider: ProviderName
  /// The mistake, without the provider's name.
  package let mistake: String

  package init(provider: ProviderName, _ mistake: String) {
    self.provider = provider
    self.mistake = mistake
  }

  package var description: String { "The provider `\(provider)` cannot be used: \(mistake)." }
}
