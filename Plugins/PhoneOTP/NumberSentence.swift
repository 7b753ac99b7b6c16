import MoongateSDK

/// The messages to a user about an invalid phone number.
enum NumberSentence {
  /// India has one fixed message; other countries get the specific problem.
  static func problem(_ problem: TypedNumber.Problem?, region: NumberingPlan.Region?) -> InputProblem {
    switch problem {
    case .empty: refused(isIndian: region?.code == "IN", "Please enter your phone number.")
    case .tooLong: refused(isIndian: region?.code == "IN", "This phone number is too long.")
    case .foreignCharacter, nil: refused(isIndian: region?.code == "IN", "Please enter a phone number in digits only.")
    }
  }

  /// - Parameter typed: its calling code identifies the intended country.
  static func problem(_ problem: NumberingPlan.Problem, typed: TypedNumber, region: NumberingPlan.Region?)
    -> InputProblem
  {
    // No other calling code begins with 91.
    let isIndian = typed.digits.hasPrefix("+") ? typed.digits.hasPrefix("+91") : region?.code == "IN"
    return switch problem {
    case .tooShort: refused(isIndian: isIndian, "This phone number is too short.")
    case .tooLong: refused(isIndian: isIndian, "This phone number is too long.")
    // With fewer than three digits, the country is unknown, so do not name one.
    case .noNumber where typed.digits.count < 3: refused(isIndian: isIndian, "This phone number is too short.")
    case .noNumber where typed.digits.hasPrefix("+"):
      refused(isIndian: isIndian, "This is not a phone number of any country.")
    case .noNumber: refused(isIndian: isIndian, "This is not a phone number of the chosen country.")
    }
  }

  private static func refused(isIndian: Bool, _ otherwise: String) -> InputProblem {
    InputProblem(
      field: "phone", reason: .invalidPhone,
      detail: isIndian ? "Please enter a valid 10-digit mobile number" : otherwise)
  }
}
