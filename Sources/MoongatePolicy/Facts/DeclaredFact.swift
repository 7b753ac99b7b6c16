import MoongateCore
import MoongateSDK

/// A fact that a provider declares: an attribute of the current identifier, or a value that the provider reported in
/// this flow.
struct DeclaredFact: Sendable, Hashable {
  /// The path under which policies read the fact.
  enum Place: Sendable, Hashable {
    /// An attribute of identifiers: `f.phone.country`.
    case identifier(IdentifierKind)
    /// A fact that the provider reports: `f.providers.NAME.country`, available from the provider's step on.
    case provider(ProviderName)
    /// The short path of the same fact: `f.NAME.country`.
    case named(ProviderName)
    /// What the site of a provider says about the account's identity there: `f.account.identities.NAME.groups`.
    case identity(ProviderName)
  }

  /// The type of the value.
  enum Kind: String, Sendable, Hashable {
    case text, number, flag
    /// A set of names.
    case groups
    /// Texts by name.
    case data
    /// Whether the group is there: without an identity, `f.account.identities.NAME` is nil.
    case presence

    init(_ kind: FactField.Kind) {
      self =
        switch kind {
        case .text: .text
        case .number: .number
        case .flag: .flag
        }
    }

    /// Whether members are read by name.
    var isSet: Bool { self == .groups || self == .data }
  }

  let place: Place
  let name: String
  let kind: Kind
  let help: String

  /// The group of all facts that providers report.
  static let providers = "providers"

  /// The names of the gateway's own fact groups and of identifier kinds. A provider with one of these names has only
  /// the long path.
  static let reservedGroups: Set<String> = Set(FactSlot.allCases.map { String($0.path.prefix { $0 != "." }) })
    .union(IdentifierKind.allCases.map(\.rawValue)).union([providers, "limits", "limit"])

  /// The group of the fact, after `f.`.
  var group: String {
    switch place {
    case .identifier(let kind): kind.rawValue
    case .provider(let name): "\(Self.providers).\(name)"
    case .named(let name): name.rawValue
    case .identity(let name): "account.identities.\(name)"
    }
  }

  /// The path through `f.providers`. It identifies the fact: the short and the long path have the same value.
  var longPath: String {
    if case .named(let provider) = place { "\(Self.providers).\(provider).\(name)" } else { path }
  }

  /// The outermost group.
  var root: String { String(group.prefix { $0 != "." }) }

  /// The path in scripts, after `f.`.
  var path: String { kind == .presence ? group : "\(group).\(name)" }

  /// Whether functions of the audience receive the fact. Facts that providers report last only as long as the flow.
  func isAvailable(to audience: FunctionTable.Audience) -> Bool {
    switch (audience, place) {
    case (.route, _), (.identity, _), (.entitlement, .provider), (.entitlement, .named): false
    default: true
    }
  }

  /// The type in lua-language-server syntax. The value is nil without an identifier or without the attribute.
  var type: String {
    switch kind {
    case .text: "string?"
    case .number: "number?"
    case .flag: "boolean?"
    case .groups: "table<string, true?>"
    case .data: "table<string, string?>"
    case .presence: "table?"
    }
  }

  /// The facts of the providers, each path once, in the order of the providers.
  /// - Parameter isConfigured: whether a provider is configured. The others contribute only attributes of identifiers.
  static func all(of descriptors: [ProviderDescriptor], isConfigured: (ProviderName) -> Bool = { _ in true })
    -> [DeclaredFact]
  {
    var seen: Set<String> = []
    let attributes = descriptors.flatMap { descriptor in
      descriptor.facts.compactMap { field in descriptor.of(field).map { DeclaredFact(place: .identifier($0), field) } }
    }
    let usable = descriptors.filter { isConfigured($0.name) && $0.canBeConfigured }
    let told = usable.flatMap { descriptor in
      descriptor.facts.map { DeclaredFact(place: .provider(descriptor.name), $0) }
    }
    let named = usable.filter { !reservedGroups.contains($0.name.rawValue) }.flatMap {
      descriptor in
      descriptor.facts.map { DeclaredFact(place: .named(descriptor.name), $0) }
    }
    let identities = usable.filter { $0.identifierKinds.contains(.federated) }.flatMap {
      [
        DeclaredFact(
          place: .identity($0.name), name: "groups", kind: .groups,
          help: "groups of the account's identity at the site of `\($0.name)`, as of its last sign-in there"),
        DeclaredFact(
          place: .identity($0.name), name: "data", kind: .data,
          help: "what the site of `\($0.name)` says about the account's identity, as of its last sign-in there"),
        DeclaredFact(
          place: .identity($0.name), name: "", kind: .presence,
          help: "the account's identity at the site of `\($0.name)`; nil if it has none"),
      ]
    }
    return (attributes + told + named + identities).filter { seen.insert($0.path).inserted }
  }

  private init(place: Place, _ field: FactField) {
    self.init(place: place, name: field.name, kind: Kind(field.kind), help: field.help)
  }

  private init(place: Place, name: String, kind: Kind, help: String) {
    self.place = place
    self.name = name
    self.kind = kind
    self.help = help
  }

  /// The conflicts between the facts of these providers: a path that the gateway defines itself, or one that two
  /// providers declare with different types.
  static func clashes(of descriptors: [ProviderDescriptor]) -> [(provider: ProviderName, message: String)] {
    let own = Set(FactSlot.allCases.map(\.path))
    var first: [String: (provider: ProviderName, kind: FactField.Kind)] = [:]
    var found: [(ProviderName, String)] = []
    for descriptor in descriptors {
      for field in descriptor.facts {
        guard let path = descriptor.of(field).map({ "\($0.rawValue).\(field.name)" }) else { continue }
        if own.contains(path) {
          found.append(
            (descriptor.name, "`\(descriptor.name)` declares the fact `f.\(path)`, which the gateway defines itself"))
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

extension ProviderDescriptor {
  /// Whether an entry of gateway.lua can have its name: a kind of site has instances only.
  var canBeConfigured: Bool { !isKind || instanceOf != nil }
}
