import MoongateCore
import MoongateSDK

/// Reads policies/NAME.lua on top of its provider's defaults.
struct PolicyReader {
  let descriptor: ProviderDescriptor
  let problems: Problems

  /// Merges the operator's table with the defaults: tables merge key by key; lists and `limits` are replaced.
  static func layer(_ upper: LuaNode?, over lower: LuaNode) -> LuaNode {
    guard let upper, case .table(let above) = upper.value, case .table(var merged) = lower.value else {
      return upper ?? lower
    }
    for (name, node) in above.fields {
      if name != "limits", case .table(let new) = node.value, let old = merged.fields[name],
        case .table(let table) = old.value,
        new.items.isEmpty, table.items.isEmpty
      {
        merged.fields[name] = layer(node, over: old)
      } else {
        merged.fields[name] = node
      }
    }
    merged.items = above.items
    merged.otherKeys = above.otherKeys
    return LuaNode(value: .table(merged), location: upper.location)
  }

  /// - Parameters:
  /// - defaults: the table of the provider's own policy.
  /// - operator: the table of the operator's file; nil without one.
  func read(defaults: LuaNode, operator node: LuaNode?, functions: inout FunctionTable) -> ProviderPolicy? {
    let before = problems.all.count
    let effective = Self.layer(node, over: defaults)
    guard let reader = TableReader(effective, .policy, path: "", problems: problems) else { return nil }
    var kept: [(FunctionName, LuaFunction)] = []
    let prefix = "policies/\(descriptor.name)"
    func keep(_ name: String, _ function: LuaFunction) -> FunctionName {
      kept.append((FunctionName("\(prefix).\(name)"), function))
      return FunctionName("\(prefix).\(name)")
    }
    let varying = VaryingFields(
      keep: { name, function in kept.append((name, function)) }, prefix: prefix, problems: problems)

    // A provider whose own policy has no `code` sends no codes.
    let sendsCodes = if case .table(let shipped) = defaults.value { shipped.fields["code"] != nil } else { true }
    if !sendsCodes {
      for name in ["code", "timers", "message", "send"] {
        if let node = reader.explicitValue(name) {
          problems.add(node.location, name, "`\(descriptor.name)` sends no codes: remove it")
        }
      }
    }
    let code = sendsCodes ? readCode(reader) : CodeRule.none
    var resendAfter: [Varying<Duration>] = []
    if let node = reader.take("timers"), let timers = TableReader(node, .timers, path: "timers", problems: problems) {
      if let node = timers.take("resend_after") {
        if case .table(let table) = node.value, table.isEmpty {
          resendAfter = []
        } else {
          resendAfter = varying.durations(node, "timers.resend_after") ?? []
        }
      }
    }
    var limits: [Limit] = []
    if let node = reader.take("limits") { limits = readLimits(node, varying) }
    let unknownAccount = reader.choice("unknown_account", UnknownAccount.self)
    let message = sendsCodes ? readMessage(reader) : ""
    let send = reader.function("send").map { keep("send", $0) }
    let verify = reader.function("verify").map { keep("verify", $0) }
    let identity = readIdentity(reader, prefix, &functions)

    let reasons = reader.take("reasons").map { DenyReason.read($0, problems) } ?? [:]

    let audience = FunctionTable.Audience.policy(limits: limits.map(\.name))
    for (name, function) in kept { functions.add(name, function, for: audience) }
    warn(limits, sendsCodes ? code : nil, resendAfter, defaults: defaults, effective: effective)
    guard problems.all.count == before, let code, let message, let unknownAccount else { return nil }
    return ProviderPolicy(
      provider: descriptor.name, code: code, resendAfter: resendAfter, limits: limits, unknownAccount: unknownAccount,
      message: message, send: send,
      verify: verify, identity: identity, reasons: reasons, locations: Self.locations(of: effective))
  }

  private func readIdentity(_ reader: TableReader, _ prefix: String, _ functions: inout FunctionTable) -> FunctionName?
  {
    guard let function = reader.function("identity", example: "function(f) return { email = f.claims.email } end")
    else { return nil }
    guard descriptor.mapsClaims else {
      problems.add(
        reader.explicitValue("identity")?.location ?? reader.location, "identity",
        "`\(descriptor.name)` passes no claims of another site: remove it")
      return nil
    }
    let name = FunctionName("\(prefix).identity")
    functions.add(name, function, for: .identity)
    return name
  }

  private func readCode(_ reader: TableReader) -> CodeRule? {
    guard let node = reader.require("code"), let code = TableReader(node, .code, path: "code", problems: problems)
    else { return nil }
    let length = code.whole("length", in: 4...10)
    let alphabet = code.choice("alphabet", CodeAlphabet.self)
    let lifetime = code.duration("ttl")
    guard let length, let alphabet, let lifetime else { return nil }
    return CodeRule(length: length, alphabet: alphabet, lifetime: lifetime)
  }

  private func readMessage(_ reader: TableReader) -> String? {
    guard let node = reader.require("message") else { return nil }
    guard let text = Field.text(node, "message", problems) else { return nil }
    guard text.utf8.count <= 1000 else {
      problems.add(node.location, "message", "must be at most 1000 bytes long")
      return nil
    }
    var hasCode = false
    for part in text.split(separator: "{", omittingEmptySubsequences: false).dropFirst() {
      let name = String(part.prefix { $0 != "}" })
      guard part.contains("}"), ["code", "service", "minutes"].contains(name) else {
        problems.add(
          node.location, "message",
          "unknown part {\(name)}\(Suggestion.phrase(for: name, among: ["code", "service", "minutes"]))")
        return nil
      }
      hasCode = hasCode || name == "code"
    }
    guard hasCode else {
      problems.add(node.location, "message", "must contain {code}, the code that the user enters")
      return nil
    }
    return text
  }

  // MARK: limits

  private func readLimits(_ node: LuaNode, _ varying: VaryingFields) -> [Limit] {
    guard let table = TableReader(node, nil, path: "limits", problems: problems) else { return [] }
    return table.names.compactMap { name in
      guard let node = table.take(name) else { return nil }
      guard name.wholeMatch(of: /[a-z][a-z0-9_]{0,47}/) != nil else {
        problems.add(node.location, "limits.\(name)", "a limit's name consists of lower-case letters, digits and _")
        return nil
      }
      return readLimit(name, node, varying)
    }
  }

  private func readLimit(_ name: String, _ node: LuaNode, _ varying: VaryingFields) -> Limit? {
    let path = "limits.\(name)"
    let before = problems.all.count
    guard let reader = TableReader(node, .limit, path: path, problems: problems) else { return nil }
    let action = reader.choice("on", LimitAction.self)
    let key = reader.choice("per", LimitKey.self)
    let max = reader.take("max").flatMap { varying.whole($0, "\(path).max", in: 1...1_000_000) }
    let counts = reader.choice("counts", LimitCounts.self) ?? (action == .verify ? .failures : .all)
    let windowNode = counts == .consecutiveFailures ? reader.take("window") : reader.require("window")
    let window = windowNode.flatMap { varying.duration($0, "\(path).window", atLeast: .seconds(1)) }
    let lockNode = reader.take("lock")
    let lock = lockNode.flatMap { varying.durations($0, "\(path).lock") } ?? []
    let disables = reader.flag("disable") ?? false
    if let action, !action.hasOutcome { demandPlain(action, counts, disables, reader, path) }
    if let lockNode, zip(lock, lock.dropFirst()).contains(where: { $0.highest > $1.highest }) {
      problems.warn(
        lockNode.location, "\(path).lock",
        "a lock is shorter than the one before it: sort the list in ascending order")
    }
    if let key, let action, action == .begin, key.isCeiling, !namesPerson {
      problems.warn(
        node.location, "\(path).per",
        "a flood of attempts exhausts this limit for everyone: a step of `\(descriptor.name)` begins without an account, so trusted devices cannot be "
          + "exempt from it; count per ip or device")
    }
    if let key, !applies(key) {
      problems.warn(
        node.location, "\(path).per", "`\(descriptor.name)` knows no \(key.rawValue), so this limit never applies")
    }
    guard problems.all.count == before, let action, let key, let max else { return nil }
    return Limit(
      name: name, action: action, key: key, max: max, window: window, counts: counts, lock: lock, disables: disables,
      location: node.location)
  }

  /// A begin or a registration has no outcome, so all of them count, and there is no credential to disable.
  private func demandPlain(
    _ action: LimitAction, _ counts: LimitCounts, _ disables: Bool, _ reader: TableReader, _ path: String
  ) {
    if counts != .all, let node = reader.explicitValue("counts") {
      problems.add(
        node.location, "\(path).counts",
        "every \(action.rawValue) counts, and none of them is a failure: remove it, or write counts = \"all\"")
    }
    if disables, let node = reader.explicitValue("disable") {
      problems.add(
        node.location, "\(path).disable",
        "a limit on \(action.rawValue) cannot disable a credential: remove it or use `lock`")
    }
  }

  /// Whether a step of the provider begins with a user's identifier.
  private var namesPerson: Bool { descriptor.beginFields.contains { descriptor.identifierKind(of: $0) != nil } }

  private func applies(_ key: LimitKey) -> Bool {
    switch key {
    case .phone, .country, .prefix: descriptor.identifierKinds.contains(.phone)
    // A policy may be for every choice of `identify_by`: without an address, a limit by address counts nothing.
    case .email: (descriptor.identifierKinds + descriptor.choosableKinds).contains(.email)
    default: true
    }
  }

  private func warn(
    _ limits: [Limit], _ code: CodeRule?, _ resendAfter: [Varying<Duration>], defaults: LuaNode, effective: LuaNode
  ) {
    guard case .table(let lower) = defaults.value, case .table(let table) = effective.value else { return }
    let location = table.fields["limits"]?.location ?? effective.location
    if case .table(let shipped)? = lower.fields["limits"]?.value {
      let lost = shipped.fields.keys.filter { name in !limits.contains { $0.name == name } }
      if !lost.isEmpty {
        problems.warn(
          location, "limits",
          "the default \(lost.count == 1 ? "limit" : "limits") \(Suggestion.list(lost)) \(lost.count == 1 ? "is" : "are") replaced and no longer in effect"
        )
      }
    }
    // Limits per user are needed only for messages and for guesses at codes or stored secrets.
    for action in [LimitAction.send, .verify]
    where (code != nil || action == .verify && descriptor.hashesSecrets)
      && !limits.contains(where: { $0.action == action && $0.key.isPersonal })
    {
      problems.warn(
        location, "limits",
        "no limit on \(action.rawValue) counts per phone, email, identifier or account: requests for one account are unlimited; add a limit with per = \"identifier\""
      )
    }
    if let code, let longest = resendAfter.map(\.highest).max(), longest > code.lifetime,
      case .table(let rule)? = table.fields["code"]?.value
    {
      problems.warn(
        rule.fields["ttl"]?.location ?? location, "code.ttl",
        "is shorter than the longest wait of timers.resend_after: a code expires before a new one can be requested")
    }
  }

  /// The location of each value, by its path.
  private static func locations(of node: LuaNode, path: String = "") -> [String: SourceLocation] {
    var locations: [String: SourceLocation] = path.isEmpty ? [:] : [path: node.location]
    if case .table(let table) = node.value {
      for (name, field) in table.fields {
        locations.merge(Self.locations(of: field, path: path.isEmpty ? name : "\(path).\(name)")) { first, _ in first }
      }
    }
    return locations
  }
}
