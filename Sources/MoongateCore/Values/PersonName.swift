/// A user's name that is safe in pages, emails and headers: 1 to 100 characters without control characters, line
/// separators or bidirectional controls.
package struct PersonName {
  private static let longest = 100
  let text: String

  /// Removes white space at both ends.
  /// - Returns: nil if the text is not a valid name.
  init?(_ typed: String) {
    let scalars = typed.unicodeScalars.drop(while: \.properties.isWhitespace).reversed().drop(
      while: \.properties.isWhitespace
    ).reversed()
    text = String(String.UnicodeScalarView(scalars))
    if !Self.isValid(text) { return nil }
  }

  /// Whether the text as it is can be a name.
  package static func isValid(_ text: String) -> Bool {
    let scalars = text.unicodeScalars
    let isPlain = scalars.allSatisfy { scalar in
      ![.control, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse].contains(
        scalar.properties.generalCategory)
        && !scalar.properties.isBidiControl
    }
    return isPlain && (1...longest).contains(scalars.count)
  }
}
