import MoongateSDK

/// Finds the provider that a federated identity belongs to.
///
/// Identities of instances and programs are prefixed with their names. Those that begin with the address of an issuer
/// belong to the first federated provider that is part of this program.
package struct IdentityProvers: Sendable {
  private let names: Set<ProviderName>
  private let sites: Set<ProviderName>
  private let first: ProviderName?

  /// - Parameter descriptors: of all providers, those that are part of this program first.
  package init(_ descriptors: [ProviderDescriptor] = []) {
    let isSite = { (descriptor: ProviderDescriptor) in descriptor.identifierKinds.contains(.federated) }
    names = Set(descriptors.map(\.name))
    sites = Set(descriptors.filter(isSite).map(\.name))
    first = descriptors.first { $0.instanceOf == nil && isSite($0) }?.name
  }

  /// The provider whose name prefixes a federated identity; nil for an identity of another form, such as
  /// `https://issuer subject`.
  package func issuer(of identity: Identifier) -> ProviderName? {
    guard identity.kind == .federated, let name = ProviderName(rawValue: String(identity.value.prefix { $0 != " " })),
      names.contains(name)
    else { return nil }
    return name
  }

  /// The provider that a federated identity belongs to; nil if none does.
  ///
  /// Attack: an instance is removed from gateway.lua, and the groups that its site gave its users count as groups of
  /// another site. Such identities begin with the instance's name.
  package func prover(of identity: Identifier) -> ProviderName? {
    guard identity.kind == .federated else { return nil }
    if let issuer = issuer(of: identity) { return sites.contains(issuer) ? issuer : nil }
    return identity.value.prefix { $0 != " " }.contains(":") ? first : nil
  }
}
