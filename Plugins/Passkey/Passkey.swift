import MoongateSDK

/// Passkeys: Web Authentication credentials (Level 3). The provider registers and verifies them, and lets users rename
/// and remove them.
///
/// The provider validates the responses of authenticators and manages the credentials of an account. The core
/// determines the purpose of a step (`StepPurpose`) and counts and locks attempts. README.md describes the rules and
/// attacks.
public struct Passkey: FullProvider {
  public let descriptor: ProviderDescriptor

  static let credential = InputField(name: "credential", kind: .json)
  static let name = InputField(name: "name", kind: .text, isRequired: false)
  /// Field names of the selection of passkeys to remove.
  static let removed = "passkey"
  static let all = "all"

  static let invalid: RefusalReason = "invalid_passkey"
  static let expired: RefusalReason = "passkey_expired"
  static let notAccepted: RefusalReason = "passkey_not_accepted"
  static let notSetUp: RefusalReason = "no_passkey"
  static let full: RefusalReason = "too_many_passkeys"
  static let gone: RefusalReason = "passkey_gone"

  /// The facts about the used passkey for policies: `f.passkey.uv` and so on.
  static let isUserVerified = FactField(
    name: "uv", kind: .flag, help: "whether the device verified the user by its PIN or a fingerprint")
  static let isBackedUp = FactField(
    name: "backed_up", kind: .flag, help: "whether the passkey is synced to other devices")
  static let model = FactField(
    name: "aaguid", kind: .text,
    help: "the authenticator model as a UUID; without attestation, as reported by the device")

  public init() { descriptor = Self.declaration }

  /// Checks that the response can be parsed.
  public func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem) {
    guard let text = try input.optionalText(Self.credential.name) else { return }
    guard Answer.isOne(text) else {
      throw InputProblem(
        field: Self.credential.name, reason: .invalidInput, detail: "The browser's passkey response is not valid.")
    }
  }

  /// Opens the step and shows the options of the ceremony.
  public func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    let held = try step.account?.record.map(PasskeyRecord.init(bytes:))
    switch step.purpose {
    case .set where step.flowPurpose == .reset:
      guard let held else { return .refused(Self.notSetUp) }
      return try removal(of: held, step).answer
    case .set:
      guard step.account != nil else { throw PasskeyFault.noAccount }
      if held?.credentials.count ?? 0 >= PasskeyRecord.most { return .refused(Self.full) }
      return try creation(step, held).answer
    case .prove:
      if step.account != nil, held == nil { return .refused(Self.notSetUp) }
      return try request(step, held).answer
    case .change, .disable:
      if step.account != nil, held == nil { return .refused(Self.notSetUp) }
      let item: String?
      do throws(InputProblem) { item = try input.optionalText(HeldItem.field.name) } catch { return .malformed(error) }
      if let item, held?[item] == nil { return .refused(Self.gone) }
      return try request(step, held, for: item).answer
    }
  }

  /// Verifies the response of the browser, or applies the user's choice.
  public func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    let state = try PasskeyState(bytes: step.state)
    // Attack: the challenge of a sign-in is answered in a flow that adds or removes a passkey. The core binds the state
    // to its flow, and the state contains the purpose.
    guard state.purpose == step.purpose.rawValue else { throw PasskeyFault.otherPurpose }
    let held = try step.account?.record.map(PasskeyRecord.init(bytes:))
    if let made = state.made { return try named(made, input, held) }
    if state.challenge == nil { return try remove(input, held, state) }
    if step.purpose == .set { return try await create(state, input, held, step) }
    return try prove(state, input, held, step)
  }

  // MARK: passkeys of an account

  /// The passkeys of the account in the order in which they were added.
  public func holdings(in record: [UInt8]) throws -> [HeldItem] {
    try PasskeyRecord(bytes: record).credentials.map(\.item)
  }

  // MARK: rounds

  private func state(_ step: StepContext, challenge: [UInt8]) -> PasskeyState {
    var state = PasskeyState(purpose: step.purpose.rawValue)
    state.challenge = Base64URL.encode(challenge)
    state.deadline = step.now + Rules(step.tools.settings).lifetime
    return state
  }

  private func site(_ step: StepContext) throws -> Site {
    guard let site = Site(step) else { throw PasskeyFault.noAddress }
    return site
  }

  private func creation(_ step: StepContext, _ held: PasskeyRecord?) throws -> StepAnswer.Round {
    guard let account = step.account else { throw PasskeyFault.noAccount }
    let challenge = step.tools.randomBytes(32)
    let options = try Options.creation(
      challenge, try site(step), Rules(step.tools.settings), for: account, excluding: held)
    return .ask(
      [Self.credential], state: try state(step, challenge: challenge).bytes,
      showing: [.ceremony(.create, options: options)])
  }

  /// - Parameter item: the passkey that was chosen before the step, if any. Any passkey of the account proves the user.
  private func request(_ step: StepContext, _ held: PasskeyRecord?, for item: String? = nil) throws -> StepAnswer.Round
  {
    let challenge = step.tools.randomBytes(32)
    let options = try Options.request(challenge, try site(step), Rules(step.tools.settings), allowing: held)
    var state = state(step, challenge: challenge)
    state.item = item
    return .ask(
      [Self.credential], state: try state.bytes,
      showing: Self.explanation(of: step.purpose, item.flatMap { held?[$0] }) + [.ceremony(.get, options: options)])
  }

  private static func explanation(of purpose: StepPurpose, _ item: Credential?) -> [Shown] {
    switch (purpose, item) {
    case (.change, nil): [.text("Use the passkey that you want to rename.")]
    case (.disable, nil): [.text("Use a passkey first. Then choose which one to remove.")]
    case (.change, let item?): [.text("Use one of your passkeys to rename this one:"), .text(item.line)]
    case (.disable, let item?): [.text("Use one of your passkeys to remove this one:"), .text(item.line)]
    case (.prove, _), (.set, _): []
    }
  }

  private func removal(of held: PasskeyRecord, _ step: StepContext) throws -> StepAnswer.Round {
    var state = PasskeyState(purpose: step.purpose.rawValue)
    state.isProved = true
    let all = held.credentials.count > 1 ? [InputChoice(value: Self.all, label: "All passkeys")] : []
    let choices = held.credentials.map { InputChoice(value: $0.id, label: $0.line) } + all
    return .ask(
      [InputField(name: Self.removed, kind: .choice, choices: choices)], state: try state.bytes,
      showing: [
        .text("Choose the passkey to remove. The list shows when each was added and last used.")
      ])
  }

  // MARK: verification

  /// The challenge and response to verify, or an immediate answer.
  private enum Admission {
    case judged(challenge: [UInt8], answer: String)
    case answered(StepAnswer)
  }

  private func admit(
    _ state: PasskeyState, _ input: ProviderInput, _ step: StepContext, else next: () throws -> StepAnswer.Round
  ) throws -> Admission {
    guard let challenge = state.challenge.flatMap(Base64URL.decode), let deadline = state.deadline else {
      throw PasskeyFault.noChallenge
    }
    let answer: String
    do throws(InputProblem) {
      try check(step, input)
      answer = try input.text(Self.credential.name)
    } catch {
      return .answered(.malformed(error))
    }
    guard step.now < deadline else { return .answered(.refused(Self.expired, then: try next())) }
    return .judged(challenge: challenge, answer: answer)
  }

  private func create(_ state: PasskeyState, _ input: ProviderInput, _ held: PasskeyRecord?, _ step: StepContext)
    async throws -> StepAnswer
  {
    let next = { try creation(step, held) }
    switch try admit(state, input, step, else: next) {
    case .answered(let answer): return answer
    case .judged(let challenge, let answer):
      if held?.credentials.count ?? 0 >= PasskeyRecord.most { return .refused(Self.full) }
      let registration = Registration(
        challenge: challenge, site: try site(step), rules: Rules(step.tools.settings), record: held, now: step.now)
      switch Result(catching: { () throws(CeremonyFault) in try registration.judge(answer) }) {
      case .success(let verdict):
        if let certificate = verdict.certificate, try await !certificate.demandTrust(Rules(step.tools.settings)) {
          step.tools.log.notice("a passkey was not registered", ["because": CeremonyFault.root.rawValue])
          return .refused(Self.notAccepted, then: try next())
        }
        var state = PasskeyState(purpose: step.purpose.rawValue)
        state.made = verdict.credential
        return .ask(
          [Self.name], state: try state.bytes,
          showing: [.text("Your passkey is ready. Give it a name that you will recognise, or leave the name empty.")])
      case .failure(let fault):
        step.tools.log.notice("a passkey was not registered", ["because": fault.rawValue])
        return .refused(
          [.format, .attestation, .model].contains(fault) ? Self.notAccepted : Self.invalid, then: try next())
      }
    }
  }

  /// The record with a new or renamed passkey.
  private func named(_ made: Credential, _ input: ProviderInput, _ held: PasskeyRecord?) throws -> StepAnswer {
    var named = made
    do throws(InputProblem) { if let name = try Self.typedName(in: input) { named.name = name } } catch {
      return .malformed(error)
    }
    let isHeld = held?.credentials.contains { $0.id == made.id } ?? false
    let others = held?.credentials ?? []
    let all = isHeld ? others.map { $0.id == named.id ? named : $0 } : others + [named]
    // Of concurrent flows with the same record, only one completes, so that no passkey is lost.
    return .proved(Proof(record: .replaceOnce(try PasskeyRecord(all).bytes)))
  }

  /// - Returns: nil if the field is empty.
  private static func typedName(in input: ProviderInput) throws(InputProblem) -> String? {
    guard let typed = try input.optionalText(name.name) else { return nil }
    let text = typed.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    guard text.utf8.count <= 100, text.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control }) else {
      throw InputProblem(field: name.name, reason: .invalidInput, detail: "A name has at most 100 characters.")
    }
    return text.isEmpty ? nil : text
  }

  private func remove(_ input: ProviderInput, _ held: PasskeyRecord?, _ state: PasskeyState) throws -> StepAnswer {
    guard state.isProved == true else { throw PasskeyFault.noChallenge }
    guard let held else { return .refused(Self.notSetUp) }
    let chosen: String
    do throws(InputProblem) { chosen = try input.text(Self.removed) } catch { return .malformed(error) }
    return try Self.keeping(held.credentials.filter { chosen != Self.all && $0.id != chosen })
  }

  /// The proof with the remaining passkeys.
  private static func keeping(_ rest: [Credential]) throws -> StepAnswer {
    .proved(Proof(record: rest.isEmpty ? .remove : .replaceOnce(try PasskeyRecord(rest).bytes)))
  }

  private func prove(_ state: PasskeyState, _ input: ProviderInput, _ held: PasskeyRecord?, _ step: StepContext) throws
    -> StepAnswer
  {
    let next = { try request(step, held, for: state.item) }
    switch try admit(state, input, step, else: next) {
    case .answered(let answer): return answer
    case .judged(let challenge, let answer):
      // Attack: an unknown account, or one without passkeys, is distinguishable by its refusal. Both are treated like
      // an empty record.
      let assertion = Assertion(
        challenge: challenge, site: try site(step), rules: Rules(step.tools.settings), account: step.account?.id ?? "",
        record: held ?? PasskeyRecord([]), now: step.now)
      switch Result(catching: { () throws(CeremonyFault) in try assertion.judge(answer) }) {
      case .success(let verdict):
        guard let held else { return .refused(Self.invalid, then: try next()) }
        if verdict.isPerhapsCloned {
          step.tools.log.warning("a passkey's signature counter did not go up: there may be a copy of it")
        }
        let updated = held.updating(verdict.credential)
        guard let item = state.item else { return try go(on: verdict, updated, step) }
        // It may have been removed in another tab.
        guard let chosen = updated[item] else { return .refused(Self.gone, then: try request(step, held)) }
        return try go(on: chosen, updated, step)
      case .failure(let fault):
        step.tools.log.notice("a passkey was not proved", ["because": fault.rawValue])
        return .refused(Self.invalid, then: try next())
      }
    }
  }

  /// Continues with the passkey that was chosen before the verification.
  private func go(on chosen: Credential, _ held: PasskeyRecord, _ step: StepContext) throws -> StepAnswer {
    step.purpose == .disable
      ? try Self.keeping(held.credentials.filter { $0.id != chosen.id }) : try naming(chosen, step)
  }

  /// The round that renames a passkey.
  private func naming(_ credential: Credential, _ step: StepContext) throws -> StepAnswer {
    var state = PasskeyState(purpose: step.purpose.rawValue)
    state.made = credential
    return .ask(
      [Self.name], state: try state.bytes, showing: [.text("Give this passkey a name that you will recognise.")])
  }

  /// Continues after a passkey was verified.
  private func go(on verdict: Assertion.Verdict, _ held: PasskeyRecord, _ step: StepContext) throws -> StepAnswer {
    switch step.purpose {
    case .disable where held.credentials.count > 1: return try removal(of: held, step).answer
    case .disable: return try Self.keeping([])
    case .change: return try naming(verdict.credential, step)
    case .prove, .set:
      // With a signature counter, only one of two flows with the same count completes, which detects a copy. Without
      // one, the record is updated only if it has not changed since.
      let bytes = try held.bytes
      return .proved(
        Proof(
          facts: [
            Self.isUserVerified.name: "\(verdict.isUserVerified)",
            Self.isBackedUp.name: "\(verdict.credential.isBackedUp)",
            Self.model.name: verdict.credential.aaguid,
          ], record: verdict.credential.signCount > 0 ? .replaceOnce(bytes) : .replace(bytes),
          isMultiFactor: verdict.isUserVerified))
    }
  }
}

extension StepAnswer.Round {
  /// The answer that asks for the round.
  fileprivate var answer: StepAnswer { .ask(fields, state: state, showing: shown) }
}

/// A mistake of the program, not of the user.
enum PasskeyFault: Error {
  case noAccount, noAddress, noChallenge, otherPurpose
}
