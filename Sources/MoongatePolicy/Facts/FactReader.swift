import CLua
import MoongateCore
import MoongateSDK

/// The facts of the current call, read by C one at a time. Belongs to one evaluator.
final class FactReader {
  /// The value of a fact.
  enum Answer {
    case null
    case flag(Bool)
    case integer(Int64)
    case number(Double)
    case text(String)
  }

  /// The facts of the running call, in the caller's memory. A copy would change reference counts with each fact that is
  /// read.
  var facts: UnsafePointer<Facts>?
  /// The limits of the function's policy, in slot order.
  var limits: [String] = []
  /// The declared facts of the program's providers, in slot order.
  let declared: [DeclaredFact]
  /// Holds the last returned text until the next call.
  private var scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: 256, alignment: 1)

  init(declared: [DeclaredFact]) { self.declared = declared }

  deinit { scratch.deallocate() }

  /// The facts that a run of a function has read. Bits keep the recording cheap.
  struct Recording {
    /// The slots of own facts, of declared facts, and of the first limits.
    fileprivate(set) var slots: UInt64 = 0
    fileprivate(set) var declared: UInt64 = 0
    fileprivate(set) var limits: UInt64 = 0
    /// The members of sets that were read by name, and the sets that were listed. Nil while it is not recorded, as for
    /// production requests.
    fileprivate(set) var sets: (members: [FactSlot: Set<String>], listed: Set<FactSlot>)?
  }

  /// What the running function, or else the last one, has read.
  var recording = Recording()

  /// Starts recording which members of sets are read.
  func noteSetReads() { recording.sets = ([:], []) }

  /// The groups that accounts.lua defines, sorted, and those of them that functions compute.
  var groups: (all: [String], computed: Set<String>) = ([], [])
  /// Whether the account is in a computed group, as far as the current call has needed to know.
  var memberships: [String: Bool] = [:]
  /// Computed groups that the running function has read first of those that are not in `memberships`. It then runs
  /// again.
  private(set) var missing: Set<String> = []
  /// What functions of groups have read for the current call.
  private var groupReads: (slots: UInt64, declared: UInt64, all: [FactReads]) = (0, 0, [])

  /// Forgets the groups of the call before.
  func forgetGroups() {
    memberships = [:]
    groupReads = (0, 0, [])
  }

  /// Records what the function of a group has read.
  func noteGroup() {
    groupReads.slots |= recording.slots
    groupReads.declared |= recording.declared
    if recording.sets != nil { groupReads.all.append(ownReads) }
  }

  /// Resets the recording before a run.
  func forgetReads() {
    let notesSets = recording.sets != nil
    recording = Recording()
    if notesSets { noteSetReads() }
    missing = []
  }

  /// The facts that the last call read.
  var reads: FactReads {
    var reads = ownReads
    reads.ofGroups = groupReads.all
    return reads
  }

  private var ownReads: FactReads {
    FactReads(
      slots: Set(FactSlot.allCases.filter { recording.slots >> UInt64($0.rawValue) & 1 == 1 }),
      members: recording.sets?.members ?? [:],
      listed: recording.sets?.listed ?? [],
      declared: Set(
        declared.enumerated().filter { recording.declared >> UInt64(min(63, $0.offset)) & 1 == 1 }.map(\.element.path)),
      readsLimits: recording.limits != 0)
  }

  /// Whether the last call read a fact that may still change. If it did, its answer is not final.
  func hasReadBeyond(_ facts: Facts) -> Bool {
    guard facts.known != .all else { return false }
    let isFinal = { (slots: UInt64, isGroup: Bool) in
      FactSlot.allCases.allSatisfy { slots >> UInt64($0.rawValue) & 1 == 0 || $0.isFinal(in: facts, ofGroup: isGroup) }
    }
    guard recording.limits == 0, isFinal(recording.slots, false), isFinal(groupReads.slots, true) else { return true }
    // The last bit stands for all facts beyond the 63rd.
    return declared.enumerated().contains { index, fact in
      let bit = UInt64(1) << UInt64(min(63, index))
      return recording.declared & bit != 0 && !fact.isFinal(in: facts, ofGroup: false)
        || groupReads.declared & bit != 0 && !fact.isFinal(in: facts, ofGroup: true)
    }
  }

  /// The facts that the last call read, with their values.
  func evidence(_ facts: Facts) -> [PolicyEvidence.Fact] {
    var evidence = FactSlot.allCases.filter { recording.slots >> UInt64($0.rawValue) & 1 == 1 }.map { slot in
      let value = slot.isSet ? members(slot, facts) : text(read(facts, slot.rawValue, nil, 0))
      return PolicyEvidence.Fact(path: slot.path, value: value, namesPerson: slot.namesPerson)
    }
    for (index, fact) in declared.prefix(64).enumerated() where recording.declared >> UInt64(index) & 1 == 1 {
      switch fact.kind {
      case .groups:
        evidence.append(PolicyEvidence.Fact(path: fact.path, value: groups(fact, facts), namesPerson: false))
      // What a site says about somebody is personal.
      case .data:
        evidence += (identity(fact, facts)?.attributes ?? [:]).sorted { $0.key < $1.key }.prefix(64).map {
          PolicyEvidence.Fact(path: "\(fact.path).\($0.key)", value: $0.value, namesPerson: true)
        }
      case .text, .number, .flag, .presence:
        evidence.append(PolicyEvidence.Fact(path: fact.path, value: text(attribute(fact, facts)), namesPerson: false))
      }
    }
    for offset in 0..<64 where recording.limits >> UInt64(offset) & 1 == 1 && offset / 3 < limits.count {
      let path = "limits.\(limits[offset / 3]).\(["used", "max", "locked_until"][offset % 3])"
      evidence.append(PolicyEvidence.Fact(path: path, value: text(limit(facts, offset)), namesPerson: false))
    }
    return evidence
  }

  /// The groups of an identity in a decision: their number if they do not fit into a line.
  private func groups(_ fact: DeclaredFact, _ facts: Facts) -> String {
    let groups = identity(fact, facts)?.groups.sorted() ?? []
    let text = "{ \(groups.joined(separator: ", ")) }"
    return text.utf8.count <= 300 ? text : "{ \(groups.count) groups }"
  }

  private func identity(_ fact: DeclaredFact, _ facts: Facts) -> Identifier? {
    if case .identity(let provider) = fact.place { facts.account.identities[provider] } else { nil }
  }

  func members(_ slot: FactSlot, _ facts: Facts) -> String {
    let names: [String] =
      switch slot {
      case .flowPassed: (facts.flow?.passed ?? []).map(\.rawValue)
      case .accountFactors: facts.account.factors.map(\.rawValue)
      case .accountGroups: groups.all.filter { isMember($0, facts) ?? false }
      case .sessionGroups: facts.session?.entitlements.groups.map(\.rawValue) ?? []
      case .sessionClaims: facts.session?.entitlements.claims.map { "\($0.key) = \($0.value.asWritten)" } ?? []
      default: facts.session?.passed.keys.map(\.rawValue) ?? []
      }
    return "{ \(names.sorted().joined(separator: ", ")) }"
  }

  private func text(_ answer: Answer) -> String {
    switch answer {
    case .null: "nil"
    case .flag(let flag): String(flag)
    case .integer(let integer): String(integer)
    case .number(let number): String(number)
    case .text(let text): text
    }
  }

  /// Implements `clua_fact_reader` for C.
  func answer(_ slot: Int32, key: String?, index: Int64, into value: inout clua_value) {
    guard let facts else { return }
    if slot < 64 {
      recording.slots |= 1 << UInt64(slot)
      if recording.sets != nil, let set = FactSlot(rawValue: slot), set.isSet {
        if let key { recording.sets?.members[set, default: []].insert(key) } else { recording.sets?.listed.insert(set) }
      }
    } else if slot < FactSlot.firstLimit {
      recording.declared |= 1 << UInt64(min(63, slot - FactSlot.firstDeclared))
    } else {
      recording.limits |= 1 << UInt64(min(63, slot - FactSlot.firstLimit))
    }
    switch read(facts.pointee, slot, key, index) {
    case .null: value.kind = CLUA_NIL
    case .flag(let flag):
      value.kind = CLUA_BOOLEAN
      value.boolean = flag
    case .integer(let integer):
      value.kind = CLUA_INTEGER
      value.integer = integer
    case .number(let number):
      value.kind = CLUA_NUMBER
      value.number = number
    case .text(let text): put(text, into: &value)
    }
  }

  /// Copies a text to memory that stays valid until the next call, so that C can read it after this function returns.
  func put(_ text: String, into value: inout clua_value) {
    var text = text
    let scratch = text.withUTF8 { bytes in
      if self.scratch.count < bytes.count {
        self.scratch.deallocate()
        self.scratch = .allocate(byteCount: bytes.count * 2, alignment: 1)
      }
      self.scratch.copyMemory(from: UnsafeRawBufferPointer(bytes))
      value.length = bytes.count
      return self.scratch
    }
    value.kind = CLUA_STRING
    value.bytes = UnsafePointer(scratch.baseAddress?.assumingMemoryBound(to: CChar.self))
  }

  /// More than 60 lines: one case for each fact.
  func read(_ facts: Facts, _ slot: Int32, _ key: String?, _ index: Int64) -> Answer {
    if slot >= FactSlot.firstLimit { return limit(facts, Int(slot - FactSlot.firstLimit)) }
    if slot >= FactSlot.firstDeclared {
      let place = Int(slot - FactSlot.firstDeclared)
      return place < declared.count ? attribute(declared[place], facts, key, index) : .null
    }
    guard let slot = FactSlot(rawValue: slot) else { return .null }
    switch slot {
    case .now: return .integer(facts.now.seconds)
    case .action: return text(facts.action?.rawValue)
    case .provider: return text(facts.provider?.rawValue)
    case .flowName: return text(facts.flow?.name)
    case .flowPassed:
      let passed = facts.flow?.passed ?? []
      guard let key else { return member(passed, index) }
      return passed.contains { $0.rawValue == key } ? .flag(true) : .null
    case .identifier: return text(facts.identifier?.value)
    case .phoneE164: return text(of: .phone, facts) { $0.value }
    case .emailAddress: return text(of: .email, facts) { $0.value }
    case .accountExists: return .flag(facts.account.exists)
    case .accountID: return text(facts.account.id)
    case .accountAge: return seconds(facts.account.age)
    case .accountIdle: return seconds(facts.account.idle)
    case .accountHasPIN: return .flag(facts.account.hasPIN)
    case .accountHasEmail: return .flag(facts.account.hasEmail)
    case .accountEmailVerified: return .flag(facts.account.isEmailVerified)
    case .accountPhoneVerified: return .flag(facts.account.isPhoneVerified)
    case .accountFactors:
      guard let key else { return member(facts.account.factors, index) }
      return facts.account.factors.contains { $0.rawValue == key } ? .flag(true) : .null
    // An account that is about to be created has the groups of its invitation.
    case .accountGroups:
      let mayHave = facts.account.exists || !facts.account.groups.listed.isEmpty
      return mayHave ? group(key, index, facts) : .null
    case .clientIP: return .text(facts.client.address.description)
    case .clientNetwork: return .text(network(facts.client.address))
    case .clientCountry: return text(facts.client.place.country)
    case .clientASN: return facts.client.place.asn.map { .integer(Int64($0)) } ?? .null
    case .clientUserAgent: return text(facts.client.userAgent)
    case .clientNewDevice: return .flag(facts.client.isNewDevice)
    case .clientNetworkChanged: return .flag(facts.client.networkChanged)
    case .clockSuspect: return .flag(facts.clockIsSuspect)
    case .requestMethod: return text(facts.request?.method)
    case .requestHost: return text(facts.request?.host)
    case .requestPath: return text(facts.request?.path)
    case .requestQuery: return text(facts.request?.query)
    case .sessionAccount: return text(facts.session?.account)
    case .sessionPassed:
      let passed = facts.session?.passed ?? [:]
      guard let key else { return member(passed.keys, index) }
      return ProviderName(rawValue: key).flatMap { passed[$0] }.map { .integer($0.seconds) } ?? .null
    case .sessionAge: return seconds(facts.session?.age)
    case .sessionAAL: return facts.session.map { .integer(Int64($0.aal)) } ?? .null
    case .sessionGroups:
      let groups = facts.session?.entitlements.groups ?? []
      guard let key else {
        return index >= 0 && index < Int64(groups.count) ? .text(groups[Int(index)].rawValue) : .null
      }
      return groups.contains { $0.rawValue == key } ? .flag(true) : .null
    case .sessionClaims:
      let claims = facts.session?.entitlements.claims ?? [:]
      if let key { return claims[key].map(answer) ?? .null }
      let names = claims.keys.sorted()
      return index >= 0 && index < Int64(names.count) ? .text(names[Int(index)]) : .null
    case .sessionEmail: return text(facts.session?.email)
    case .sessionPhone: return text(facts.session?.phone)
    case .sessionEmailVerified: return .flag(facts.session?.email != nil)
    }
  }

  /// Whether the account is in a group, or the name of its group at a place. A group that has not been computed is
  /// recorded as missing. Only the first ones are: from there on, the function may do what it would never do.
  private func group(_ key: String?, _ index: Int64, _ facts: Facts) -> Answer {
    let unknown = (key.map { [$0] } ?? groups.all).filter { isMember($0, facts) == nil }
    guard unknown.isEmpty else {
      if missing.isEmpty { missing.formUnion(unknown) }
      return .null
    }
    if let key { return isMember(key, facts) ?? false ? .flag(true) : .null }
    let names = groups.all.filter { isMember($0, facts) ?? false }
    return index >= 0 && index < Int64(names.count) ? .text(names[Int(index)]) : .null
  }

  /// Whether the account is in a group; nil for a group that has not been computed.
  private func isMember(_ name: String, _ facts: Facts) -> Bool? {
    if groups.computed.contains(name) { return memberships[name] }
    guard groups.all.contains(name), let group = GroupName(rawValue: name) else { return false }
    return facts.account.groups.listed.contains(group)
  }

  /// The value of a declared fact; null if it does not have the declared type. A policy must not compare a number with
  /// a text that a provider returned by mistake.
  /// - Parameters:
  ///   - key: the member of a set; nil for any other fact.
  ///   - index: the place of a set's member whose name is asked for; negative otherwise.
  func attribute(_ fact: DeclaredFact, _ facts: Facts, _ key: String? = nil, _ index: Int64 = -1) -> Answer {
    let value: String?
    switch fact.place {
    case .identity: return member(of: fact, facts, key, index)
    case .identifier(let kind): value = facts.identifier(of: kind)?.attributes[fact.name]
    case .provider(let provider), .named(let provider): value = facts.flow?.reported[provider]?[fact.name]
    }
    guard let value else { return .null }
    switch fact.kind {
    case .text: return .text(value)
    case .flag: return value == "true" ? .flag(true) : value == "false" ? .flag(false) : .null
    case .number:
      if let integer = Int64(value) { return .integer(integer) }
      return Double(value).flatMap { $0.isFinite ? .number($0) : nil } ?? .null
    case .groups, .data, .presence: return .null
    }
  }

  /// A member of what a site says about the account's identity, or the name of the member at a place.
  private func member(of fact: DeclaredFact, _ facts: Facts, _ key: String?, _ index: Int64) -> Answer {
    guard let identity = identity(fact, facts) else { return .null }
    if fact.kind == .presence { return .flag(true) }
    if let key {
      if fact.kind == .data { return text(identity.attributes[key]) }
      return identity.groups.contains(key) ? .flag(true) : .null
    }
    let names = fact.kind == .data ? identity.attributes.keys.sorted() : identity.groups.sorted()
    return index >= 0 && index < Int64(names.count) ? .text(names[Int(index)]) : .null
  }

  func limit(_ facts: Facts, _ offset: Int) -> Answer {
    guard offset / 3 < limits.count, let limit = facts.limits.first(where: { $0.name == limits[offset / 3] }) else {
      return .null
    }
    switch offset % 3 {
    case 0: return .integer(Int64(limit.used))
    case 1: return .integer(Int64(limit.max))
    default: return limit.lockedUntil.map { .integer($0.seconds) } ?? .null
    }
  }

  private func text(_ text: String?) -> Answer { text.map { .text($0) } ?? .null }

  private func text(of kind: IdentifierKind, _ facts: Facts, _ part: (Identifier) -> String?) -> Answer {
    text(facts.identifier(of: kind).flatMap(part))
  }

  private func answer(_ claim: ClaimValue) -> Answer {
    switch claim {
    case .text(let text): .text(text)
    case .integer(let integer): .integer(integer)
    case .number(let number): .number(number)
    case .flag(let flag): .flag(flag)
    }
  }

  private func seconds(_ duration: Duration?) -> Answer { duration.map { .integer($0.components.seconds) } ?? .null }

  private func member(_ names: some Collection<ProviderName>, _ index: Int64) -> Answer {
    let sorted = names.sorted()
    return index >= 0 && index < Int64(sorted.count) ? .text(sorted[Int(index)].rawValue) : .null
  }

  private func network(_ address: ClientAddress) -> String {
    let key = address.networkKey
    return "\(ClientAddress.text(key))/\(key.count == 4 ? 24 : 48)"
  }
}

extension Facts {
  /// The identifier behind `f.phone` or `f.email`.
  fileprivate func identifier(of kind: IdentifierKind) -> Identifier? {
    if let identifier { return identifier.kind == kind ? identifier : nil }
    return identifiers.first { $0.kind == kind }
  }
}

extension ClaimValue {
  /// The value in Lua syntax.
  package var asWritten: String {
    switch self {
    case .text(let text): "\"\(text)\""
    case .integer(let integer): String(integer)
    case .number(let number): String(number)
    case .flag(let flag): String(flag)
    }
  }
}

extension FactSlot {
  /// Whether the value can no longer change before a decision about a flow is final.
  /// - Parameter isGroup: whether the function of a group reads it.
  fileprivate func isFinal(in facts: Facts, ofGroup isGroup: Bool) -> Bool {
    switch self {
    case .now, .flowName, .clockSuspect: return true
    case .clientIP, .clientNetwork, .clientCountry, .clientASN, .clientUserAgent: return facts.known.contains(.client)
    case .identifier: return facts.identifier != nil
    // In a function of a group, they are the account's own.
    case .phoneE164: return isGroup || facts.identifier?.kind == .phone
    case .emailAddress: return isGroup || facts.identifier?.kind == .email
    case .accountExists, .accountID, .accountAge, .accountIdle, .accountHasPIN, .accountHasEmail,
      .accountEmailVerified, .accountPhoneVerified, .accountFactors, .accountGroups:
      return facts.known.contains(.account)
    case .clientNewDevice: return facts.known.isSuperset(of: [.client, .account])
    case .clientNetworkChanged: return facts.known.isSuperset(of: [.client, .flow])
    default: return facts.known.contains(.flow)
    }
  }
}

extension DeclaredFact {
  /// See `FactSlot.isFinal(in:ofGroup:)`.
  fileprivate func isFinal(in facts: Facts, ofGroup isGroup: Bool) -> Bool {
    switch place {
    case .identifier(let kind): isGroup || facts.identifier?.kind == kind
    // A later step at the site renews what it says.
    case .identity: facts.known.isSuperset(of: [.account, .flow])
    // A closed flow no longer has them, so an app that redeems its code reads none.
    case .provider, .named: facts.known == .all
    }
  }
}
