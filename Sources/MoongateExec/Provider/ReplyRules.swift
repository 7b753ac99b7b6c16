import MoongateSDK

/// Validates the answers of a program. In-process providers are the operator's own code, but a program may come from
/// anyone, so its statements count only for the users that it was asked about.
struct ReplyRules {
  /// The maximum length of a state or record in bytes. Both must fit into a line together with the rest of a call.
  static let longestKept = 16_384
  private static let longestText = 2_000
  /// The maximum length of the address of a redirect, in bytes.
  static let longestAddress = 4_096
  /// The maximum length of a ceremony's options, in bytes.
  private static let longestOptions = 16_384
  private static let longestFact = 300
  private static let maxShown = 16

  let descriptor: ProviderDescriptor
  /// The facts of the gateway's own parser.
  let read: [FactField]
  let step: StepContext
  let method: Method

  /// - Throws: why the answer is not valid.
  func answer(of reply: StepReply) throws(ProgramFault) -> StepAnswer {
    switch reply.kind {
    case .ask(let ask):
      return .ask(try fields(ask.fields), state: try kept(ask.state, "state"), showing: try shown(ask.show ?? []))
    case .redirect(let redirect):
      // Attack: a `javascript:` or `data:` link on a page of the gateway.
      guard SiteAddress.isSite(redirect.to, atMost: Self.longestAddress) else {
        throw .broken("it redirects to a URL that is not https")
      }
      return .redirect(to: redirect.to, state: try kept(redirect.state, "state"))
    case .wait(let wait):
      let interval = Duration.milliseconds(wait.poll)
      guard StepAnswer.pollIntervals.contains(interval) else {
        throw .broken("its `poll` is \(wait.poll) milliseconds; it must be from 1000 to 60000")
      }
      return .wait(poll: interval, state: try kept(wait.state, "state"), showing: try shown(wait.show ?? []))
    case .refused(let said, let then):
      guard let reason = RefusalReason(rawValue: said), descriptor.outcome(reason) != nil else {
        throw .broken("it refuses with \(ProgramFault.undeclaredReason): `\(said.prefix(48))`")
      }
      guard let then else { return .refused(reason) }
      return .refused(
        reason,
        then: .ask(try fields(then.fields), state: try kept(then.state, "state"), showing: try shown(then.show ?? [])))
    case .malformed(let problem):
      guard let reason = InputProblem.Reason(rawValue: problem.reason ?? InputProblem.Reason.invalidInput.rawValue)
      else {
        throw .broken("it reports malformed input with an unknown reason: `\((problem.reason ?? "").prefix(48))`")
      }
      return .malformed(
        InputProblem(field: try plain(problem.field), reason: reason, detail: try plain(problem.detail)))
    case .proved(let proved): return .proved(try proof(proved))
    }
  }

  private func proof(_ proved: StepReply.Proved) throws(ProgramFault) -> Proof {
    // Attack: a step that succeeds without an attempt would not be counted by any limit.
    guard method == .submit else { throw .broken("it answers `proved` before an attempt") }
    let identifiers = try (proved.identifiers ?? []).map { said throws(ProgramFault) in try own(said.identifier) }
    guard !identifiers.isEmpty || step.account != nil || step.identifier != nil else {
      throw .broken("it answers `proved` without an identifier")
    }
    for claimed in proved.claimed ?? [] where claimed.kind != .email && claimed.kind != .phone {
      throw .broken("it claims a \(claimed.kind.rawValue) identifier")
    }
    let record: Proof.Record
    if let said = proved.record {
      if let text = said.replace {
        let bytes = try kept(text, "record")
        record = said.once ?? false ? .replaceOnce(bytes) : .replace(bytes)
      } else {
        record = .remove
      }
    } else {
      record = .keep
    }
    let isMultiFactor = proved.multiFactor ?? false
    // Attack: a program that its operator takes for one factor raises `aal` past a route that asks for two.
    guard !isMultiFactor || descriptor.mayProveSeveralFactors else {
      throw .broken("it answers `multi_factor`, which its `hello` does not declare")
    }
    guard proved.recheck == nil || descriptor.rechecks else {
      throw .broken("it answers `recheck`, which its `hello` does not declare")
    }
    return Proof(
      proved: identifiers,
      claimed: try (proved.claimed ?? []).map { claimed throws(ProgramFault) in try canonical(claimed.identifier) },
      firstName: try proved.firstName.map(plain), lastName: try proved.lastName.map(plain),
      facts: try ownFacts(of: proved),
      record: record, isMultiFactor: isMultiFactor,
      recheck: try proved.recheck.map { text throws(ProgramFault) in try kept(text, "state for rechecks") })
  }

  /// The declared facts among the facts of a proof.
  ///
  /// Attack: a program sends facts with the names of the gateway's own parser, which would appear to be verified by the
  /// gateway.
  private func ownFacts(of proved: StepReply.Proved) throws(ProgramFault) -> [String: String] {
    guard let said = proved.facts else { return [:] }
    var facts: [String: String] = [:]
    for fact in descriptor.facts where !read.contains(where: { $0.name == fact.name }) {
      guard let value = said[fact.name]?.text else { continue }
      guard value.utf8.count <= Self.longestFact else {
        throw .broken("its fact `\(fact.name)` is longer than \(Self.longestFact) bytes")
      }
      facts[fact.name] = try plain(value)
    }
    return facts
  }

  /// The verified identifier in the gateway's spelling.
  ///
  /// Attack: a program proves another user's phone number to open that account. A program can prove only the identifier
  /// that the gateway read in this step, the identifiers of the step's account, and identities whose issuer is the
  /// provider's own name.
  ///
  /// Attack: the right user with attributes invented by the program. Two identifiers of one value are equal regardless
  /// of their display and attributes, so the gateway stores its own version if it has one.
  func own(_ said: Identifier) throws(ProgramFault) -> Identifier {
    let issuer = "\(descriptor.name) "
    if let known = [step.identifier].compactMap(\.self).first(where: { $0 == said })
      ?? step.account?.identifiers.first(where: { $0 == said })
    {
      let told = try ownFacts(of: said)
      // For its own identities, the program is the authority, and its facts may have changed since the account was
      // created.
      let isOwn = said.kind == .federated && said.value.hasPrefix(issuer)
      return Identifier(
        kind: known.kind, value: known.value, display: known.display,
        attributes: isOwn ? told : known.attributes.merging(told) { known, _ in known },
        groups: isOwn ? try groups(of: said) : known.groups)
    }
    guard said.kind == .federated, descriptor.identifierKinds.contains(.federated), said.value.hasPrefix(issuer),
      said.value.utf8.count <= 512,
      said.value.utf8.count > issuer.utf8.count
    else { throw .broken("it proves a \(said.kind.rawValue) identifier of another user") }
    return Identifier(
      kind: .federated, value: try plain(said.value), display: try plain(said.display),
      attributes: try ownFacts(of: said), groups: try groups(of: said))
  }

  /// The groups of the program's own identity. Too many are refused, not cut.
  private func groups(of said: Identifier) throws(ProgramFault) -> [String] {
    if let problem = said.detailProblem { throw .broken(problem) }
    return said.groups
  }

  /// The declared facts of an identifier, without those that the gateway's own parser provides.
  ///
  /// Attack: a program claims that a foreign number is domestic, for a policy that serves only one country.
  private func ownFacts(of said: Identifier) throws(ProgramFault) -> [String: String] {
    var attributes: [String: String] = [:]
    for fact in descriptor.facts
    where descriptor.of(fact) == said.kind && !read.contains(where: { $0.name == fact.name }) {
      guard let value = said.attributes[fact.name] else { continue }
      guard value.utf8.count <= Self.longestFact else {
        throw .broken("its attribute `\(fact.name)` is longer than \(Self.longestFact) bytes")
      }
      attributes[fact.name] = try plain(value)
    }
    return attributes
  }

  /// The undeclared or unsupported facts of a program's answer, which are ignored.
  /// - Returns: the names of the facts, with the kind of identifier.
  func undeclaredFacts(in reply: StepReply) -> [(name: String, of: String)] {
    guard case .proved(let proved) = reply.kind else { return [] }
    let told = [step.identifier].compactMap(\.self) + (step.account?.identifiers ?? [])
    var found: [(name: String, of: String)] = []
    for said in proved.identifiers ?? [] {
      let declared = Set((descriptor.facts + read).map(\.name)).union(
        told.first { $0 == said.identifier }?.attributes.keys.map { $0 } ?? [])
      found += (said.attributes ?? [:]).keys.filter { !declared.contains($0) }.sorted().map {
        (String($0.prefix(48)), "an identifier")
      }
    }
    let own = Set(descriptor.facts.map(\.name)).subtracting(read.map(\.name))
    return found
      + (proved.facts ?? [:]).keys.filter { !own.contains($0) }.sorted().map { (String($0.prefix(48)), "a proof") }
  }

  /// A claimed identifier opens no account, but it is shown and receives mail, so it must be in canonical spelling.
  private func canonical(_ identifier: Identifier) throws(ProgramFault) -> Identifier {
    switch identifier.kind {
    case .email:
      guard let address = EmailAddress(identifier.value) else {
        throw .broken("it claims an invalid email address")
      }
      return Identifier(address)
    case .phone, .federated, .name:
      throw .broken("it claims a \(identifier.kind.rawValue) identifier: only email addresses may be claimed")
    }
  }

  private func fields(_ said: [Introduction.Field]) throws(ProgramFault) -> [InputField] {
    guard said.count <= Self.maxShown, said.allSatisfy({ ProviderName(rawValue: $0.name) != nil }) else {
      throw .broken("it asks for fields with invalid names, or for more than \(Self.maxShown)")
    }
    for choice in said.flatMap({ $0.choices ?? [] }) {
      _ = try plain(choice.label)
    }
    return said.map(\.field)
  }

  private func shown(_ said: [StepReply.Ask.Shown]) throws(ProgramFault) -> [Shown] {
    guard said.count <= Self.maxShown else { throw .broken("it shows more than \(Self.maxShown) items") }
    return try said.map { item throws(ProgramFault) in
      if item.kind == .ceremony {
        guard case .ceremony? = descriptor.presentation, let call = item.call, let options = item.options else {
          throw .broken("it shows a ceremony without `call` and `options`, or without the presentation `ceremony`")
        }
        guard options.utf8.count <= Self.longestOptions else {
          throw .broken("its options are longer than \(Self.longestOptions) bytes")
        }
        return .ceremony(call, options: options)
      }
      switch (item.kind, item.text, item.items) {
      case (.text, let text?, nil): return .text(try plain(text))
      case (.secret, let text?, nil): return .secret(try plain(text))
      case (.qr, let text?, nil): return .qr(try plain(text))
      case (.list, nil, let list?) where list.count <= 64:
        return .list(try list.map { item throws(ProgramFault) in try plain(item) })
      default: throw .broken("it shows a `\(item.kind.rawValue)` without its text")
      }
    }
  }

  private func kept(_ text: String?, _ what: String) throws(ProgramFault) -> [UInt8] {
    let bytes = Array((text ?? "").utf8)
    guard bytes.count <= Self.longestKept else { throw .broken("its \(what) is longer than \(Self.longestKept) bytes") }
    return bytes
  }

  /// Attack: line breaks and terminal escapes in text for users or operators.
  private func plain(_ text: String) throws(ProgramFault) -> String {
    guard text.utf8.count <= Self.longestText,
      text.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control })
    else {
      throw .broken("a text of its answer is longer than \(Self.longestText) bytes, or contains control characters")
    }
    return text
  }
}
