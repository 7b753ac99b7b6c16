import MoongateCore
import MoongateSDK

/// The providers of the program, and the ones that gateway.lua configures.
struct ProviderCatalog {
  var descriptors: [ProviderDescriptor]
  /// Programs that cannot be used and are already reported. References to them are not reported again.
  var broken: Set<String> = []
  /// The configured providers; nil if gateway.lua could not be read. Nothing is then reported as not configured.
  var configured: Set<ProviderName>?

  /// The names of the compiled-in providers, which are constructors in gateway.lua.
  let types: [String]

  /// - Parameter compiledIn: the providers of the program.
  init(compiledIn: [ProviderDescriptor]) {
    descriptors = compiledIn
    types = compiledIn.map(\.name.rawValue)
  }

  /// Whether any entry has a name other than its provider's.
  var hasInstances: Bool { descriptors.contains { $0.instanceOf != nil } }

  /// The instances of a provider that gateway.lua configures.
  func instances(of type: ProviderName) -> [ProviderName] {
    descriptors.filter { $0.instanceOf == type && isConfigured($0.name) }.map(\.name)
  }

  var names: [String] { Set(descriptors.map(\.name.rawValue)).union(broken).sorted() }

  /// The facts that the providers declare for policies.
  var facts: [DeclaredFact] { DeclaredFact.all(of: descriptors, isConfigured: isConfigured) }

  /// The providers whose factor is entered on a PIN pad.
  var pads: Set<ProviderName> { Set(descriptors.filter(\.showsPad).map(\.name)) }

  func known(_ text: String) -> ProviderName? { names.contains(text) ? ProviderName(rawValue: text) : nil }

  func descriptor(_ text: String) -> ProviderDescriptor? { descriptors.first { $0.name.rawValue == text } }

  func isConfigured(_ name: ProviderName) -> Bool { configured?.contains(name) ?? true }
}
