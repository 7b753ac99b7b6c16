import MoongateCore
import MoongateSDK

/// The context in which a function is called, and the facts that are possible there.
struct FunctionSituation {
  /// The kind of result that the function returns.
  enum Question {
    case verdict(LimitAction?)
    case condition
    case claim
    /// `claims` of an app.
    case appClaims
    case number(Varying<Int>)
    case duration(Varying<Duration>)
  }

  let question: Question
  let audience: FunctionTable.Audience
  let generation: Generation
  let literals: FileLiterals
  /// The flows in which it is called.
  var flows: [String] = []
  var provider: ProviderName?
  /// The kinds of identifier that it may be called with; nil stands for no identifier.
  var kinds: [IdentifierKind?] = [nil]
  /// Whether it may be called without an account, with one, or both.
  var exists: [Bool] = [false, true]
  /// Whether an account that does not exist may have groups: those of its invitation.
  var isOfInvited = false
  /// The route that it decides about.
  var route: Route?
  /// Whether it belongs to an app, so that the request is one for a code.
  var isOfApp = false

  // MARK: dimensions

  /// The number of values of a dimension.
  func count(_ dimension: FactDimension) -> Int {
    switch dimension {
    case .flow: max(1, flows.count)
    case .identifier: kinds.count
    case .accountExists: exists.count
    case .now: 24
    case .method: methods.count
    case .path: paths.count
    case .limits: 3
    case .address: addresses.count
    case .country: countries.count
    case .asn: systems.count
    case .sessionAAL: 3
    case .declared(let path): declared(path).map(values)?.count ?? 1
    case .accountPIN, .accountEmail, .accountEmailVerified, .accountPhoneVerified, .accountAge, .factor, .passed,
      .userAgent, .newDevice,
      .networkChanged, .clockSuspect, .query, .sessionEmail, .sessionPhone, .sessionAge, .group:
      2
    }
  }

  /// The dimensions that affect the facts that a call has read, in a stable order.
  func dimensions(_ reads: FactReads) -> [FactDimension] {
    var found: Set<FactDimension> = []
    for slot in reads.slots { found.formUnion(dimensions(slot, reads)) }
    for path in reads.declared {
      found.insert(.declared(path))
      if case .identifier? = declared(path)?.place { found.insert(.identifier) }
    }
    if reads.readsLimits { found.insert(.limits) }
    for inner in reads.ofGroups { found.formUnion(dimensions(inner)) }
    return found.sorted()
  }

  private func dimensions(_ slot: FactSlot, _ reads: FactReads) -> [FactDimension] {
    let members = (reads.members[slot] ?? []).sorted()
    switch slot {
    case .now: return [.now]
    case .action, .provider, .requestHost, .sessionAccount, .sessionClaims: return []
    case .flowName: return [.flow]
    case .flowPassed, .sessionPassed: return members.filter(isProvider).map(FactDimension.passed)
    case .identifier, .phoneE164, .emailAddress: return [.identifier]
    case .accountExists, .accountID: return [.accountExists]
    case .accountAge, .accountIdle: return [.accountExists, .accountAge]
    case .accountHasPIN: return [.accountExists, .accountPIN]
    case .accountHasEmail: return [.accountExists, .accountEmail]
    case .accountEmailVerified: return [.accountExists, .accountEmail, .accountEmailVerified]
    case .accountPhoneVerified: return [.accountExists, .accountPhoneVerified]
    case .accountFactors: return [.accountExists] + members.filter(isProvider).map(FactDimension.factor)
    case .clientIP, .clientNetwork: return [.address]
    case .clientCountry: return [.country]
    case .clientASN: return [.asn]
    case .clientUserAgent: return [.userAgent]
    case .clientNewDevice: return [.newDevice]
    case .clientNetworkChanged: return [.networkChanged]
    case .clockSuspect: return [.clockSuspect]
    case .requestMethod: return [.method]
    case .requestPath: return [.path]
    case .requestQuery: return [.query]
    case .sessionAge: return [.sessionAge]
    case .sessionAAL: return [.sessionAAL]
    case .accountGroups:
      // Computed groups follow from what their functions read.
      return [.accountExists]
        + generation.accounts.groups.filter { $0.value == .members }.keys.map(\.rawValue).filter {
          reads.listed.contains(slot) || members.contains($0)
        }.map(FactDimension.group)
    case .sessionGroups:
      return generation.accounts.groups.keys.map(\.rawValue).filter {
        reads.listed.contains(slot) || members.contains($0)
      }.map(FactDimension.group)
    case .sessionEmail, .sessionEmailVerified: return [.sessionEmail]
    case .sessionPhone: return [.sessionPhone]
    }
  }

  /// Whether the call read facts whose possible values are unknown, so that a failure proves nothing. Claims can have
  /// any value that their functions return.
  func isUncertain(_ reads: FactReads) -> Bool { reads.slots.contains(.sessionClaims) }

  private func isProvider(_ name: String) -> Bool {
    ProviderName(rawValue: name).map(generation.providers.contains) ?? false
  }

  private func declared(_ path: String) -> DeclaredFact? { generation.declaredFacts.first { $0.path == path } }

  // MARK: values

  private var methods: [String] {
    isOfApp ? ["GET"] : route?.methods.map { $0.sorted() } ?? ["GET", "POST", "DELETE", "PUT"]
  }

  private var paths: [String] {
    if isOfApp { return [App.requestPath] }
    return [route?.path.text.replacing("**", with: "x").replacing("*", with: "x") ?? "/"]
      + literals.texts.filter { $0.hasPrefix("/") }
  }

  private var addresses: [ClientAddress] {
    let named = literals.texts.compactMap { text in IPAddressText.parse(String(text.prefix { $0 != "/" }).utf8) }
    return [
      ClientAddress(bytes: [203, 0, 113, 7]),
      ClientAddress(bytes: [0x20, 0x01, 0x0d, 0xb8] + [UInt8](repeating: 1, count: 12)),
    ]
    .compactMap(\.self) + named
  }

  private var countries: [String?] { ["US"] + literals.texts.filter { $0.utf8.count == 2 } + [nil] }
  private var systems: [Int?] { [64_500] + literals.numbers.filter { $0 >= 0 }.map(Int.init) + [nil] }

  /// The values of a declared fact to try.
  private func values(_ fact: DeclaredFact) -> [String] {
    switch fact.kind {
    case .flag: ["true", "false"]
    case .number: (literals.numbers + [0, 1, 1_000]).map(String.init)
    case .text: ["US"] + literals.texts
    // Whether the account has an identity at the site, with the groups or data that the file names.
    case .groups, .data, .presence: ["", "identity"]
    }
  }

  /// The facts of a combination; nil for a combination that is impossible.
  func facts(_ choice: FactChoice) -> Facts? {
    let now = Timestamp(milliseconds: 1_767_225_600_000 + Int64(choice[.now]) * 3_600_000)
    var facts = Facts(
      now: now, provider: provider, account: AccountFacts(), client: client(choice),
      clockIsSuspect: choice[.clockSuspect] == 1)
    if case .verdict(let action) = question { facts.action = action }
    switch audience {
    // `identity` reads no facts, only what another site says.
    case .identity: return nil
    case .route:
      facts.request = request(choice)
      facts.session = session(choice, at: now)
    case .entitlement:
      facts.account = account(choice)
      facts.session = session(choice, at: now)
      facts.identifiers = kinds[choice[.identifier]].map { [identifier($0, choice)] } ?? []
      // Only an identifier that exists can be verified.
      let kind = kinds[choice[.identifier]]
      facts.account.isEmailVerified = facts.account.isEmailVerified && kind == .email
      facts.account.isPhoneVerified = facts.account.isPhoneVerified && kind == .phone
    case .flow, .policy:
      facts.account = account(choice)
      facts.identifier = kinds[choice[.identifier]].map { identifier($0, choice) }
      if let name = flows.isEmpty ? nil : flows[choice[.flow]] {
        facts.flow = FlowFacts(name: name, passed: passed(choice), reported: reported(choice))
      }
      if !facts.account.exists, !facts.client.isNewDevice { return nil }
      facts.limits = limits(choice, at: now)
    }
    if facts.account.exists || isOfInvited { facts.account.groups = groups(choice, facts, at: now) }
    return facts
  }

  /// What the groups of the account are computed from. Only identifiers that the account holds are verified.
  private func groups(_ choice: FactChoice, _ facts: Facts, at now: Timestamp) -> GroupFacts {
    let held: [IdentifierKind] =
      (facts.account.isEmailVerified ? [.email] : []) + (facts.account.isPhoneVerified ? [.phone] : [])
    return GroupFacts(
      listed: Set(generation.accounts.groups.keys.filter { choice[.group($0.rawValue)] == 1 }),
      identifiers: facts.session == nil ? held.map { identifier($0, choice) } : facts.identifiers,
      session: facts.session ?? session(choice, at: now))
  }

  private func client(_ choice: FactChoice) -> ClientFacts {
    ClientFacts(
      address: addresses[choice[.address]], userAgent: choice[.userAgent] == 0 ? "Mozilla/5.0" : nil,
      isNewDevice: choice[.newDevice] == 0,
      networkChanged: choice[.networkChanged] == 1,
      place: ClientPlace(country: countries[choice[.country]], asn: systems[choice[.asn]]))
  }

  private func account(_ choice: FactChoice) -> AccountFacts {
    guard exists[choice[.accountExists]] else { return AccountFacts() }
    let age: Duration = choice[.accountAge] == 0 ? .seconds(400 * 86_400) : .zero
    let hasEmail = choice[.accountEmail] == 1
    return AccountFacts(
      exists: true, id: Moment.account, age: age, idle: age, hasPIN: choice[.accountPIN] == 1, hasEmail: hasEmail,
      isEmailVerified: hasEmail && choice[.accountEmailVerified] == 1,
      isPhoneVerified: choice[.accountPhoneVerified] == 0,
      factors: generation.providers.filter { choice[.factor($0.rawValue)] == 1 }, identities: identities(choice))
  }

  /// The identities of the account: each says what the file's texts name.
  private func identities(_ choice: FactChoice) -> [ProviderName: Identifier] {
    var found: [ProviderName: Identifier] = [:]
    for fact in generation.declaredFacts where choice[.declared(fact.path)] > 0 {
      guard case .identity(let provider) = fact.place else { continue }
      let data = Dictionary(literals.texts.map { ($0, $0) }) { first, _ in first }
      found[provider] = Identifier(
        kind: .federated, value: "\(provider) person", display: "person", attributes: data, groups: literals.texts)
    }
    return found
  }

  private func passed(_ choice: FactChoice) -> Set<ProviderName> {
    generation.providers.filter { choice[.passed($0.rawValue)] == 1 }
  }

  private func identifier(_ kind: IdentifierKind, _ choice: FactChoice) -> Identifier {
    var attributes: [String: String] = [:]
    for fact in generation.declaredFacts where fact.place == .identifier(kind) {
      attributes[fact.name] = value(fact, choice)
    }
    return Moment.sample(kind, attributes)
  }

  /// The facts that providers have reported in the flow.
  private func reported(_ choice: FactChoice) -> [ProviderName: [String: String]] {
    var reported: [ProviderName: [String: String]] = [:]
    for fact in generation.declaredFacts {
      if case .provider(let provider) = fact.place { reported[provider, default: [:]][fact.name] = value(fact, choice) }
    }
    return reported
  }

  private func value(_ fact: DeclaredFact, _ choice: FactChoice) -> String {
    // The two paths of a fact have the same value, regardless of which one was varied.
    let paths = [fact.path] + generation.declaredFacts.filter { $0.longPath == fact.path }.map(\.path)
    let values = values(fact)
    return values[paths.map { choice[.declared($0)] }.first { $0 > 0 } ?? 0]
  }

  private func limits(_ choice: FactChoice, at now: Timestamp) -> [LimitFacts] {
    // The functions of `vary` determine the limits, so no limits exist yet when they run.
    guard case .verdict = question, case .policy = audience, let provider, let policy = generation.policies[provider]
    else { return [] }
    return policy.limits.map { limit in
      let max = limit.max.highest
      return LimitFacts(
        name: limit.name, used: choice[.limits] == 0 ? 0 : max, max: max,
        lockedUntil: choice[.limits] == 2 ? now + .seconds(900) : nil)
    }
  }

  private func request(_ choice: FactChoice) -> RequestFacts {
    RequestFacts(
      method: methods[choice[.method]], host: route?.host ?? generation.gateway.publicURL.host,
      path: paths[choice[.path]],
      query: choice[.query] == 0 ? "" : "page=2")
  }

  private func session(_ choice: FactChoice, at now: Timestamp) -> SessionFacts {
    SessionFacts(
      account: Moment.account,
      passed: Dictionary(passed(choice).map { ($0, now + .seconds(-60)) }) { first, _ in first },
      age: choice[.sessionAge] == 0 ? .seconds(60) : .seconds(30 * 86_400), aal: [1, 2, 0][choice[.sessionAAL]],
      email: choice[.sessionEmail] == 0 ? "person@example.com" : nil,
      phone: choice[.sessionPhone] == 0 ? "+919000000001" : nil,
      entitlements: Entitlements(groups: generation.accounts.groups.keys.filter { choice[.group($0.rawValue)] == 1 }))
  }

  // MARK: the call

  /// Calls the function.
  /// - Returns: why the function failed; nil if it returned a valid result.
  func call(_ evaluator: LuaEvaluator, _ name: FunctionName, _ facts: Facts) -> PolicyFault? {
    do throws(PolicyFault) {
      switch question {
      case .verdict: if case .fault(let fault) = evaluator.verdict(of: name, given: facts) { return fault }
      case .condition: _ = try evaluator.condition(of: name, given: facts)
      case .claim: _ = try evaluator.claim(of: name, given: facts)
      case .appClaims: _ = try evaluator.appClaims(of: name, given: facts)
      case .number(let varying): _ = try evaluator.value(of: varying, given: facts)
      case .duration(let varying): _ = try evaluator.value(of: varying, given: facts)
      }
      return nil
    } catch {
      return error
    }
  }
}
