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
      guard let digits = Self.digits(typed) else {
        throw Self.problem(TOTP.code.name, "Enter the six digits that your app shows.")
      }
      self = .code(digits)
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

  /// nil if the field is missing or empty, as in a form.
  private static func text(_ name: String, _ input: ProviderInput) throws(InputProblem) -> String? {
    let text = try input.optionalText(name)
    return text.flatMap { typed in typed.contains { !$0.isWhitespace } ? typed : nil }
  }

  /// Six digits of any script, as ASCII; spaces and hyphens are ignored.
  private static func digits(_ typed: String) -> [UInt8]? {
    var digits: [UInt8] = []
    for scalar in typed.unicodeScalars.prefix(32) {
      if scalar == "-" || scalar.properties.isWhitespace { continue }
      guard scalar.properties.numericType == .decimal, let value = scalar.properties.numericValue else { return nil }
      digits.append(UInt8(ascii: "0") + UInt8(value))
    }
    return digits.count == TimeCode.length && typed.unicodeScalars.count <= 32 ? digits : nil
  }

  private static func problem(_ field: String, _ detail: String) -> InputProblem {
    InputProblem(field: field, reason: .invalidInput, detail: detail)
  }
}
