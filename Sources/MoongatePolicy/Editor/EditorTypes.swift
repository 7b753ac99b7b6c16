import MoongateCore
import MoongateSDK

/// config/editor/moongate.d.lua: what lua-language-server has to know to complete and to check an operator's files.
///
/// Written from the shapes that the readers go by, the facts that functions are given and the providers of the program.
package struct EditorTypes: Sendable {
  private let providers: [ProviderDescriptor]

  /// - Parameter providers: all that the program has.
  package init(providers: [ProviderDescriptor]) { self.providers = providers }

  /// The whole file.
  package var text: String {
    var parts = [Self.head]
    parts += TableShape.all.map(Self.declared)
    parts += types.map { Self.declared(TableShape.settings(of: $0)) }
    parts.append(providersClass)
    parts += facts
    parts += EditorGlobals.declarations
    parts += types.map(Self.constructor)
    return parts.joined(separator: "\n\n") + "\n"
  }

  private static let head = """
    ---@meta
    -- What Moongate's files may say, for editors with lua-language-server: open config/ as a folder.
    -- Written by `moongate policy types`; a test holds it against the program. Do not edit it.

    ---@alias moongate.Duration string a duration: "90s", "10m", "1h30m" or "7d"
    ---@alias moongate.Durations moongate.Duration|moongate.Vary|(moongate.Duration|moongate.Vary)[]
    ---@alias moongate.Decide fun(f: moongate.PolicyFacts): moongate.Decision

    ---@class (exact) moongate.File what a file returns
    ---@class (exact) moongate.Secret made by env, file or credential
    ---@class (exact) moongate.Delivery made by outbox, smtp, webhook or twilio
    ---@class (exact) moongate.AuditSink made by file, syslog or webhook
    ---@class (exact) moongate.Tracing made by otlp
    ---@class (exact) moongate.Exec made by exec
    ---@class (exact) moongate.Instance made by the name of a provider, as in phone_otp { … }
    ---@class (exact) moongate.Vary made by vary
    ---@class (exact) moongate.AnyOf made by any_of
    ---@class (exact) moongate.Members made by members
    ---@class (exact) moongate.Fallback made by fallback
    ---@class (exact) moongate.Statement made by guarantee
    ---@class (exact) moongate.Case made by case
    ---@class (exact) moongate.Act one word of a case
    ---@class (exact) moongate.Decision allow, deny "reason" or require_also "provider"
    """

  /// One class with a field for each entry.
  private static func declared(_ shape: TableShape) -> String {
    // What else a program takes, it says itself when it is started.
    let isProgram = shape.name == TableShape.program.name
    var lines = ["---\(shape.summary)", "---@class \(isProgram ? "" : "(exact) ")moongate.\(shape.name)"]
    if isProgram { lines.append("---@field [integer] string the program, then its arguments") }
    if shape.name == TableShape.step.name {
      lines.append("---@field [integer] string|moongate.AnyOf|moongate.Fallback the provider")
    }
    if shape.name == TableShape.signInRequirement.name {
      lines.append("---@field [integer] string|moongate.AnyOf the provider")
    }
    if shape.name == TableShape.routeTokens.name {
      lines.append("---@field [integer] string the name of a service token")
    }
    if shape.name == TableShape.offer.name { lines.append("---@field [integer] string the provider") }
    // A policy lies over its provider's defaults, which have every field.
    let isLayer = shape.name == TableShape.policy.name
    for entry in shape.entries {
      let standard = entry.standardText.map { " (default: \($0))" } ?? ""
      lines.append(
        "---@field \(entry.name)\(entry.isRequired && !isLayer ? "" : "?") \(entry.type) \(entry.text(in: shape))\(standard)"
      )
    }
    return lines.joined(separator: "\n")
  }

  private var providersClass: String {
    (["---The steps that flows may use, and what each needs.", "---@class (exact) moongate.Providers"]
      + types.map { "---@field \($0.name)? moongate.Provider.\($0.name)|moongate.Instance" } + [
        "---@field [string] moongate.Exec|moongate.Instance"
      ])
      .joined(separator: "\n")
  }

  /// Those under their own names: the constructors of gateway.lua.
  private var types: [ProviderDescriptor] { providers.filter { $0.instanceOf == nil } }

  private static func constructor(_ descriptor: ProviderDescriptor) -> String {
    """
    ---In gateway.lua: an instance of `\(descriptor.name)` under another name.
    ---@param settings moongate.Provider.\(descriptor.name)
    ---@return moongate.Instance
    function \(descriptor.name)(settings) end
    """
  }

  // MARK: facts

  /// What functions of a policy read of each limit, by its name in `f.limits`.
  static let limitFacts: [(name: String, type: String, help: String)] = [
    ("used", "integer", "events that count before this one"), ("max", "integer", "as it is for this call"),
    ("locked_until", "integer?", "Unix seconds; nil without a lock"),
  ]

  /// A class for each group of facts, then one for each kind of function.
  private var facts: [String] {
    let declared = DeclaredFact.all(of: providers)
    var classes: [String] = []
    var groups: [String] = []
    for slot in FactSlot.allCases where slot.path.contains(".") {
      let group = String(slot.path.prefix { $0 != "." })
      if !groups.contains(group) { groups.append(group) }
    }
    for fact in declared where !groups.contains(fact.group) { groups.append(fact.group) }
    for group in groups {
      let fields = FactSlot.allCases.filter { $0.path.hasPrefix(group + ".") }.map { slot in
        "---@field \(slot.path.dropFirst(group.utf8.count + 1)) \(slot.type) \(slot.help)"
      }
      let attributes = declared.filter { $0.group == group }.map { "---@field \($0.name) \($0.type) \($0.help)" }
      classes.append((["---@class (exact) moongate.Facts.\(group)"] + fields + attributes).joined(separator: "\n"))
    }
    let providers = groups.filter { $0.hasPrefix(DeclaredFact.providers + ".") }
    if !providers.isEmpty {
      let fields = providers.map { group in
        let name = group.dropFirst(DeclaredFact.providers.utf8.count + 1)
        return "---@field \(name) moongate.Facts.\(group) what `\(name)` has told in this flow"
      }
      classes.append((["---@class (exact) moongate.Facts.\(DeclaredFact.providers)"] + fields).joined(separator: "\n"))
    }
    let limit = Self.limitFacts.map { "---@field \($0.name) \($0.type) \($0.help)" }
    classes.append((["---@class (exact) moongate.Facts.limit"] + limit).joined(separator: "\n"))
    let audiences: [(String, String, FunctionTable.Audience)] = [
      ("PolicyFacts", "What `send`, `verify` and the functions of `vary` are told.", .policy(limits: [])),
      ("FlowFacts", "What `when` of a step is told.", .flow),
      ("RouteFacts", "What `decide` of a route is told.", .route),
      ("EntitlementFacts", "What functions of `groups` and `claims` are told.", .entitlement),
    ]
    for (name, summary, audience) in audiences {
      var lines = ["---\(summary)", "---@class (exact) moongate.\(name)"]
      var seen: Set<String> = []
      for slot in FactSlot.allCases where slot.isTold(to: audience) {
        let group = String(slot.path.prefix { $0 != "." })
        guard slot.path.contains(".") else {
          lines.append("---@field \(slot.path) \(slot.type) \(slot.help)")
          continue
        }
        if seen.insert(group).inserted { lines.append("---@field \(group) moongate.Facts.\(group)") }
      }
      for root in declared.filter({ $0.isTold(to: audience) }).map(\.root) where seen.insert(root).inserted {
        lines.append("---@field \(root) moongate.Facts.\(root)")
      }
      if case .policy = audience { lines.append("---@field limits table<string, moongate.Facts.limit> by their names") }
      classes.append(lines.joined(separator: "\n"))
    }
    return classes
  }
}
