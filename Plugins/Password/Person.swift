import MoongateSDK

/// The names of one who registers, as they said them.
struct Person: Equatable {
  static let longest = 100

  var first: String?
  var last: String?

  var names: [String] { [first, last].compactMap(\.self) }

  init(first: String? = nil, last: String? = nil) {
    self.first = first
    self.last = last
  }

  /// A name of the input: it goes into headers, pages and mails, so control characters, and marks that turn the text
  /// around it, are refused.
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

  // MARK: between `begin` and `submit`

  /// Both names with a line feed between them, which no name holds; empty where there are none.
  var state: [UInt8] {
    guard let first, let last else { return [] }
    return Array("\(first)\n\(last)".utf8)
  }

  /// - Returns: nil where nothing was kept.
  init?(state: [UInt8]) {
    let parts = String(decoding: state, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
    guard parts.count == 2 else { return nil }
    self.init(first: String(parts[0]), last: String(parts[1]))
  }
}
