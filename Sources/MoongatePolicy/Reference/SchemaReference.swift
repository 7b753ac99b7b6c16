import MoongateSDK

/// The schema of the Lua files for the reference: tables with their fields, facts and functions.
package struct SchemaReference: Sendable {
  /// One field of a table.
  package struct Field: Sendable {
    package let name: String
    /// The type in lua-language-server syntax, without the prefix `moongate.`.
    package let type: String
    package let isRequired: Bool
    /// The default in Lua syntax.
    package let standard: String?
    package let help: String
  }

  /// One table of a file.
  package struct Table: Sendable {
    /// The path of the table, such as `policy.limits`. `moongate help` finds its fields by it.
    package let path: String
    package let summary: String
    package let fields: [Field]
  }

  /// A fact or a function.
  package struct Global: Sendable {
    /// The path of a fact without `f.`, or the name of a function.
    package let name: String
    package let signature: String
    package let help: String
    /// The kinds of functions that receive a fact; empty for a function.
    package let audience: [String]
  }

  private let providers: [ProviderDescriptor]

  /// - Parameter providers: all providers of the program.
  package init(providers: [ProviderDescriptor]) { self.providers = providers.filter { $0.instanceOf == nil } }

  /// The tables of one kind of file, the outermost first.
  package func tables(of root: Root) -> [Table] {
    var visitor = TableVisitor(providers: providers)
    if root == .tests { visitor.enterCases() } else { visitor.enter(root.shape, at: root.rawValue) }
    if root == .gateway {
      for (name, shape) in TableVisitor.made["Delivery"] ?? [] { visitor.enter(shape, at: "delivery.\(name)") }
    }
    return visitor.tables
  }

  /// The name of a file's outermost table in paths.
  package enum Root: String, Sendable, CaseIterable {
    case gateway, policy, flow, route, accounts, app, guarantee, tests

    fileprivate var shape: TableShape {
      switch self {
      case .gateway: .gateway
      case .policy: .policy
      case .flow: .flow
      case .route: .route
      case .accounts: .accounts
      case .app: .app
      case .guarantee: .guarantee
      case .tests: .caseRequest
      }
    }
  }

  // MARK: facts and functions

  /// All facts, by their paths.
  package var facts: [Global] {
    let audiences: [(String, FunctionTable.Audience)] = [
      ("policies", .policy(limits: [])), ("flows", .flow), ("routes", .route), ("accounts", .entitlement),
    ]
    return FactSlot.allCases.map { slot in
      Global(
        name: slot.path, signature: slot.type, help: slot.help,
        audience: audiences.filter { slot.isAvailable(to: $0.1) }.map(\.0))
    }
      + DeclaredFact.all(of: providers).filter { $0.kind != .presence }.map { fact in
        Global(
          name: fact.path, signature: fact.type, help: fact.help,
          audience: audiences.filter { fact.isAvailable(to: $0.1) }.map(\.0))
      }
      + EditorTypes.limitFacts.map {
        Global(name: "limits.NAME.\($0.name)", signature: $0.type, help: $0.help, audience: ["policies"])
      }
      + EditorTypes.identityFacts.map {
        Global(name: $0.name, signature: $0.type, help: $0.help, audience: ["policies"])
      }
  }

  /// All constructors, decisions, helpers and base library functions.
  package var functions: [Global] {
    [Global(name: "allow", signature: "allow", help: "Allows the action or request.", audience: [])]
      + LuaGlobals.functions.map { Global(name: $0.name, signature: $0.signature, help: $0.help, audience: []) }
  }
}

/// Visits a table and the tables nested in it.
private struct TableVisitor {
  let providers: [ProviderDescriptor]
  private(set) var tables: [SchemaReference.Table] = []
  private var seen: Set<String> = []

  init(providers: [ProviderDescriptor]) { self.providers = providers }

  /// Types that constructors make, with the tables that the constructors take.
  static let made: [String: [(name: String, shape: TableShape)]] = [
    "AuditSink": [("file", .auditFile), ("syslog", .auditSyslog), ("webhook", .auditWebhook)],
    "Tracing": [("otlp", .otlp)],
    "Delivery": [("outbox", .outbox), ("smtp", .smtp), ("webhook", .webhook), ("twilio", .twilio)],
    "Exec": [("exec", .program)],
  ]

  private static let named = Dictionary(TableShape.all.map { ($0.name, $0) }) { first, _ in first }

  mutating func enter(_ shape: TableShape, at path: String) {
    guard seen.insert(shape.name).inserted else { return }
    tables.append(
      SchemaReference.Table(
        path: path, summary: shape.summary,
        fields: shape.entries.map { entry in
          SchemaReference.Field(
            name: entry.name, type: entry.type.replacing("moongate.", with: ""), isRequired: entry.isRequired,
            standard: entry.standardText,
            help: entry.text(in: shape))
        }))
    for entry in shape.entries {
      let inner = "\(path).\(entry.name)"
      for type in Self.types(in: entry.type) {
        if type == "Providers" {
          for provider in providers { enter(.settings(of: provider), at: "\(inner).\(provider.name)") }
          enter(.program, at: "\(inner).exec")
        } else if let shape = Self.named[type] {
          enter(shape, at: inner)
        } else if type != "Delivery" {
          for (name, shape) in Self.made[type] ?? [] { enter(shape, at: "\(inner).\(name)") }
        }
      }
    }
  }

  /// The tables that the functions of a test case take.
  mutating func enterCases() {
    for constructor in Constructor.all {
      var types = Self.types(in: constructor.result)
      for parameter in constructor.parameters {
        types += Self.types(in: parameter.type)
      }
      for type in types where type.hasPrefix("Case") {
        if let shape = Self.named[type] { enter(shape, at: "tests.\(constructor.name)") }
      }
    }
  }

  /// The type names after `moongate.` in a type.
  private static func types(in text: String) -> [String] {
    text.split(separator: "moongate.").dropFirst(text.hasPrefix("moongate.") ? 0 : 1).map { part in
      String(part.prefix { $0.isLetter || $0 == "." })
    }
  }
}
