import MoongateSDK

/// Verifies time-based one-time passwords of an authenticator app (RFC 6238), with recovery codes for a lost app.
///
/// The provider verifies codes (`TimeCode`) and records used ones (`TOTPRecord`). The gateway determines the purpose of
/// a step (`StepPurpose`), limits the attempts as required by RFC 4226 section 7.3 (policy.lua), and encrypts the
/// record. `TOTP+Setup.swift` sets up an app.
public struct TOTP: FullProvider {
  /// `begin` takes no fields; `submit` takes `code` or `recovery_code`.
  public let descriptor: ProviderDescriptor

  static let code = InputField(name: "code", kind: .digits, length: TimeCode.length, isRequired: false)
  static let recoveryCode = InputField(name: "recovery_code", kind: .text, isRequired: false)

  private static let notSetUp: RefusalReason = "not_set_up"
  private static let codeUsed: RefusalReason = "code_used"

  public init() {
    descriptor = ProviderDescriptor(
      name: "totp", beginFields: [], submitFields: [Self.code, Self.recoveryCode],
      settings: [
        SettingField(
          name: "issuer", kind: .text, isRequired: false, help: "The name of the site in authenticator apps.",
          standard: "Moongate", check: { text, _ in KeyAddress.mistake(inIssuer: text) }),
        SettingField(
          name: "drift", kind: .number(0...1), isRequired: false,
          help: "How many codes before and after the current one are accepted, for inaccurate clocks: 0 or 1.",
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
      // Three of a million codes are valid at any time: the current one, the previous one and the next one (RFC 6238
      // section 5.2).
      secretSpace: 1_000_000 / 3,
      outcomes: [
        Outcome(.invalidCode, "Invalid code. Check the app and try again."),
        Outcome(Self.codeUsed, "This code was already used. Wait until the app shows the next one."),
        Outcome(.alreadySet, "An authenticator app is already set up for this account.", isFailure: false),
        Outcome(Self.notSetUp, "No authenticator app is set up for this account.", isFailure: false),
      ],
      words: StepWords(
        title: "Authenticator app", instruction: "Enter the six digits that your authenticator app shows.",
        labels: ["code": "Code from the app", "recovery_code": "Use a recovery code"],
        links: [.change: "New recovery codes"],
        page: [
          "offer_help":
            "An app on your phone shows a new code every 30 seconds. When you sign in, you are asked for one."
        ],
        translations: PackageResources.translations), presentation: .form, role: .keepsFactor
    )
  }

  /// Checks that there is exactly one well-formed code. Malformed input is answered with 422 and not counted.
  public func check(_ step: StepContext, _ input: ProviderInput) throws(InputProblem) {
    // The round that shows the recovery codes has no input.
    if (try? TOTPState(bytes: step.state))?.pendingRecord != nil { return }
    _ = try TypedProof(input, for: step.purpose)
  }

  /// Opens the step: asks for a code or, in a setup, also shows a new key.
  public func begin(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    if step.purpose == .set { return try beginSetup(step) }
    // Without an account, a code is requested too, but none is valid.
    if let account = step.account, account.record == nil { return .refused(Self.notSetUp) }
    return .ask([Self.code, Self.recoveryCode], state: [], showing: Self.explanation(of: step.purpose))
  }

  /// The explanation of steps that do more than sign in.
  private static func explanation(of purpose: StepPurpose) -> [Shown] {
    switch purpose {
    case .change: [.text("Enter a code from the app. You get ten new recovery codes, and your old ones stop working.")]
    case .disable:
      [.text("Enter a code from the app. After that, no code is asked for, and your recovery codes stop working.")]
    case .prove, .set: []
    }
  }

  /// Verifies a code. The proof contains a record in which the code is used (RFC 6238 section 5.2: a code is accepted
  /// once).
  public func submit(_ step: StepContext, _ input: ProviderInput) async throws -> StepAnswer {
    let state = try TOTPState(bytes: step.state)
    // The user has seen the recovery codes. Of concurrent flows with the same record, only one completes.
    if let pending = state.pendingRecord { return .proved(Proof(record: .replaceOnce(try pending.bytes))) }
    let typed: TypedProof
    do throws(InputProblem) { typed = try TypedProof(input, for: step.purpose) } catch { return .malformed(error) }
    if step.purpose == .set { return try finishSetup(step, state, typed) }

    if let account = step.account, account.record == nil { return .refused(Self.notSetUp) }
    // Attack: an unknown account is answered faster. The same work is done with a placeholder key.
    let record = try step.account?.record.map(TOTPRecord.init(bytes:)) ?? .ofNobody
    switch judge(typed, record, step) {
    case .wrong: return .refused(.invalidCode)
    // An unknown account has no used codes.
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

  /// The result of a code.
  private enum Verdict {
    case wrong
    case used
    /// - updated: the record in which the code is used.
    case right(updated: TOTPRecord)
  }

  private func judge(_ typed: TypedProof, _ record: TOTPRecord, _ step: StepContext) -> Verdict {
    var updated = record
    switch typed {
    case .code(let digits):
      switch TimeCode.match(digits, key: record.key, at: step.now, drift: drift(step.tools), after: record.step) {
      case .none: return .wrong
      // Attack: a code that was observed or phished is used again within its lifetime.
      case .used: return .used
      case .fresh(let accepted): updated.step = accepted
      }
    case .recovery(let letters):
      guard let rest = record.recovery.spending(letters) else { return .wrong }
      updated.recovery = rest
    }
    return .right(updated: updated)
  }

  /// The number of accepted codes before and after the current one (RFC 6238 section 6: resynchronization).
  func drift(_ tools: StepTools) -> Int64 { Int64(tools.settings.number("drift") ?? 1) }
}

/// A mistake of the program, not of the user: status 503, and not counted.
enum TOTPFault: Error {
  case noAccount, noKey
}
