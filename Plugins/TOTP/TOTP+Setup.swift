import MoongateSDK

// Setting an app up takes three rounds: the key is shown, a code proves that the app has it, and the recovery codes are
// shown. Nothing is stored before the last.

extension TOTP {
  /// Of an app that is being set up: there is nothing else to prove it by.
  private static let firstCode = InputField(name: "code", kind: .digits, length: TimeCode.length)

  /// Shows a new key, as a QR code and in letters. The key waits in the state, which the gateway seals.
  func beginSetup(_ step: StepContext) throws -> StepAnswer {
    guard let account = step.account else { throw TOTPFault.noAccount }
    if account.record != nil { return .refused(.alreadySet) }
    let key = step.tools.randomBytes(TimeCode.keySize)
    let address = KeyAddress.make(
      key: key, issuer: step.tools.settings.text("issuer") ?? "Moongate",
      person: account.identifiers.first?.display ?? account.id)
    return .ask(
      [Self.firstCode], state: try TOTPState(key: key).bytes,
      showing: [
        .text(
          "Scan this with your authenticator app, or type the key into it. Then enter the six digits that it shows."),
        .qr(address),
        .secret(Base32.encode(key).grouped(by: 4)),
      ])
  }

  /// Takes the code that proves that the app has the key.
  func finishSetup(_ step: StepContext, _ state: TOTPState, _ typed: TypedProof) throws -> StepAnswer {
    guard let key = state.key, step.account != nil else { throw TOTPFault.noKey }
    // Attack: a session that was left open replaces the app. `already_set` here, too: another flow may have set one up
    // meanwhile.
    guard step.account?.record == nil else { return .refused(.alreadySet) }
    guard case .code(let digits) = typed,
      case .fresh(let accepted) = TimeCode.match(digits, key: key, at: step.now, drift: drift(step.tools), after: nil)
    else { return .refused(.invalidCode) }
    return try askToKeepRecoveryCodes(key: key, acceptedStep: accepted, step.tools)
  }

  /// Shows new recovery codes, once. The record waits in the state until the person has gone on.
  /// - Parameter acceptedStep: the period whose code was accepted.
  func askToKeepRecoveryCodes(key: [UInt8], acceptedStep: Int64, _ tools: StepTools) throws -> StepAnswer {
    let (stored, shown) = RecoveryCodes.make(from: tools.randomBytes)
    return .ask(
      [], state: try TOTPState(pendingRecord: TOTPRecord(key: key, step: acceptedStep, recovery: stored)).bytes,
      showing: [
        .text(
          "Keep these recovery codes in a safe place. Each of them opens your account once, should you lose the app. They are not shown again."
        ),
        .list(shown),
      ])
  }
}
