import MoongateSDK

/// Proves that the person has the authenticator app that they set up (RFC 6238), and lets them set it up, make new recovery codes, and
/// remove it.
///
/// It owns what a code is and which ones are spent. What a step is for comes from the core (`StepPurpose`); counters and locks are the core's.
public struct TOTP: FullProvider {
  /// What it declares: `begin` takes nothing; `submit` takes `code` or, in its place, `recovery_code`.
  public let descriptor: ProviderDescriptor

  static let code = InputField(name: "code", kind: .digits, length: TimeCode.length, isRequired: false)
  static let recoveryCode = InputField(name: "recovery_code", kind: .text, isRequired: false)
  /// Of an app that is being set up: there is nothing else to prove it by.
  private static let firstCode = InputField(name: "code", kind: .digits, length: TimeCode.length)

  private static let notSetUp: RefusalReason = "not_set_up"
  private static let codeUsed: RefusalReason = "code_used"

  public init() {
    descriptor = ProviderDescriptor(
      name: "totp", beginFields: [], submitFields: [Self.code, Self.recoveryCode],
      settings: [
        SettingField(
          name: "issuer", kind: .text, isRequired: false, help: "What authenticator apps list the account under.", standard: "Moongate"),
        SettingField(
          name: "drift", kind: .number(0...1), isRequired: false,
          help: "How many codes before and after the current one are taken, for clocks that are off: 0 or 1.", standard: 1),
      ],
      policy: PolicySource(file: "Plugins/TOTP/policy.lua", bytes: PackageResources.policy_lua),
      flows: [
        PolicySource(file: "Plugins/TOTP/flows/totp_set.lua", bytes: PackageResources.totp_set_lua),
        PolicySource(file: "Plugins/TOTP/flows/totp_change.lua", bytes: PackageResources.totp_change_lua),
        PolicySource(file: "Plugins/TOTP/flows/totp_disable.lua", bytes: PackageResources.totp_disable_lua),
      ],
      cases: PolicySource(file: "Plugins/TOTP/cases.lua", bytes: PackageResources.cases_lua),
      identifierKinds: [],
      // Of a million codes three are right at any time: the current one, the one before and the one after.
      secretSpace: 1_000_000 / 3,
      outcomes: [
        Outcome(.invalidCode, "This code is not right. Look at the app again."),
        Outcome(Self.codeUsed, "This code was used already. Wait until the app shows the next one."),
        Outcome(.alreadySet, "An authenticator app is set up here already.", isFailure: false),
        Outcome(Self.notSetUp, "No authenticator app is set up here.", isFailure: false),
      ],
      words: StepWords(
        title: "Authenticator app", instruction: "Enter the six digits that your authenticator app shows.",
        labels: ["code": "Code from the app", "recovery_code": "Use a recovery code"],
        links: [.change: "New recovery codes"], translations: [(tag: "hi", file: PackageResources.hi_words)]), presentation: .form, role: .keepsFactor
    )
  }

  /// Whether there is one code, and it can be one.
  public func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem) {
    // The recovery codes have been shown: there is nothing to type.
    if (try? TOTPState(bytes: step.state))?.kept != nil { return }
    _ = try TypedProof(input, for: step.purpose)
  }

  /// Opens the step: asks for a code, or shows a new key beside it.
  public func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    switch step.purpose {
    case .set:
      guard let account = step.account else { throw TOTPFault.noAccount }
      if account.record != nil { return .refused(.alreadySet) }
      let key = step.tools.randomBytes(TimeCode.keySize)
      let address = KeyAddress.make(
        key: key, issuer: step.tools.settings.text("issuer") ?? "Moongate", person: account.identifiers.first?.display ?? account.id)
      return .ask(
        [Self.firstCode], state: try TOTPState(key: key).bytes,
        showing: [
          .text("Scan this with your authenticator app, or type the key into it. Then enter the six digits that it shows."), .qr(address),
          .secret(Base32.encode(key).grouped(by: 4)),
        ])
    case .prove, .change, .disable:
      // Nobody is known yet: a code is asked for as of anybody, and none will be right.
      if let account = step.account, account.record == nil { return .refused(Self.notSetUp) }
      return .ask([Self.code, Self.recoveryCode], state: [], showing: Self.explanation(of: step.purpose))
    }
  }

  /// What a code is asked for, where it is not to prove who someone is.
  private static func explanation(of purpose: StepPurpose) -> [Shown] {
    switch purpose {
    case .change: [.text("Enter a code of the app. You get ten new recovery codes, and those that you have end.")]
    case .disable: [.text("Enter a code of the app once more. From then on it is not asked for, and your recovery codes end.")]
    case .prove, .set: []
    }
  }

  /// Judges a code, and makes the record in which it is spent.
  public func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    let state = try TOTPState(bytes: step.state)
    // The app was proved and the recovery codes were shown. Of two such flows one completes: the core holds `replaceOnce` against the record by
    // which the code was judged, not the one of now.
    if let kept = state.kept { return .proved(Proof(record: .replaceOnce(try kept.bytes))) }
    let typed: TypedProof
    do throws(InputProblem) { typed = try TypedProof(input, for: step.purpose) } catch { return .malformed(error) }
    if step.purpose == .set { return try setUp(step, state, typed) }

    if let account = step.account, account.record == nil { return .refused(Self.notSetUp) }
    // Attack: an account that is not there answers sooner. The same work is done for it, with a key that nobody has.
    let record =
      try step.account?.record.map(TOTPRecord.init(bytes:))
      ?? TOTPRecord(key: [UInt8](repeating: 0, count: TimeCode.keySize), step: .max, recovery: .none)
    let spent: TOTPRecord
    switch judge(typed, record, step) {
    case .success(let record): spent = record
    case .failure(let refusal): return .refused(refusal.reason)
    }
    guard step.account != nil else { return .refused(.invalidCode) }
    switch step.purpose {
    case .prove, .set: return .proved(Proof(record: .replaceOnce(try spent.bytes)))
    case .disable: return .proved(Proof(record: .remove))
    case .change: return try showingCodes(key: spent.key, step: spent.step, step.tools)
    }
  }

  /// The code that proves that the app has the key. Until then nothing counts.
  private func setUp(_ step: StepContext, _ state: TOTPState, _ typed: TypedProof) throws -> StepAnswer {
    guard let key = state.key, step.account != nil else { throw TOTPFault.noKey }
    guard step.account?.record == nil else { return .refused(.alreadySet) }
    guard case .code(let digits) = typed,
      case .fresh(let accepted) = TimeCode.match(digits, key: key, at: step.now, drift: drift(step.tools), after: nil)
    else { return .refused(.invalidCode) }
    return try showingCodes(key: key, step: accepted, step.tools)
  }

  /// Shows new recovery codes, once. What is kept waits until the person has gone on.
  private func showingCodes(key: [UInt8], step: Int64, _ tools: StepTools) throws -> StepAnswer {
    let (kept, shown) = RecoveryCodes.make(from: tools.randomBytes)
    return .ask(
      [], state: try TOTPState(kept: TOTPRecord(key: key, step: step, recovery: kept)).bytes,
      showing: [
        .text("Keep these recovery codes in a safe place. Each of them opens your account once, should you lose the app. They are not shown again."),
        .list(shown),
      ])
  }

  private struct Refused: Error { let reason: RefusalReason }

  /// The record without what was proved with.
  private func judge(_ typed: TypedProof, _ record: TOTPRecord, _ step: StepContext) -> Result<TOTPRecord, Refused> {
    var spent = record
    switch typed {
    case .code(let digits):
      switch TimeCode.match(digits, key: record.key, at: step.now, drift: drift(step.tools), after: record.step) {
      case .none: return .failure(Refused(reason: .invalidCode))
      // Attack: a code that was looked at over a shoulder, or taken by a page in between, is typed again within its time.
      case .used: return .failure(Refused(reason: step.account == nil ? .invalidCode : Self.codeUsed))
      case .fresh(let accepted): spent.step = accepted
      }
    case .recovery(let letters):
      guard let rest = record.recovery.spending(letters) else { return .failure(Refused(reason: .invalidCode)) }
      spent.recovery = rest
    }
    return .success(spent)
  }

  private func drift(_ tools: StepTools) -> Int64 { Int64(tools.settings.number("drift") ?? 1) }
}

/// A mistake of the program, not of the person.
enum TOTPFault: Error {
  case noAccount, noKey
}
