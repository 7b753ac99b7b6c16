import MoongateSDK

// The setup of an app has three rounds: show the key, verify a code of the app, show the recovery codes. Nothing is
// stored before the last round.

extension TOTP {
  /// The code of the new app, which is the only possible proof.
  private static let firstCode = InputField(name: "code", kind: .digits, length: TimeCode.length)

  /// Shows a new key, as a QR code and as text. The key is kept in the encrypted state.
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

  /// Verifies the code that proves that the app has the key.
  func finishSetup(_ step: StepContext, _ state: TOTPState, _ typed: TypedProof) throws -> StepAnswer {
    guard let key = state.key, step.account != nil else { throw TOTPFault.noKey }
    // Attack: someone uses an open session to replace the app. Check `already_set` here too, because a concurrent flow
    // may have set up an app.
    guard step.account?.record == nil else { return .refused(.alreadySet) }
    guard case .code(let digits) = typed,
      case .fresh(let accepted) = TimeCode.match(digits, key: key, at: step.now, drift: drift(step.tools), after: nil)
    else { return .refused(.invalidCode) }
    return try askToKeepRecoveryCodes(key: key, acceptedStep: accepted, step.tools)
  }

  /// Shows new recovery codes once. The record is kept in the state until the user continues.
  /// - Parameter acceptedStep: the period whose code was accepted.
  func askToKeepRecoveryCodes(key: [UInt8], acceptedStep: Int64, _ tools: StepTools) throws -> StepAnswer {
    let (stored, shown) = RecoveryCodes.make(from: tools.randomBytes)
    return .ask(
      [], state: try TOTPState(pendingRecord: TOTPRecord(key: key, step: acceptedStep, recovery: stored)).bytes,
      showing: [
        .text(
          "Keep these recovery codes in a safe place. If you lose the app, use one in place of its code. Each works once. They are not shown again."
        ),
        .list(shown),
      ])
  }
}
