import MoongateSDK

extension ProviderDescriptor {
  /// The descriptor of an instance of this provider under another name.
  ///
  /// Its policy, flows and cases are those of the provider, with the instance's name in them. It has no page, because
  /// two pages cannot have the same address.
  func instance(named instance: ProviderName) -> ProviderDescriptor {
    let texts = InstanceTexts(of: self, named: instance)
    var copy = self
    copy.name = instance
    copy.instanceOf = name
    copy.page = nil
    copy.policy = texts.renamed(policy)
    copy.flows = flows.map(texts.renamed)
    copy.cases = cases.map(texts.renamed)
    return copy
  }

  /// The descriptor with the title from gateway.lua. Hosted pages show the title where users choose a provider, and on
  /// its button or link.
  /// - Parameter button: the label of its button, if it differs.
  func titled(_ title: String, button: String? = nil) -> ProviderDescriptor {
    var copy = self
    copy.words = copy.words ?? StepWords(title: title)
    copy.words?.name = title
    copy.title = title
    if case .button(_, let icon, let priority)? = entrance {
      copy.entrance = .button(label: button ?? title, icon: icon, priority: priority)
    }
    if case .link? = entrance { copy.entrance = .link(label: title) }
    if case .externalSite? = presentation { copy.presentation = .externalSite(button: button ?? title) }
    return copy
  }

  /// The descriptor with the icon from gateway.lua.
  func showing(icon: String) -> ProviderDescriptor {
    var copy = self
    if case .button(let label, _, let priority)? = entrance {
      copy.entrance = .button(label: label, icon: icon, priority: priority)
    }
    return copy
  }
}

/// Replaces the provider's name in the Lua files that it ships by the name of an instance.
///
/// The rule for an instance `door_pin` of `pin`: the flow `pin_set` becomes `door_pin_set`; any other flow `recover`
/// becomes `door_pin_recover`. In texts, strings that are the name of the provider or of one of its flows are replaced,
/// as well as the name after `factors.`, `passed.` and `providers.`. Everything else stays, such as a field `pin` and
/// `field = "pin"`.
struct InstanceTexts {
  private let type: ProviderName
  private let instance: ProviderName
  /// The replacements, by the strings of the provider's files.
  private let strings: [String: String]

  private static let groups: Set<String> = ["factors", "passed", "providers"]

  init(of descriptor: ProviderDescriptor, named instance: ProviderName) {
    type = descriptor.name
    self.instance = instance
    var strings = Dictionary(descriptor.flows.map { ($0.name, Self.flow($0.name, of: descriptor.name, instance)) }) {
      first, _ in first
    }
    strings[descriptor.name.rawValue] = instance.rawValue
    self.strings = strings
  }

  /// The name of a flow of an instance.
  private static func flow(_ name: String, of type: ProviderName, _ instance: ProviderName) -> String {
    let prefix = "\(type)_"
    return "\(instance)_" + (name.hasPrefix(prefix) ? String(name.dropFirst(prefix.count)) : name)
  }

  /// A source for the instance. Problems name the provider's file, followed by the instance.
  func renamed(_ source: PolicySource) -> PolicySource {
    PolicySource(
      file: "\(source.file) (\(instance))", text: renamed(source.text),
      name: strings[source.name] ?? source.name)
  }

  func renamed(_ text: String) -> String {
    let source = Array(text.utf8)
    var tokens = LuaTokens(source)
    var output: [UInt8] = []
    var copied = 0
    var before: [LuaToken] = []
    func replace(_ range: Range<Int>, by text: String) {
      output += source[copied..<range.lowerBound]
      output += Array(text.utf8)
      copied = range.upperBound
    }
    while let token = tokens.next() {
      switch token.kind {
      case .string(let string):
        if let other = strings[string], !Self.isFieldName(before) { replace(token.range, by: "\"\(other)\"") }
      case .name(type.rawValue) where isMember(before, source): replace(token.range, by: instance.rawValue)
      default: break
      }
      before = before.suffix(1) + [token]
    }
    output += source[copied...]
    return String(decoding: output, as: UTF8.self)
  }

  /// Whether the two tokens before a string assign the name of a field, as in `field = "pin"`.
  private static func isFieldName(_ before: [LuaToken]) -> Bool {
    guard before.count == 2, case .name("field") = before[0].kind else { return false }
    return before[1].kind == .symbol(.assign)
  }

  /// Whether the two tokens before a name are one of the groups and a dot.
  private func isMember(_ before: [LuaToken], _ source: [UInt8]) -> Bool {
    guard before.count == 2, case .name(let group) = before[0].kind, source[before[1].range].elementsEqual(".".utf8)
    else { return false }
    return Self.groups.contains(group)
  }
}
