import MoongateCore
import MoongateSDK

/// A fact that a provider declares: an attribute of the identifiers that it reads, as policies ask for it.
struct DeclaredFact: Sendable, Hashable {
  let of: IdentifierKind
  /// The attribute.
  let name: String
  let kind: FactField.Kind
  let help: String

  /// As scripts spell it, behind `f.`.
  var path: String { "\(of.rawValue).\(name)" }

  /// As lua-language-server spells what it holds. Nobody's identifier is nil, and so is one without the attribute.
  var type: String {
    switch kind {
    case .text: "string?"
    case .number: "number?"
    case .flag: "boolean?"
    }
  }

  /// Those of the providers, each path once, in their order.
  static func all(of descriptors: [ProviderDescriptor]) -> [DeclaredFact] {
    var seen: Set<String> = []
    return descriptors.flatMap { descriptor in
      descriptor.facts.compactMap { field in
        descriptor.of(field).map { DeclaredFact(of: $0, name: field.name, kind: field.kind, help: field.help) }
      }
    }.filter { seen.insert($0.path).inserted }
  }

  /// What makes the facts of these providers impossible: one that the core has itself, or that two declare differently.
  static func clashes(of descriptors: [ProviderDescriptor]) -> [(provider: ProviderName, message: String)] {
    let own = Set(FactSlot.allCases.map(\.path))
    var first: [String: (provider: ProviderName, kind: FactField.Kind)] = [:]
    var found: [(ProviderName, String)] = []
    for descriptor in descriptors {
      for field in descriptor.facts {
        guard let path = descriptor.of(field).map({ "\($0.rawValue).\(field.name)" }) else { continue }
        if own.contains(path) { found.append((descriptor.name, "`\(descriptor.name)` declares the fact `f.\(path)`, which is the gateway's own")) }
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
