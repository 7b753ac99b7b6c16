/// A name of a person, as it may be shown, mailed and put into headers: 1 to 100 characters, none of them a control, a
/// line end, or a mark that turns the text around it.
struct PersonName {
  static let longest = 100
  let text: String

  /// - Returns: nil for what is no name.
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
