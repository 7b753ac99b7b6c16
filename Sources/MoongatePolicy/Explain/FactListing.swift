import MoongateCore
import MoongateSDK

/// The facts of an account or identifier as the functions of a policy read them.
package struct FactListing: Sendable, Encodable {
  /// The value of a fact.
  package enum Value: Sendable, Equatable, Encodable {
    case null
    case flag(Bool)
    case integer(Int64)
    case number(Double)
    case text(String)
    /// The members of a set.
    case set([String])

    package func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      switch self {
      case .null: try container.encodeNil()
      case .flag(let flag): try container.encode(flag)
      case .integer(let integer): try container.encode(integer)
      case .number(let number): try container.encode(number)
      case .text(let text): try container.encode(text)
      case .set(let names): try container.encode(names)
      }
    }

    /// The value in Lua syntax.
    var asWritten: String {
      switch self {
      case .null: "nil"
      case .flag(let flag): String(flag)
      case .integer(let integer): String(integer)
      case .number(let number): String(number)
      case .text(let text): "\"\(text)\""
      case .set(let names): names.isEmpty ? "{}" : "{ \(names.joined(separator: ", ")) }"
      }
    }
  }

  /// One fact.
  package struct Line: Sendable, Encodable {
    /// The path in functions, such as `f.phone.country`.
    package let fact: String
    package let value: Value
    /// The description of the fact.
    package let help: String
  }

  package let provider: String
  /// The id of the account; nil if it does not exist.
  package let account: String?
  package let facts: [Line]

  enum CodingKeys: String, CodingKey { case provider, account, facts }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(provider, forKey: .provider)
    try container.encode(account, forKey: .account)
    try container.encode(facts, forKey: .facts)
  }

  /// - Parameters:
  /// - policy: the policy whose functions read the facts.
  /// - knowsAddress: whether the facts include the client's address.
  package init(_ facts: Facts, of policy: ProviderPolicy, in generation: any PolicyGeneration, knowsAddress: Bool) {
    provider = policy.provider.rawValue
    account = facts.account.id
    let box = FactReader(declared: (generation as? Generation)?.declaredFacts ?? [])
    let groups = Self.groups(facts, in: generation)
    box.limits = policy.limits.map(\.name)
    var lines: [Line] = []
    for slot in FactSlot.allCases where Self.isOfPerson(slot, knowsAddress) {
      let value = slot.isSet ? .set(Self.members(slot, facts, groups)) : Value(box.read(facts, slot.rawValue, nil, 0))
      lines.append(Line(fact: "f.\(slot.path)", value: value, help: slot.help))
    }
    for fact in box.declared where fact.kind != .presence {
      if case .identity(let provider) = fact.place, let identity = facts.account.identities[provider] {
        let members =
          fact.kind == .groups
          ? identity.groups.sorted()
          : identity.attributes.sorted { $0.key < $1.key }.map { "\($0.key) = \"\($0.value)\"" }
        lines.append(Line(fact: "f.\(fact.path)", value: .set(members), help: fact.help))
      }
      guard case .identifier(let kind) = fact.place, kind == facts.identifier?.kind else { continue }
      lines.append(Line(fact: "f.\(fact.path)", value: Value(box.attribute(fact, facts)), help: fact.help))
    }
    for (index, limit) in policy.limits.enumerated() where facts.limits.contains(where: { $0.name == limit.name }) {
      for (offset, part) in [
        ("used", "number of counted events"), ("max", "maximum"),
        ("locked_until", "end of the lock in Unix seconds; nil without a lock"),
      ]
      .enumerated() {
        lines.append(
          Line(
            fact: "f.limits.\(limit.name).\(part.0)", value: Value(box.limit(facts, index * 3 + offset)), help: part.1))
      }
    }
    self.facts = lines
  }

  /// Whether a fact describes the account or identifier rather than the current request.
  private static func isOfPerson(_ slot: FactSlot, _ knowsAddress: Bool) -> Bool {
    switch slot {
    case .now, .provider, .identifier, .phoneE164, .emailAddress, .accountExists, .accountID, .accountAge, .accountIdle,
      .accountHasPIN,
      .accountHasEmail, .accountEmailVerified, .accountPhoneVerified, .accountFactors, .accountGroups:
      true
    case .clientIP, .clientNetwork, .clientCountry, .clientASN: knowsAddress
    default: false
    }
  }

  private static func members(_ slot: FactSlot, _ facts: Facts, _ groups: [String]) -> [String] {
    switch slot {
    case .accountFactors: facts.account.factors.map(\.rawValue).sorted()
    case .accountGroups: groups
    default: []
    }
  }

  /// The groups of the account. One whose function fails is listed with `?`: whatever reads it fails too.
  private static func groups(_ facts: Facts, in generation: any PolicyGeneration) -> [String] {
    guard facts.account.exists, !generation.accounts.groups.isEmpty, let evaluator = try? generation.makeEvaluator()
    else { return [] }
    return generation.accounts.groups.sorted { $0.key < $1.key }.compactMap { group, definition in
      guard case .computed(let function) = definition else {
        return facts.account.groups.listed.contains(group) ? group.rawValue : nil
      }
      do throws(PolicyFault) {
        return try evaluator.condition(of: function, given: facts.ofGroups) ? group.rawValue : nil
      } catch {
        return "\(group)?"
      }
    }
  }

  /// The listing as text for terminals.
  /// - Parameter colour: whether to use terminal colours.
  package func text(colour: Bool) -> String {
    let style = TerminalStyle(isOn: colour)
    let fact = facts.map(\.fact.count).max() ?? 0
    let value = min(34, facts.map(\.value.asWritten.count).max() ?? 0)
    return facts.map { line in
      "\(Columns.pad(line.fact, to: fact))  \(Columns.pad(line.value.asWritten, to: value))  \(style.dim(line.help))"
        .trimmedAtEnd
    }.joined(separator: "\n")
  }
}

extension FactListing.Value {
  fileprivate init(_ answer: FactReader.Answer) {
    self =
      switch answer {
      case .null: .null
      case .flag(let flag): .flag(flag)
      case .integer(let integer): .integer(integer)
      case .number(let number): .number(number)
      case .text(let text): .text(text)
      }
  }
}
