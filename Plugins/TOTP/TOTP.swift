import MoongateSDK

/// A time-based one-time password from an authenticator app (RFC 6238), with recovery codes for the day when the app is
/// gone.
///
/// The provider knows what a code is (`TimeCode`) and which codes are used up (`TOTPRecord`). The gateway decides what
/// a step is for (`StepPurpose`), counts the attempts that RFC 4226 section 7.3 asks to limit (policy.lua), and keeps
/// the record sealed. `TOTP+Setup.swift` sets an app up.
public struct TOTP: FullProvider {
  /// What it declares: `begin` takes nothing; `submit` takes `code` or, in its place, `recovery_code`.
  public let descriptor: ProviderDescriptor

  /// What its words are in other languages; each is a file of `words/`.
  private static let translations: [(tag: String, file: [UInt8])] = [
    ("hi", PackageResources.hi_words), ("ar", PackageResources.ar_words), ("bn", PackageResources.bn_words),
    ("de", PackageResources.de_words),
    ("es", PackageResources.es_words), ("fr", PackageResources.fr_words), ("pt", PackageResources.pt_words),
    ("ta", PackageResources.ta_words),
    ("te", PackageResources.te_words),
  ]

  static let code = InputField(name: "code", kind: .digits, length: TimeCode.length, isRequired: false)
  static let recoveryCode = InputField(name: "recovery_code", kind: .text, isRequired: false)

  private static let notSetUp: RefusalReason = "not_set_up"
  private static let codeUsed: RefusalReason = "code_used"

  public init() {
    descriptor = ProviderDescriptor(
      name: "totp", beginFields: [], submitFields: [Self.code, Self.recoveryCode],
      settings: [
        SettingField(
          name: "issuer", kind: .text, isRequired: false, help: "What authenticator apps list the account under.",
          standard: "Moongate"),
        SettingField(
          name: "drift", kind: .number(0...1), isRequired: false,
          help: "How many codes before and after the current one are taken, for clocks that are off: 0 or 1.",
          standard: 1),
      ],
      policy: PolicySource(file: "Plugins/TOTP/policy.lua", bytes: PackageResources.policy_lua),
      flows: [
        PolicySource(file: "Plugins/TOTP/flows/totp_set.lua", bytes: PackageResources.totp_set_lua),
        PolicySource(file: "Plugins/TOTP/flows/totp_change.lua", bytes: PackageResources.totp_change_lua),
        PolicySource(file: "Plugins/TOTP/flows/totp_disable.lua", bytes: PackageResources.totp_disable_lua),
      ],
      cases: PolicySource(file: "Plugins/TOTP/cases.lua", bytes: PackageResources.cases_lua),
      identifierKinds: [],
      // Three of a million codes are right at any time: the current one, the one before and the one after (RFC 6238
      // section 5.2).
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
        links: [.change: "New recovery codes"],
        page: [
          "offer_help":
            "An app on your phone shows a new code every 30 seconds. When you sign in, you are asked for one."
        ],
        translations: Self.translations), presentation: .form, role: .keepsFactor
    )
  }

  /// Checks that there is one code, and that it can be one. Whatever fails here is answered 422 and not counted.
  public func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem) {
    // In the round that showed the recovery codes there is nothing to type.
    if (try? TOTPState(bytes: step.state))?.pendingRecord != nil { return }
    _ = try TypedProof(input, for: step.purpose)
  }

  /// Opens the step: asks for a code or, where an app is to be set up, shows a new key beside the field.
  public func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    if step.purpose == .set { return try beginSetup(step) }
    // Without an account a code is asked for like of everybody, and none is right.
    if let account = step.account, account.record == nil { return .refused(Self.notSetUp) }
    return .ask([Self.code, Self.recoveryCode], state: [], showing: Self.explanation(of: step.purpose))
  }

  /// What the person is told a code is for, where it does more than sign them in.
  private static func explanation(of purpose: StepPurpose) -> [Shown] {
    switch purpose {
    case .change: [.text("Enter a code of the app. You get ten new recovery codes, and those that you have end.")]
    case .disable:
      [.text("Enter a code of the app once more. From then on it is not asked for, and your recovery codes end.")]
    case .prove, .set: []
    }
  }

  /// Judges a code. What it proves is a record in which the code is used up (RFC 6238 section 5.2: a code is accepted
  /// once).
  public func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    let state = try TOTPState(bytes: step.state)
    // The person has seen the recovery codes. Of two such flows one completes: the gateway compares with the record by
    // which the code was judged.
    if let pending = state.pendingRecord { return .proved(Proof(record: .replaceOnce(try pending.bytes))) }
    let typed: TypedProof
    do throws(InputProblem) { typed = try TypedProof(input, for: step.purpose) } catch { return .malformed(error) }
    if step.purpose == .set { return try finishSetup(step, state, typed) }

    if let account = step.account, account.record == nil { return .refused(Self.notSetUp) }
    // Attack: an unknown account answers sooner. The same work is done for it, with a key that nobody has.
    let record = try step.account?.record.map(TOTPRecord.init(bytes:)) ?? .ofNobody
    switch judge(typed, record, step) {
    case .wrong: return .refused(.invalidCode)
    // An unknown account has used no code.
    case .used: return .refused(step.account == nil ? .invalidCode : Self.codeUsed)
    case .right(let updated):
      guard step.account != nil else { return .refused(.invalidCode) }
      switch step.purpose {
      case .prove, .set: return .proved(Proof(record: .replaceOnce(try updated.bytes)))
      case .disable: return .proved(Proof(record: .remove))
      case .change: return try askToKeepRecoveryCodes(key: updated.key, acceptedStep: updated.step, step.tools)
      }
    }
  }

  /// What came of a typed code.
  private enum Verdict {
    case wrong
    case used
    /// - Parameter updated: the record in which the code is used up.
    case right(updated: TOTPRecord)
  }

  private func judge(_ typed: TypedProof, _ record: TOTPRecord, _ step: StepContext) -> Verdict {
    var updated = record
    switch typed {
    case .code(let digits):
      switch TimeCode.match(digits, key: record.key, at: step.now, drift: drift(step.tools), after: record.step) {
      case .none: return .wrong
      // Attack: a code that was read over a shoulder, or taken by a phishing page, is typed again within its time.
      case .used: return .used
      case .fresh(let accepted): updated.step = accepted
      }
    case .recovery(let letters):
      guard let rest = record.recovery.spending(letters) else { return .wrong }
      updated.recovery = rest
    }
    return .right(updated: updated)
  }

  /// How many codes before and after the current one are taken (RFC 6238 section 6: resynchronization).
  func drift(_ tools: StepTools) -> Int64 { Int64(tools.settings.number("drift") ?? 1) }
}

/// A mistake of the program, not of the person: 503, and not counted.
enum TOTPFault: Error {
  case noAccount, noKey
}
