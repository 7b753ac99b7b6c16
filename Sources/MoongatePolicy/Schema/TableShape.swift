import MoongateSDK

/// The schema of one kind of table: its fields, their types and defaults.
///
/// The readers, the editor types, the reference and the manual's test all use it, so a field is defined in one place.
struct TableShape: Sendable {
  /// A field of the table.
  struct Entry: Sendable {
    let name: String
    /// The type in lua-language-server syntax.
    let type: String
    /// The kind of value in words. Problems show it after "is missing" and "did you mean".
    let help: String
    let isRequired: Bool
    /// The default, as a configuration file would write it; nil if none exists.
    let standard: LuaValue?
  }

  /// The class name in editors, after `moongate.`.
  let name: String
  let summary: String
  /// The type and the meaning of the values without a name, as editors show them; nil if the table has none.
  var items: String?
  let entries: [Entry]

  func entry(_ name: String) -> Entry? { entries.first { $0.name == name } }
}

extension TableShape.Entry {
  /// The `help` of a duration that needs no other words.
  static let durationKind = "a duration, such as \"15m\""
  /// The `help` of `body_rate`.
  static let bodyRateKind = "the minimum size of a request body in each window, such as \"1KiB/10s\", or false"

  static func required(_ name: String, _ type: String, _ help: String) -> Self {
    Self(name: name, type: type, help: help, isRequired: true, standard: nil)
  }

  static func optional(_ name: String, _ type: String, _ help: String, _ standard: LuaValue? = nil) -> Self {
    Self(name: name, type: type, help: help, isRequired: false, standard: standard)
  }

  /// A field that takes one of an enum's raw values.
  static func choice<Choice: CaseIterable & RawRepresentable<String>>(
    _ name: String, _: Choice.Type, _ help: String? = nil, isRequired: Bool = false, _ standard: Choice? = nil
  ) -> Self {
    let words = Choice.allCases.map(\.rawValue)
    return Self(
      name: name, type: words.map { "\"\($0)\"" }.joined(separator: "|"),
      help: help ?? "one of \(Suggestion.list(words))", isRequired: isRequired,
      standard: standard.map { .text($0.rawValue) })
  }

  /// The type of a list of these words.
  static func list(of words: [String]) -> String {
    "(\(words.map { "\"\($0)\"" }.joined(separator: "|")))[]"
  }

  /// `standard` in Lua syntax.
  var standardText: String? {
    switch standard {
    case .text(let text): "\"\(text)\""
    case .flag(let flag): "\(flag)"
    case .integer(let integer): "\(integer)"
    case .number(let number): "\(number)"
    case .tagged(let name, let arguments):
      if case .text(let text)? = arguments.first?.value { "\(name) \"\(text)\"" } else { name }
    default: nil
    }
  }
}
