/// A user's name that is safe in pages, emails and headers: 1 to 100 characters without control characters, line
/// separators or bidirectional controls.
struct PersonName {
  static let longest = 100
  let text: String

  /// - Returns: nil if the text is not a valid name.
  init?(_ typed: String) {
    let scalars = typed.unicodeScalars.drop(while: \.properties.isWhitespace).reversed().drop(
      while: \.properties.isWhitespace
    ).reversed()
    let isPlain = scalars.allSatisfy { scalar in
      ![.control, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse].contains(
        scalar.properties.generalCategory)
        && !scalar.properties.isBidiControl
    }
    guard (1...Self.longest).contains(scalars.count), isPlain else { return nil }
    text = String(String.UnicodeScalarView(scalars))
  }
}
