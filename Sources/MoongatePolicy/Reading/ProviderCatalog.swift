import MoongateSDK

/// The providers of this program, and those among them that gateway.lua configures.
struct ProviderCatalog {
  /// The names that the project gives to its own providers. A flow may name one that this program was built without: it is
  /// then as if gateway.lua left it out.
  private static let wellKnown: Set<String> = ["phone_otp", "email_code", "pin", "password", "google_oauth", "totp"]

  var descriptors: [ProviderDescriptor]
  /// Programs that cannot be used, and are told of already: who names them is not told again.
  var broken: Set<String> = []
  /// nil while gateway.lua could not be read: then nothing is said to be left out.
  var configured: Set<ProviderName>?

  var names: [String] { Set(descriptors.map(\.name.rawValue)).union(Self.wellKnown).union(broken).sorted() }

  /// What they declare for policies to ask about.
  var facts: [DeclaredFact] { DeclaredFact.all(of: descriptors) }

  func known(_ text: String) -> ProviderName? { names.contains(text) ? ProviderName(rawValue: text) : nil }

  func descriptor(_ text: String) -> ProviderDescriptor? { descriptors.first { $0.name.rawValue == text } }

  func isConfigured(_ name: ProviderName) -> Bool { configured?.contains(name) ?? true }
}
