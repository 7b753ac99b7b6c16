import MoongateCore
import MoongateSDK

/// A fact that a provider declares, as policies ask for it: an attribute of the identifier at hand, or what the
/// provider has told in this flow.
struct DeclaredFact: Sendable, Hashable {
  /// Where policies find it.
  enum Place: Sendable, Hashable {
    /// An attribute of identifiers: `f.phone.country`.
    case identifier(IdentifierKind)
    /// The provider's own: `f.providers.NAME.country`, from its step on.
    case provider(ProviderName)
    /// The same under the provider's name alone: `f.NAME.country`.
    case named(ProviderName)
  }

  let place: Place
  let name: String
  let kind: FactField.Kind
  let help: String

  /// The group of all that providers have told.
  static let providers = "providers"

  /// The groups of the gateway's own facts and of identifiers. What a provider of such a name tells is read by its long
  /// path alone.
  static let reservedGroups: Set<String> = Set(FactSlot.allCases.map { String($0.path.prefix { $0 != "." }) })
    .union(IdentifierKind.allCases.map(\.rawValue)).union([providers, "limits", "limit"])

  /// The group that it stands in, behind `f.`.
  var group: String {
    switch place {
    case .identifier(let kind): kind.rawValue
    case .provider(let name): "\(Self.providers).\(name)"
    case .named(let name): name.rawValue
    }
  }

  /// The path of the same fact that does not depend on the provider's name: two paths of one fact have one.
  var longPath: String {
    if case .named(let provider) = place { "\(Self.providers).\(provider).\(name)" } else { path }
  }

  /// The outermost group.
  var root: String { String(group.prefix { $0 != "." }) }

  /// As scripts spell it, behind `f.`.
  var path: String { "\(group).\(name)" }

  /// Whether functions of the audience are told it. What a provider tells in a flow is forgotten with the flow.
  func isTold(to audience: FunctionTable.Audience) -> Bool {
    switch (audience, place) {
    case (.route, _), (.entitlement, .provider), (.entitlement, .named): false
    default: true
    }
  }

  /// As lua-language-server spells what it holds. Nobody's identifier is nil, and so is one without the attribute.
  var type: String {
    switch kind {
    case .text: "string?"
    case .number: "number?"
    case .flag: "boolean?"
    }
  }

  /// Those of the providers, each path once, in their order.
  /// - Parameter isConfigured: whether a provider can pass a step. What others declare is known only as attributes of
  ///   identifiers.
  static func all(of descriptors: [ProviderDescriptor], isConfigured: (ProviderName) -> Bool = { _ in true })
    -> [DeclaredFact]
  {
    var seen: Set<String> = []
    let attributes = descriptors.flatMap { descriptor in
      descriptor.facts.compactMap { field in descriptor.of(field).map { DeclaredFact(place: .identifier($0), field) } }
    }
    let told = descriptors.filter { isConfigured($0.name) }.flatMap { descriptor in
      descriptor.facts.map { DeclaredFact(place: .provider(descriptor.name), $0) }
    }
    let named = descriptors.filter { isConfigured($0.name) && !reservedGroups.contains($0.name.rawValue) }.flatMap {
      descriptor in
      descriptor.facts.map { DeclaredFact(place: .named(descriptor.name), $0) }
    }
    return (attributes + told + named).filter { seen.insert($0.path).inserted }
  }

  private init(place: Place, _ field: FactField) {
    self.place = place
    name = field.name
    kind = field.kind
    help = field.help
  }

  /// What makes the facts of these providers impossible: one that the core has itself, or that two declare differently.
  static func clashes(of descriptors: [ProviderDescriptor]) -> [(provider: ProviderName, message: String)] {
    let own = Set(FactSlot.allCases.map(\.path))
    var first: [String: (provider: ProviderName, kind: FactField.Kind)] = [:]
    var found: [(ProviderName, String)] = []
    for descriptor in descriptors {
      for field in descriptor.facts {
        guard let path = descriptor.of(field).map({ "\($0.rawValue).\(field.name)" }) else { continue }
        if own.contains(path) {
          found.append(
            (descriptor.name, "`\(descriptor.name)` declares the fact `f.\(path)`, which is the gateway's own"))
        }
        if let before = first[path], before.kind != field.kind {
          found.append(
            (
              descriptor.name,
              "`\(descriptor.name)` declares the fact `f.\(path)` as \(field.kind.rawValue), and `\(before.provider)` as \(before.kind.rawValue)"
            ))
        }
        if first[path] == nil { first[path] = (descriptor.name, field.kind) }
      }
    }
    return found
  }
}
