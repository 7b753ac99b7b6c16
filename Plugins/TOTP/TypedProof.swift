import MoongateSDK

/// The input of a step: a code of the app or a recovery code.
enum TypedProof: Equatable {
  case code([UInt8])
  case recovery([UInt8])

  /// - Parameter purpose: with `set`, only a code of the app is accepted.
  /// - Throws: an error unless exactly one exists. Then nothing is charged.
  init(_ input: ProviderInput, for purpose: StepPurpose) throws(InputProblem) {
    let code = try Self.text(TOTP.code.name, input)
    let recovery = purpose == .set ? nil : try Self.text(TOTP.recoveryCode.name, input)
    switch (code, recovery) {
    case (let typed?, nil):
      guard let digits = TypedCode(typed).digits, digits.utf8.count == TimeCode.length else {
        throw Self.problem(TOTP.code.name, "Enter the six digits that your app shows.")
      }
      self = .code(Array(digits.utf8))
    case (nil, let typed?):
      guard let letters = RecoveryCodes.read(typed) else {
        throw Self.problem(TOTP.recoveryCode.name, "A recovery code is ten letters and digits, such as ABCDE-FGH23.")
      }
      self = .recovery(letters)
    case (nil, nil): throw Self.problem(TOTP.code.name, "Enter the six digits that your app shows.")
    // Attack: with both in one attempt, an attacker gets two guesses.
    case (.some, .some): throw Self.problem(TOTP.recoveryCode.name, "Enter either the app's code or a recovery code.")
    }
  }

  /// nil if the field is missing or nothing was entered, as in a form.
  private static func text(_ name: String, _ input: ProviderInput) throws(InputProblem) -> String? {
    try input.optionalText(name).map { TypedCode($0).text }.flatMap { $0.isEmpty ? nil : $0 }
  }

  private static func problem(_ field: String, _ detail: String) -> InputProblem {
    InputProblem(field: field, reason: .invalidInput, detail: detail)
  }
}
