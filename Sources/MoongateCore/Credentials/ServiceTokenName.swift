/// The name of a service token: 1 to 48 lower-case letters, digits, `-`, `_` and `.`, beginning with a letter or digit.
/// It is part of a header value (`Remote-User: token:NAME`) and of the admin API's paths.
package struct ServiceTokenName: Sendable, Hashable {
  package let text: String

  /// The rule for names, for error messages.
  package static let rule = "1 to 48 lower-case letters, digits, -, _ and ., beginning with a letter or a digit"

  /// - Returns: nil if the text is not a valid name.
  package init?(_ text: String) {
    guard text.wholeMatch(of: /[a-z0-9][a-z0-9._\-]{0,47}/) != nil else { return nil }
    self.text = text
  }
}

/// The name of a personal token: 1 to 60 characters without control characters. Surrounding whitespace is trimmed.
package struct PersonalTokenName: Sendable, Hashable {
  package let text: String

  /// - Returns: nil if the text is not a valid name.
  package init?(_ text: String) {
    let words = text.split(whereSeparator: \.isWhitespace)
    let name = words.joined(separator: " ")
    guard !name.isEmpty, name.count <= 60, name.utf8.count <= 240,
      !name.unicodeScalars.contains(where: { $0.properties.generalCategory == .control || $0.properties.isBidiControl })
    else { return nil }
    self.text = name
  }
}
