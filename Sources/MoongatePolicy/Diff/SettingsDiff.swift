import MoongateCore
import MoongateSDK

/// Compares the settings of two configurations and determines the effect of each difference alone.
struct SettingsDiff {
  private let old: any PolicyGeneration
  private let new: any PolicyGeneration
  private let providers: ProviderRegistry
  private let oldFunctions: FunctionTexts?
  private let newFunctions: FunctionTexts?

  /// - Parameter providers: the providers of the newer configuration.
  init(old: any PolicyGeneration, new: any PolicyGeneration, providers: ProviderRegistry) {
    self.old = old
    self.new = new
    self.providers = providers
    oldFunctions = (old as? Generation).map(FunctionTexts.init)
    newFunctions = (new as? Generation).map(FunctionTexts.init)
  }

  /// Policies first, by provider; then accounts.lua, apps.lua, flows, routes.lua and gateway.lua.
  var changes: [SettingChange] {
    let names = Set(old.policies.keys).union(new.policies.keys).sorted()
    let policies = names.flatMap { name in
      compared(
        "policies/\(name)", old.policies[name].map { PolicyListing($0).values } ?? [],
        new.policies[name].map { PolicyListing($0).values } ?? []
      ) { effect(of: $0, in: name) }
    }
    let tokens = compared(
      "policies/token", PolicyListing(old.tokenPolicy).values, PolicyListing(new.tokenPolicy).values)
    let accounts = compared("accounts", PolicyListing(old.accounts).values, PolicyListing(new.accounts).values)
    let flows = Set(old.flows.keys).union(new.flows.keys).sorted().flatMap { name in
      compared(
        "flows/\(name)", old.flows[name].map(FlowListing.lines) ?? [], new.flows[name].map(FlowListing.lines) ?? [])
    }
    let apps = compared(
      "apps", FlowListing.lines(old.apps, beside: new.apps), FlowListing.lines(new.apps, beside: old.apps))
    let routes = RouteDiff(old: old, new: new, labels: labels)
    return policies + tokens + accounts + apps + flows + routes.changes
      + compared("gateway", FlowListing.lines(old.gateway), FlowListing.lines(new.gateway))
  }

  /// An added or removed limit is one change, not one for each of its fields.
  private func compared(
    _ of: String, _ old: [PolicyListing.Line], _ new: [PolicyListing.Line],
    effect: (String) -> SettingChange.Effect = { _ in .init() }
  ) -> [SettingChange] {
    let (before, after) = (Self.folded(old, beside: new), Self.folded(new, beside: old))
    var left = Dictionary(before.map { ($0.path, $0) }) { first, _ in first }
    var changes: [SettingChange] = []
    func change(_ path: String, _ old: PolicyListing.Line?, _ new: PolicyListing.Line?) -> SettingChange {
      let said = new ?? old
      let labels = functions(of, path)
      return SettingChange(
        of: of, path: path, old: old.map { labels?.old ?? $0.value }, new: new.map { labels?.new ?? $0.value },
        file: said?.file, line: said?.line, effect: effect(path))
    }
    for line in after {
      let was = left.removeValue(forKey: line.path)
      if was?.value != line.value || functions(of, line.path) != nil { changes.append(change(line.path, was, line)) }
    }
    return changes + before.filter { left[$0.path] != nil }.map { change($0.path, $0, nil) }
  }

  /// Labels for the two versions of a path's function if its text differs; nil if it is unchanged or there is no
  /// function.
  private func functions(_ of: String, _ path: String) -> (old: String, new: String)? {
    let name = FunctionName("\(of).\(path)")
    return labels(name, name)
  }

  private func labels(_ old: FunctionName, _ new: FunctionName) -> (old: String, new: String)? {
    guard let before = oldFunctions?.text(of: old), let after = newFunctions?.text(of: new), before != after else {
      return nil
    }
    return ("function (\(before.location))", "another (\(after.location))")
  }

  /// Combines the fields of a limit or step that only one side has into one line.
  private static func folded(_ lines: [PolicyListing.Line], beside others: [PolicyListing.Line]) -> [PolicyListing.Line]
  {
    let known = Set(others.compactMap { limit($0.path) })
    var folded: [PolicyListing.Line] = []
    for line in lines {
      guard let limit = limit(line.path), !known.contains(limit) else {
        folded.append(line)
        continue
      }
      let field = String(line.path.dropFirst(limit.count + 1))
      if let last = folded.last, last.path == limit {
        folded[folded.count - 1] = PolicyListing.Line(
          path: limit, value: String(last.value.dropLast(2)) + ", \(field) = \(line.value) }", file: last.file,
          line: last.line)
      } else {
        folded.append(
          PolicyListing.Line(path: limit, value: "{ \(field) = \(line.value) }", file: line.file, line: line.line))
      }
    }
    return folded
  }

  /// The limit of a path, such as `limits.verify` for `limits.verify.max`.
  private static func limit(_ path: String) -> String? {
    let parts = path.split(separator: ".")
    return parts.count == 3 && parts[0] == "limits" ? parts[0] + "." + parts[1] : nil
  }

  // MARK: effects

  private func effect(of path: String, in name: ProviderName) -> SettingChange.Effect {
    var effect = SettingChange.Effect()
    guard let before = old.policies[name], let after = new.policies[name], let provider = providers[name] else {
      return effect
    }
    let changed = before.replacing(path, from: after)
    let (was, now) = (GuessBudget(of: provider, before), GuessBudget(of: provider, changed))
    if was.per30Days != now.per30Days { effect.guesses = .init(old: was.per30Days, new: now.per30Days) }
    if let old = was.probability30Days, let new = now.probability30Days, old != new {
      effect.probability = .init(old: GuessBudget.percent(old), new: GuessBudget.percent(new))
    }
    let (cost, costs) = (CostBudget(before), CostBudget(changed))
    if cost.messagesToOnePerDay != costs.messagesToOnePerDay {
      effect.messagesToOne = .init(old: cost.messagesToOnePerDay, new: costs.messagesToOnePerDay)
    }
    if cost.messagesPerHour != costs.messagesPerHour {
      effect.messages = .init(old: cost.messagesPerHour, new: costs.messagesPerHour)
    }
    if cost.accountsPerHour != costs.accountsPerHour {
      effect.accounts = .init(old: cost.accountsPerHour, new: costs.accountsPerHour)
    }
    let limit = path.split(separator: ".").dropFirst().first.map(String.init)
    if path.hasPrefix("limits."), let limit {
      let (old, new) = (before.lockText(limit), changed.lockText(limit))
      if old != new { effect.locks = .init(old: old, new: new) }
    }
    return effect
  }
}

extension ProviderPolicy {
  /// The same policy with one setting taken from another policy.
  fileprivate func replacing(_ path: String, from other: ProviderPolicy) -> ProviderPolicy {
    let parts = path.split(separator: ".").map(String.init)
    var limits = limits
    var code = code
    switch parts.first {
    case "code":
      code = CodeRule(
        length: path == "code.length" ? other.code.length : code.length,
        alphabet: path == "code.alphabet" ? other.code.alphabet : code.alphabet,
        lifetime: path == "code.ttl" ? other.code.lifetime : code.lifetime)
    case "limits" where parts.count > 1:
      let theirs = other.limits.first { $0.name == parts[1] }
      if let index = limits.firstIndex(where: { $0.name == parts[1] }) {
        if parts.count > 2, let theirs {
          limits[index] = limits[index].replacing(parts[2], from: theirs)
        } else {
          limits.remove(at: index)
        }
      } else if let theirs {
        limits.append(theirs)
      }
    default: break
    }
    return ProviderPolicy(
      provider: provider, code: code, resendAfter: resendAfter, limits: limits, unknownAccount: unknownAccount,
      message: message, send: send,
      verify: verify, identity: identity, reasons: reasons, locations: locations)
  }

  /// When the limit locks, and for how long.
  fileprivate func lockText(_ name: String) -> String {
    guard let limit = limits.first(where: { $0.name == name }), limit.action == .verify,
      limit.disables || !limit.lock.isEmpty
    else { return "none" }
    let after = "after \(limit.max.lowest)" + (limit.window.map { " in \($0.lowest.asWritten)" } ?? " in a row")
    if limit.disables { return "\(after) until an operator re-enables it" }
    return "\(after) for \(limit.lock.map(\.highest.asWritten).joined(separator: ", "))"
  }
}

extension Limit {
  fileprivate func replacing(_ field: String, from other: Limit) -> Limit {
    Limit(
      name: name, action: field == "on" ? other.action : action, key: field == "per" ? other.key : key,
      max: field == "max" ? other.max : max,
      window: field == "window" ? other.window : window, counts: field == "counts" ? other.counts : counts,
      lock: field == "lock" ? other.lock : lock, disables: field == "disable" ? other.disables : disables,
      location: location)
  }
}
