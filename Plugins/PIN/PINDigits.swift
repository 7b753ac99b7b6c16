import MoongateSDK

/// Six ASCII digits. The input is not trimmed or mapped, because a keypad sends nothing else.
struct PINDigits: Equatable {
  static let length = 6

  /// `0` to `9`, as numbers.
  let digits: [UInt8]

  /// - Throws: an error if the input is not six digits.
  init(_ typed: String, field: String) throws(InputProblem) {
    let bytes = Array(typed.utf8.prefix(Self.length + 1))
    guard bytes.count == Self.length, bytes.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
      throw InputProblem(field: field, reason: .invalidInput, detail: "A passcode is six digits.")
    }
    digits = bytes.map { $0 - UInt8(ascii: "0") }
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
