import MoongateCore
import MoongateSDK

/// The point of a flow, or the request, at which a function is called: all facts except the undecided ones.
struct Moment {
  /// Boolean facts that can change from call to call. A function is called with both values.
  enum FreeFact: Hashable {
    case networkChanged, clockSuspect
    /// A declared fact of the kind `flag`, by its path. It can also be absent, which reads as false.
    case flag(String)
    /// Whether the session is in the group, or the invitation of a new account leads into it.
    case group(GroupName)
    /// Whether the session's account has a verified email address.
    case emailVerified
  }

  var action: LimitAction?
  var provider: ProviderName?
  var flow: FlowFacts?
  /// The kind of the identifier that the function receives; nil if it receives none.
  var identifier: IdentifierKind?
  /// Whether the account is known at this point. Before that, functions see the facts of an account that does not
  /// exist.
  var knowsAccount = false
  /// Whether this is the request that created the flow, which defines the flow's network.
  var isCreation = false
  var session: SessionFacts?
  var request: RequestFacts?
  /// Whether the call is about an account that the flow creates, whose invitation may lead into any group.
  var mayBeInvited = false
  /// Groups that the session is not in. Membership of other groups is undecided.
  var lacksGroups: Set<GroupName> = []

  /// The clock of every call. A function that reads it is assumed to return any result.
  static let now = Timestamp(milliseconds: 1_800_000_000_000)
  static let account = "ac_of_a_guarantee"
  static let version = AccountVersion(id: account, epoch: 0)

  /// The facts of a call. Undecided facts read as false.
  func facts(_ known: KnownFacts, _ free: [FreeFact: Bool], in generation: Generation) -> Facts {
    let declared = generation.declaredFacts
    var client = ClientFacts(address: .unspecified)
    client.isNewDevice = session == nil ? (knowsAccount ? known[.newDevice] ?? false : true) : false
    client.networkChanged = networkChanged(known) ?? free[.networkChanged] ?? false
    var flow = flow
    for fact in declared where fact.kind == .flag {
      if case .provider(let provider) = fact.place {
        flow?.reported[provider, default: [:]][fact.name] = String(free[.flag(fact.path)] ?? false)
      }
    }
    var session = session
    if session != nil {
      session?.entitlements = Entitlements(
        groups: free.compactMap { fact, isTrue in if case .group(let name) = fact, isTrue { name } else { nil } })
      session?.email = free[.emailVerified] ?? false ? "person@example.com" : nil
    }
    var account = knowsAccount ? account(known, generation.pads) : AccountFacts()
    if mayBeInvited {
      account.groups.listed = Set(
        free.compactMap { fact, isTrue in if case .group(let name) = fact, isTrue { name } else { nil } })
    }
    return Facts(
      now: Self.now, action: action, provider: provider, flow: flow,
      identifier: identifier.map { Self.identifier($0, free, declared) },
      account: account, client: client,
      clockIsSuspect: free[.clockSuspect] ?? false,
      request: request,
      session: session)
  }

  private func account(_ known: KnownFacts, _ pads: Set<ProviderName>) -> AccountFacts {
    var factors: Set<ProviderName> = []
    for (fact, value) in known.all { if case .keeps(let provider) = fact, value { factors.insert(provider) } }
    var facts = AccountFacts(
      exists: true, id: Self.account, age: .seconds(86_400), idle: .seconds(3_600),
      hasPIN: !factors.isDisjoint(with: pads),
      hasEmail: known[.holds(.email)] ?? false, isEmailVerified: known[.verified(.email)] ?? false,
      isPhoneVerified: known[.verified(.phone)] ?? false, factors: factors)
    facts.groups.listed = Set(
      known.all.compactMap { fact, value in if case .group(let name) = fact, value { name } else { nil } })
    return facts
  }

  /// Whether the network differs from the flow's; nil if it is undecided.
  private func networkChanged(_ known: KnownFacts) -> Bool? {
    if session != nil || isCreation { return false }
    return known[.networkChanged]
  }

  private static func identifier(_ kind: IdentifierKind, _ free: [FreeFact: Bool], _ declared: [DeclaredFact])
    -> Identifier
  {
    var attributes: [String: String] = [:]
    for fact in declared where fact.place == .identifier(kind) && fact.kind == .flag {
      attributes[fact.name] = String(free[.flag(fact.path)] ?? false)
    }
    return sample(kind, attributes)
  }

  /// An identifier for a call.
  static func sample(_ kind: IdentifierKind, _ attributes: [String: String]) -> Identifier {
    let value =
      switch kind {
      case .phone: "+919000000001"
      case .email: "person@example.com"
      case .federated: "https://accounts.example.com person"
      case .name: "person"
      }
    return Identifier(kind: kind, value: value, display: value, attributes: attributes)
  }

  // MARK: dependencies of a call

  /// The first undecided fact that the call read, itself or by the function of a group.
  /// - Parameter keeping: the providers that can store a record of an account.
  func openFact(_ reads: FactReads, _ known: KnownFacts, keeping: [ProviderName], in generation: Generation)
    -> BooleanFact?
  {
    let facts = ([reads] + reads.ofGroups).flatMap { reads in
      reads.slots.flatMap { decidable($0, reads, keeping, generation) }
    }
    return facts.sorted(by: BooleanFact.isBefore).first { known[$0] == nil }
  }

  private func decidable(
    _ slot: FactSlot, _ reads: FactReads, _ providers: [ProviderName], _ generation: Generation
  ) -> [BooleanFact] {
    guard session == nil else { return [] }
    switch slot {
    case .clientNewDevice: return knowsAccount ? [.newDevice] : []
    case .accountHasPIN:
      return knowsAccount ? providers.filter(generation.pads.contains).map(BooleanFact.keeps) : []
    case .accountHasEmail: return knowsAccount ? [.holds(.email)] : []
    case .accountEmailVerified: return knowsAccount ? [.verified(.email)] : []
    case .accountPhoneVerified: return knowsAccount ? [.verified(.phone)] : []
    case .accountFactors:
      guard knowsAccount else { return [] }
      let named = reads.members[slot] ?? []
      return providers.filter { reads.listed.contains(slot) || named.contains($0.rawValue) }.map(BooleanFact.keeps)
    case .accountGroups:
      guard knowsAccount else { return [] }
      let named = reads.members[slot] ?? []
      let listed = generation.accounts.groups.filter { $0.value == .members }.keys
      return listed.filter { reads.listed.contains(slot) || named.contains($0.rawValue) }.map(BooleanFact.group)
    default: return []
    }
  }

  /// The free facts that the call read.
  /// - Parameter groups: the groups of accounts.lua.
  func freeFacts(_ reads: FactReads, _ known: KnownFacts, declared: [DeclaredFact], groups: Set<GroupName>)
    -> [FreeFact]
  {
    var free: [FreeFact] = []
    let named = reads.members[.sessionGroups] ?? []
    free += groups.subtracting(lacksGroups).filter {
      reads.listed.contains(.sessionGroups) || named.contains($0.rawValue)
    }.sorted().map(
      FreeFact.group)
    if mayBeInvited {
      let invited = groups.filter { group in
        ([reads] + reads.ofGroups).contains { reads in
          reads.listed.contains(.accountGroups) || reads.members[.accountGroups]?.contains(group.rawValue) ?? false
        }
      }
      free += invited.sorted().map(FreeFact.group)
    }
    if reads.slots.contains(.sessionEmailVerified) || reads.slots.contains(.sessionEmail) {
      free.append(.emailVerified)
    }
    if reads.slots.contains(.clientNetworkChanged), networkChanged(known) == nil { free.append(.networkChanged) }
    if reads.slots.contains(.clockSuspect) { free.append(.clockSuspect) }
    for fact in declared where fact.kind == .flag && isAvailable(fact) && reads.declared.contains(fact.path) {
      if !free.contains(.flag(fact.longPath)) { free.append(.flag(fact.longPath)) }
    }
    return free
  }

  /// Whether the fact can have a value at this point. A fact that a provider reports in the flow may have any value.
  private func isAvailable(_ fact: DeclaredFact) -> Bool {
    switch fact.place {
    case .identifier(let kind): kind == identifier
    case .provider, .named: flow != nil
    case .identity: knowsAccount
    }
  }

  /// Whether the function of a group read anything but decidable facts of the account. What the session has passed also
  /// depends on earlier flows.
  private static func readsUnboundedOfGroup(_ reads: FactReads) -> Bool {
    if !reads.declared.isEmpty { return true }
    return reads.slots.contains { slot in
      switch slot {
      case .accountExists, .accountHasPIN, .accountHasEmail, .accountEmailVerified, .accountPhoneVerified,
        .accountFactors, .accountGroups:
        false
      default: true
      }
    }
  }

  /// Whether the call read a fact with unbounded values: a time, a number or a text.
  func readsUnbounded(_ reads: FactReads, declared: [DeclaredFact]) -> Bool {
    if reads.readsLimits || reads.ofGroups.contains(where: Self.readsUnboundedOfGroup) { return true }
    if declared.contains(where: { isAvailable($0) && $0.kind != .flag && reads.declared.contains($0.path) }) {
      return true
    }
    return reads.slots.contains { slot in
      switch slot {
      case .now, .clientIP, .clientNetwork, .clientCountry, .clientASN, .clientUserAgent, .requestMethod, .requestHost,
        .requestPath, .requestQuery,
        .sessionAccount, .sessionAge,
        .sessionClaims, .sessionPhone, .sessionEmail:
        true
      case .identifier: identifier != nil
      case .phoneE164: identifier == .phone
      case .emailAddress: identifier == .email
      case .accountID, .accountAge, .accountIdle: knowsAccount
      // Whether a provider was passed is known, but not when.
      case .sessionPassed:
        (reads.members[slot] ?? []).contains { name in session?.passed.keys.contains { $0.rawValue == name } ?? false }
      case .action, .provider, .flowName, .flowPassed, .accountExists, .accountHasPIN, .accountHasEmail,
        .accountEmailVerified,
        .accountPhoneVerified, .accountFactors, .accountGroups, .clientNewDevice, .clientNetworkChanged, .clockSuspect,
        .sessionAAL,
        .sessionGroups,
        .sessionEmailVerified:
        false
      }
    }
  }
}
