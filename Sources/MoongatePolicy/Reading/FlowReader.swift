import MoongateCore
import MoongateSDK

/// Reads flows/NAME.lua, from the operator's folder or shipped with a provider.
struct FlowReader {
  /// What a file is read as.
  enum ReadResult {
    case flow(FlowDefinition)
    /// The flow is off, or its provider is not configured.
    case leftOut(createsAccounts: Bool)
    /// The problems are reported.
    case invalid
  }

  let name: String
  let providers: ProviderCatalog
  let problems: Problems
  /// The provider that ships the flow; nil for a flow of the operator's folder.
  var origin: ProviderName?
  /// Providers of steps that are not configured. A flow that a provider ships, or that manages a factor or an
  /// identifier, is then left out.
  private let unavailable = Unavailable()

  private final class Unavailable {
    var providers: [String] = []
    /// Whether such a step leaves the flow out. Otherwise it is a problem.
    var leavesFlowOut = false
  }

  init(name: String, providers: ProviderCatalog, origin: ProviderName? = nil, problems: Problems) {
    self.name = name
    self.providers = providers
    self.origin = origin
    self.problems = problems
  }

  private var choices: StepChoicesReader {
    guard unavailable.leavesFlowOut else { return StepChoicesReader(providers: providers, problems: problems) }
    return StepChoicesReader(
      providers: providers, problems: problems, whenUnavailable: { [unavailable] in unavailable.providers += $0 },
      comesWithProvider: origin != nil)
  }

  /// The choices of a skippable step. If none of its providers is configured, the step is left out.
  private func skippableChoices(_ path: String, at location: SourceLocation) -> StepChoicesReader {
    var choices = choices
    choices.whenUnavailable = { [problems] left in
      problems.warn(
        location, path, "is left out and skipped: gateway.lua does not configure \(Suggestion.list(left))")
    }
    return choices
  }

  /// Reads the flow. One that is left out because its provider is not configured has a warning.
  func read(_ node: LuaNode, functions: inout FunctionTable) -> ReadResult {
    let before = problems.all.count
    guard let reader = TableReader(node, .flow, path: "", problems: problems) else { return .invalid }
    let purposes = FlowPurposeReader(flow: name, providers: providers, problems: problems)
    if reader.explicitValue("enabled") != nil, reader.flag("enabled") == false {
      return .leftOut(createsAccounts: purposes.createsAccounts(reader))
    }
    if let flow = read(reader, purposes, since: before, functions: &functions) { return .flow(flow) }
    return problems.all.count > before ? .invalid : .leftOut(createsAccounts: purposes.createsAccounts(reader))
  }

  /// - Parameter before: the number of problems before the file was read.
  /// - Returns: nil with a problem if the flow is invalid, and nil with a warning if its provider is not configured.
  private func read(
    _ reader: TableReader, _ purposes: FlowPurposeReader, since before: Int, functions: inout FunctionTable
  ) -> FlowDefinition? {
    if let absent = purposes.unconfiguredProvider(reader) {
      problems.warn(
        reader.location, "provider", "is `\(absent)`, which gateway.lua does not configure: the flow is left out")
      return nil
    }
    unavailable.leavesFlowOut = origin != nil || purposes.isOfAccount(reader)
    let account = reader.choice("account", AccountRule.self)
    let stepsNode = reader.take("steps")
    let steps = stepsNode.map { readSteps($0, &functions) } ?? []
    if problems.all.count == before, !unavailable.providers.isEmpty {
      problems.warn(
        reader.location, "",
        "is left out: a step needs \(Suggestion.list(unavailable.providers)), which gateway.lua does not configure. "
          + "Name it under `providers`, or write flows/\(name).lua with other steps or with enabled = false")
      return nil
    }
    let purpose = purposes.read(reader, steps: steps, account: account)
    let registers = readRegisters(reader, account, purpose, steps)
    if let stepsNode, let purpose, problems.all.count == before {
      FlowAnalysis.check(purpose, steps, of: stepsNode, problems)
    }
    let lifetime = reader.duration("lifetime", atLeast: .seconds(1))
    let session = readSession(reader)
    let next = readNext(reader)
    guard problems.all.count == before, let purpose, let account, let lifetime, let session, let next else {
      return nil
    }
    return FlowDefinition(
      name: name, purpose: purpose, account: account, steps: steps, lifetime: lifetime, session: session, next: next,
      location: reader.location, registers: registers,
      stepLocations: stepsNode.map(Self.locations) ?? [])
  }

  /// The providers by which a flow for existing accounts also creates accounts. Like a choice of a step, one that
  /// gateway.lua does not configure is left out.
  private func readRegisters(
    _ flow: TableReader, _ account: AccountRule?, _ purpose: FlowPurpose?, _ steps: [StepRule]
  ) -> Set<ProviderName> {
    guard flow.explicitValue("registers") != nil, let node = flow.take("registers") else { return [] }
    let path = flow.path("registers")
    if let purpose, purpose != .signIn {
      problems.add(node.location, path, "is only for flows that sign people in: remove it")
      return []
    }
    if let account, account != .existing {
      problems.warn(
        node.location, path,
        "has no effect: a flow with account = \"\(account.rawValue)\" creates accounts by all of its providers")
      return []
    }
    var found: Set<ProviderName> = []
    for (text, item) in Field.texts(node, path, problems) ?? [] {
      guard let name = providers.known(text) else {
        problems.add(
          item.location, path, "unknown provider \"\(text)\"\(Suggestion.phrase(for: text, among: providers.names))")
        continue
      }
      guard providers.isConfigured(name) else { continue }
      if !steps.contains(where: { $0.choices.contains(name) }) {
        // Steps that could not be read are already reported.
        if !steps.isEmpty {
          problems.add(
            item.location, path, "no step of this flow offers `\(name)`: add it to a step, or remove it here")
        }
      } else if !(providers.descriptor(text)?.identifierKinds.contains(.federated) ?? false) {
        problems.add(
          item.location, path,
          "`\(name)` proves no identities at another site: to create accounts by it, write account = \"any\"")
      } else {
        found.insert(name)
      }
    }
    return found
  }

  private func readSession(_ flow: TableReader) -> SessionRule? {
    let node = flow.take("session") ?? LuaNode(value: .table(LuaTable()), location: flow.location)
    guard let rule = TableReader(node, .session, path: "session", problems: problems) else { return nil }
    let lifetime = rule.duration("lifetime", atLeast: .seconds(1))
    let idle = rule.duration("idle", atLeast: .seconds(1))
    guard let lifetime, let idle else { return nil }
    let short = SessionRule(lifetime: lifetime, idle: idle)
    guard let node = rule.explicitValue("remember") else { return short }
    return readRemember(node, longerThan: short).map { SessionRule(lifetime: lifetime, idle: idle, remember: $0) }
  }

  /// The times of a user who stays signed in. Shorter ones than those of everybody else would sign that user out first.
  private func readRemember(_ node: LuaNode, longerThan short: SessionRule) -> RememberedTimes? {
    guard let times = TableReader(node, .remember, path: "session.remember", problems: problems) else { return nil }
    let lifetime = times.duration("lifetime", atLeast: .seconds(1))
    let idle = times.duration("idle", atLeast: .seconds(1))
    guard let lifetime, let idle else { return nil }
    for (name, value, least) in [("lifetime", lifetime, short.lifetime), ("idle", idle, short.idle)] where value < least
    {
      problems.add(
        times.explicitValue(name)?.location ?? node.location, times.path(name),
        "must not be shorter than session.\(name), which is \"\(least.asWritten)\"")
    }
    return RememberedTimes(lifetime: lifetime, idle: idle)
  }

  private func readNext(_ flow: TableReader) -> NextPaths? {
    let node = flow.take("next") ?? LuaNode(value: .table(LuaTable()), location: flow.location)
    guard let paths = TableReader(node, .next, path: "next", problems: problems) else { return nil }
    let new = readPath(paths, "new")
    let returning = readPath(paths, "returning")
    guard let new, let returning else { return nil }
    return NextPaths(new: new, returning: returning)
  }

  private func readPath(_ reader: TableReader, _ name: String) -> String? {
    guard let path = reader.text(name) else { return nil }
    // Prevents an open redirect by mistake: //host and /\host lead to other sites.
    guard path.utf8.first == UInt8(ascii: "/"), !path.hasPrefix("//"), !path.hasPrefix("/\\"),
      path.utf8.allSatisfy({ (33...126).contains($0) })
    else {
      problems.add(
        reader.explicitValue(name)?.location ?? reader.location, reader.path(name),
        "must be a path that begins with one /, such as \"/home\"")
      return nil
    }
    return path
  }

  // MARK: steps

  private func readSteps(_ node: LuaNode, _ functions: inout FunctionTable) -> [StepRule] {
    guard case .table(let table) = node.value, table.isList, !table.isEmpty else {
      problems.add(node.location, "steps", "must be a list with at least one step, as in { { \"phone_otp\" } }")
      return []
    }
    var rules: [StepRule] = []
    for (index, item) in table.items.enumerated() {
      if let rule = readStep(item, "steps[\(index + 1)]", &functions) { rules.append(rule) }
    }
    if rules.isEmpty, unavailable.providers.isEmpty, problems.all.isEmpty {
      problems.add(
        node.location, "steps",
        "no provider of any step is configured: name one under `providers` in gateway.lua, or remove the flow")
    }
    return rules
  }

  /// The location of each item of the list.
  private static func locations(_ steps: LuaNode) -> [SourceLocation] {
    if case .table(let table) = steps.value { table.items.map(\.location) } else { [] }
  }

  private func readStep(_ node: LuaNode, _ path: String, _ functions: inout FunctionTable) -> StepRule? {
    let fallbacks = FallbackReader(providers: providers, problems: problems)
    guard case .table = node.value else {
      if fallbacks.isFallback(node) { return fallbacks.read(node, path, or: choices, isSkippable: false, when: nil) }
      return choices.read([node], path, at: node.location).map { StepRule(choices: $0, isSkippable: false, when: nil) }
    }
    guard let reader = TableReader(node, .step, path: path, problems: problems, allowsItems: true) else { return nil }
    let isSkippable = reader.flag("skippable") ?? false
    let when = reader.function("when", example: "function(f) return f.account.has_pin end").map { function in
      let name = FunctionName("flows/\(self.name).\(path).when")
      functions.add(name, function, for: .flow)
      return name
    }
    guard !reader.items.isEmpty else {
      problems.add(node.location, path, "a step must begin with its provider, as in { \"phone_otp\" }")
      return nil
    }
    if let only = reader.items.first, reader.items.count == 1, fallbacks.isFallback(only) {
      return fallbacks.read(only, path, or: choices, isSkippable: isSkippable, when: when)
    }
    let choices = isSkippable && origin == nil ? skippableChoices(path, at: node.location) : choices
    return choices.read(reader.items, path, at: node.location).map {
      StepRule(choices: $0, isSkippable: isSkippable, when: when)
    }
  }
}
