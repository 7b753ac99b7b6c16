import MoongateSDK

/// The names of a registering user.
struct Person: Equatable {
  static let longest = 100

  var first: String?
  var last: String?

  var names: [String] { [first, last].compactMap(\.self) }

  init(first: String? = nil, last: String? = nil) {
    self.first = first
    self.last = last
  }

  /// Reads a name. Control characters and bidirectional controls are refused, because names appear in headers, pages
  /// and mail.
  static func name(_ field: String, in input: ProviderInput) throws(InputProblem) -> String {
    let scalars = try input.text(field).unicodeScalars
    let trimmed = scalars.drop(while: \.properties.isWhitespace).reversed().drop(while: \.properties.isWhitespace)
      .reversed()
    let isPlain = trimmed.allSatisfy { scalar in
      ![.control, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse].contains(
        scalar.properties.generalCategory)
        && !scalar.properties.isBidiControl
    }
    guard (1...longest).contains(trimmed.count), isPlain else {
      throw InputProblem(
        field: field, reason: .invalidInput, detail: "Please enter your \(field.replacing("_", with: " ")).")
    }
    return String(String.UnicodeScalarView(trimmed))
  }

  // MARK: state between `begin` and `submit`

  /// Both names, separated by a line feed, which names cannot contain; empty if none exist.
  var state: [UInt8] {
    guard let first, let last else { return [] }
    return Array("\(first)\n\(last)".utf8)
  }

  /// - Returns: nil if the state is empty.
  init?(state: [UInt8]) {
    let parts = String(decoding: state, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
    guard parts.count == 2 else { return nil }
    self.init(first: String(parts[0]), last: String(parts[1]))
  }
}
