import MoongateSDK

/// What the person proves with: the app's code, or a recovery code in its place.
enum TypedProof: Equatable {
  case code([UInt8])
  case recovery([UInt8])

  /// - Parameter purpose: an app that is being set up is proved by its own code only.
  /// - Throws: that it is neither, or both: no guess, and nothing charged.
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
    // One try is one guess. Attack: both together would be two for the price of one.
    case (.some, .some): throw Self.problem(TOTP.recoveryCode.name, "Enter either the app's code or a recovery code.")
    }
  }

  /// nil where it is missing or empty, as a form sends what was left out.
  private static func text(_ name: String, _ input: ProviderInput) throws(InputProblem) -> String? {
    let text = try input.optionalText(name)
    return text.flatMap { typed in typed.contains { !$0.isWhitespace } ? typed : nil }
  }

  /// Six digits of any script, as ASCII; spaces and hyphens are not looked at.
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
