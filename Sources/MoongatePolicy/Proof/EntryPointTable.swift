import MoongateCore
import MoongateSDK

/// A flow that opens sessions, and the minimum sets of factors for it.
package struct EntryPoint: Sendable, Equatable, Encodable {
  /// The kind of account whose session it opens.
  package enum Person: String, Sendable, Encodable, CaseIterable {
    /// An account with every verified identifier and every factor.
    case everything
    /// An account with only what its registration provides, by this flow.
    case registered
  }

  package let flow: String
  package let account: Person
  /// The smallest set of providers to pass, in the order of the flow. If several are equally small, the first one.
  package let factors: [String]
  /// All sets of this size.
  package let alternatives: [[String]]

  enum CodingKeys: CodingKey { case flow, account, factors }
}

/// A flow that creates accounts.
package struct RegistrationPoint: Sendable, Equatable, Encodable {
  package let flow: String
  /// The sets of providers that create an account, without those that contain another one.
  package let providers: [[String]]
}

/// The weakest sign-in by which a user reaches an app.
package struct AppEntryPoint: Sendable, Equatable, Encodable {
  package let app: String
  /// The smallest set of providers to pass; nil if no session is accepted.
  package let factors: [String]?
  /// The groups of which the account must be in one, such as `"ops" or "staff"`; nil: none is required.
  package let group: String?
}

/// All entry points of a generation. An account is as well protected as the smallest set in the table.
package struct EntryPointTable: Sendable {
  /// By flow name. A flow that opens no session for such an account has no entry.
  package let entryPoints: [EntryPoint]
  /// The flows that create accounts, by name.
  package let registrations: [RegistrationPoint]
  /// Who can create an account by them.
  private let rule: RegistrationRule
  /// Whether the search exceeded its budget. The table is then empty.
  package let isIncomplete: Bool
  /// The apps, by client id; empty if their search exceeded its budget.
  package let apps: [AppEntryPoint]
  /// Where `admit` of accounts.lua is, which may refuse to open any of them; nil without one.
  private let admit: SourceLocation?

  /// - Parameter providers: the providers of the program, unless the generation has its own.
  package init(_ generation: any PolicyGeneration, providers: ProviderRegistry) {
    let budget = ProofBudget()
    admit = generation.accounts.admit == nil ? nil : generation.accounts.locations["admit"]
    let registry = generation.registry ?? providers
    apps = Self.apps(of: generation, registry)
    guard let generation = generation as? Generation,
      let functions = try? FunctionOutcomes(generation, registry, budget)
    else {
      (entryPoints, registrations, rule, isIncomplete) = ([], [], .open, false)
      return
    }
    let search = { (generation: Generation) in
      EntryPointSearch(
        SessionSearch(generation, providers: registry, functions: functions, budget: budget), registry)
    }
    do throws(ProofBudget.Exhausted) {
      let made = try search(generation.withOpenRegistration).registrations()
      let now =
        generation.accounts.registration == .closed
        ? [:] : generation.accounts.admit == nil ? made : try search(generation).registrations()
      entryPoints = try search(generation).entryPoints(registered: made, now: now)
      registrations = EntryPointSearch.registrationPoints(now)
      (rule, isIncomplete) = (generation.accounts.registration, false)
    } catch {
      (entryPoints, registrations, rule, isIncomplete) = ([], [], .open, true)
    }
  }
}

extension EntryPointTable {
  private static func apps(of generation: any PolicyGeneration, _ registry: ProviderRegistry) -> [AppEntryPoint] {
    let budget = ProofBudget()
    let apps = generation.apps.apps.filter(\.signsUsersIn)
    guard !apps.isEmpty, let generation = generation as? Generation,
      let functions = try? FunctionOutcomes(generation, registry, budget)
    else { return [] }
    let sessions = SessionSearch(generation, providers: registry, functions: functions, budget: budget)
    let search = RouteSearch(sessions: sessions, functions: functions, routes: [])
    guard let weakest = try? search.weakest(apps.map { SessionGate($0) }) else { return [] }
    return zip(apps, weakest).map { app, passed in
      AppEntryPoint(
        app: app.id, factors: passed?.map(\.rawValue),
        group: app.requirement.groups.map { $0.anyOf.map { "\"\($0)\"" }.joined(separator: " or ") })
    }
  }

  /// The apps with the weakest sign-in that each accepts. A thousand would hide the rest of the output.
  private func appLines(_ style: TerminalStyle) -> [String] {
    guard !apps.isEmpty else { return [] }
    let most = 50
    let name = max(3, apps.prefix(most).map(\.app.count).max() ?? 0)
    let lines = apps.prefix(most).map { app in
      let sets = app.factors.map { $0.joined(separator: " + ") } ?? "no sign-in"
      return "\(Columns.pad(app.app, to: name))  \(sets)\(app.group.map { ", in the group \($0)" } ?? "")"
    }
    return ["", style.dim("\(Columns.pad("app", to: name))  the weakest sign-in that it accepts")] + lines
      + (apps.count > most ? ["… and \(apps.count - most) more"] : [])
  }
}

/// Finds the smallest sets of factors.
private struct EntryPointSearch {
  private let sessions: SessionSearch
  /// The providers that can store a record of an account.
  private let keeping: [ProviderName]

  init(_ sessions: SessionSearch, _ registry: ProviderRegistry) {
    self.sessions = sessions
    keeping = registry.all.filter(\.keepsRecords).map(\.descriptor.name).filter {
      sessions.generation.policies[$0] != nil
    }
  }

  /// The sessions of new accounts, by the flow that creates them.
  func registrations() throws(ProofBudget.Exhausted) -> [String: [SessionState]] {
    var made: [String: [SessionState]] = [:]
    for flow in sessions.entryPoints { made[flow.name] = try registrations(flow) }
    return made
  }

  static func registrationPoints(_ made: [String: [SessionState]]) -> [RegistrationPoint] {
    made.sorted { $0.key < $1.key }.compactMap { flow, sessions in
      var sets: [[ProviderName]] = []
      for set in sessions.map({ $0.passed + $0.keeps.filter { [passed = $0.passed] in !passed.contains($0) } })
      where !sets.contains(where: { Set($0) == Set(set) }) {
        sets.append(set)
      }
      let least = sets.filter { set in !sets.contains { Set($0).isStrictSubset(of: set) } }
      let names = least.map { $0.map(\.rawValue) }.sorted { $0.lexicographicallyPrecedes($1) }
      return names.isEmpty ? nil : RegistrationPoint(flow: flow, providers: names)
    }
  }

  /// - Parameters:
  ///   - made: the sessions of new accounts at any time, by flow.
  ///   - now: those of accounts that can be created now.
  func entryPoints(registered made: [String: [SessionState]], now: [String: [SessionState]])
    throws(ProofBudget.Exhausted) -> [EntryPoint]
  {
    let registered = Set(made.values.flatMap(\.self).map(account))
    var entryPoints: [EntryPoint] = []
    for flow in sessions.entryPoints {
      if let found = entryPoint(flow, .everything, try entries(flow, [everything])) { entryPoints.append(found) }
      let own = (now[flow.name] ?? []).map(\.passed)
      if let found = entryPoint(flow, .registered, own + (try entries(flow, registered))) { entryPoints.append(found) }
    }
    return entryPoints
  }

  private func entryPoint(_ flow: FlowDefinition, _ person: EntryPoint.Person, _ sets: [[ProviderName]]) -> EntryPoint?
  {
    guard let least = sets.map(\.count).min() else { return nil }
    var smallest: [[ProviderName]] = []
    for set in sets where set.count == least && !smallest.contains(where: { Set($0) == Set(set) }) {
      smallest.append(set)
    }
    let texts = smallest.map { $0.map(\.rawValue) }
    return EntryPoint(flow: flow.name, account: person, factors: texts[0], alternatives: texts)
  }

  /// The sets of providers that open the accounts through the flow, on any device.
  private func entries(_ flow: FlowDefinition, _ accounts: Set<KnownFacts>) throws(ProofBudget.Exhausted)
    -> [[ProviderName]]
  {
    var sets: [[ProviderName]] = []
    for account in accounts.sorted(by: { "\($0.listed)" < "\($1.listed)" }) {
      try sessions.open(flow, account) { session in
        sets.append(session.passed)
        return true
      }
    }
    return sets
  }

  /// The accounts that the flow creates.
  private func registrations(_ flow: FlowDefinition) throws(ProofBudget.Exhausted) -> [SessionState] {
    var made: [SessionState] = []
    guard let nobody = KnownFacts([.exists: false]) else { return [] }
    try sessions.open(flow, nobody) { session in
      made.append(session)
      return true
    }
    return made
  }

  /// The facts of an account with every identifier and factor.
  private var everything: KnownFacts {
    KnownFacts(Dictionary(uniqueKeysWithValues: accountFacts.map { ($0, true) })) ?? KnownFacts()
  }

  private var accountFacts: [BooleanFact] {
    [.exists, .holds(.email), .holds(.name)]
      + IdentifierKind.allCases.filter(\.canBeVerified).map(BooleanFact.verified) + keeping.map(BooleanFact.keeps)
  }

  /// The facts of an account that a registration has created.
  private func account(of session: SessionState) -> KnownFacts {
    var facts = Dictionary(uniqueKeysWithValues: accountFacts.map { ($0, false) })
    facts[.exists] = true
    for kind in session.verified {
      facts[.verified(kind)] = true
      if kind == .email { facts[.holds(.email)] = true }
    }
    for kind in session.claims { facts[.holds(kind)] = true }
    for provider in session.keeps { facts[.keeps(provider)] = true }
    return KnownFacts(facts) ?? KnownFacts()
  }
}

extension EntryPointTable {
  /// The entry points as a table.
  /// - Parameter colour: whether to use terminal colours.
  package func text(colour: Bool) -> String {
    let style = TerminalStyle(isOn: colour)
    if isIncomplete { return "no entry points: the search exceeded 100,000 situations" }
    guard !entryPoints.isEmpty else { return "" }
    let heading = "entry point"
    let names = entryPoints.map(\.flow) + registrations.map(\.flow) + (registrations.isEmpty ? [] : ["registration"])
    let flow = max(heading.count, names.map(\.count).max() ?? 0)
    var lines = [style.dim("\(Columns.pad(heading, to: flow))  account     the weakest sign-in that opens it")]
    for entryPoint in entryPoints {
      let sets = entryPoint.alternatives.map { $0.joined(separator: " + ") }.joined(separator: ", or ")
      lines.append(
        "\(Columns.pad(entryPoint.flow, to: flow))  \(Columns.pad(entryPoint.account.rawValue, to: 10))  \(sets)")
    }
    if !registrations.isEmpty {
      lines += ["", style.dim("\(Columns.pad("registration", to: flow))  creates accounts\(rule.condition) by")]
      lines += registrations.map { registration in
        let sets = registration.providers.map { $0.joined(separator: " + ") }.joined(separator: ", or ")
        return "\(Columns.pad(registration.flow, to: flow))  \(sets)"
      }
    }
    lines += appLines(style)
    if let admit { lines += ["", style.dim("\(admit) decides by `admit` who may pass each of these")] }
    return lines.joined(separator: "\n")
  }
}

extension RegistrationRule {
  /// Who can create an account, as a part of a sentence; empty: everybody.
  fileprivate var condition: String {
    guard self != .open else { return "" }
    let addresses = domains.isEmpty ? "" : ", or a verified address of \(domains.joined(separator: ", ")),"
    return " with an invitation\(addresses)"
  }
}
