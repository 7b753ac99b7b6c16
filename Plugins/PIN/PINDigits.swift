import MoongateSDK

/// Six digits, read like every code that people type (`TypedCode`): an app or a keyboard may send those of another
/// script, or of full width.
struct PINDigits: Equatable {
  static let length = 6

  /// `0` to `9`, as numbers.
  let digits: [UInt8]

  /// - Throws: an error if the input is not six digits.
  init(_ typed: String, field: String) throws(InputProblem) {
    guard let typed = TypedCode(typed).digits, typed.utf8.count == Self.length else {
      throw InputProblem(field: field, reason: .invalidInput, detail: "A passcode is six digits.")
    }
    digits = typed.utf8.map { $0 - UInt8(ascii: "0") }
  }

  /// For rules and tests.
  init(number: Int) {
    var rest = number
    digits = (0..<Self.length).map { _ in
      defer { rest /= 10 }
      return UInt8(rest % 10)
    }.reversed()
  }

  /// The bytes to hash.
  var bytes: [UInt8] { digits.map { $0 + UInt8(ascii: "0") } }
}
