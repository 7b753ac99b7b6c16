import MoongateCore
import MoongateSDK

/// The providers of this program, and those among them that gateway.lua configures.
struct ProviderCatalog {
  var descriptors: [ProviderDescriptor]
  /// Programs that cannot be used, and are told of already: who names them is not told again.
  var broken: Set<String> = []
  /// nil while gateway.lua could not be read: then nothing is said to be left out.
  var configured: Set<ProviderName>?

  /// The names of the compiled-in providers: constructors in gateway.lua.
  let types: [String]

  /// - Parameter compiledIn: the providers of the program.
  init(compiledIn: [ProviderDescriptor]) {
    descriptors = compiledIn
    types = compiledIn.map(\.name.rawValue)
  }

  /// Whether there are entries under other names than their providers'.
  var hasInstances: Bool { descriptors.contains { $0.instanceOf != nil } }

  /// The instances of a provider that gateway.lua configures.
  func instances(of type: ProviderName) -> [ProviderName] {
    descriptors.filter { $0.instanceOf == type && isConfigured($0.name) }.map(\.name)
  }

  var names: [String] { Set(descriptors.map(\.name.rawValue)).union(broken).sorted() }

  /// What they declare for policies to ask about.
  var facts: [DeclaredFact] { DeclaredFact.all(of: descriptors, isConfigured: isConfigured) }

  /// Those whose factor is entered on a pad of digits.
  var pads: Set<ProviderName> { Set(descriptors.filter(\.showsPad).map(\.name)) }

  func known(_ text: String) -> ProviderName? { names.contains(text) ? ProviderName(rawValue: text) : nil }

  func descriptor(_ text: String) -> ProviderDescriptor? { descriptors.first { $0.name.rawValue == text } }

  func isConfigured(_ name: ProviderName) -> Bool { configured?.contains(name) ?? true }
}
