import MoongateSDK

/// The fields that one kind of table may have. The readers, the editors' types and the manual's test all go by it, so
/// that there is one place to say what a field is.
struct TableShape: Sendable {
  /// One field.
  struct Entry: Sendable {
    let name: String
    /// As lua-language-server spells it.
    let type: String
    /// What belongs there, in words; after "did you mean" and on hovering.
    let help: String
    let isRequired: Bool
    /// What holds where it is not said, as the file would say it.
    let standard: LuaValue?
  }

  /// Behind `moongate.`, in editors.
  let name: String
  let summary: String
  let entries: [Entry]

  func entry(_ name: String) -> Entry? { entries.first { $0.name == name } }
}

extension TableShape.Entry {
  static func required(_ name: String, _ type: String, _ help: String) -> Self {
    Self(name: name, type: type, help: help, isRequired: true, standard: nil)
  }

  static func optional(_ name: String, _ type: String, _ help: String, _ standard: LuaValue? = nil) -> Self {
    Self(name: name, type: type, help: help, isRequired: false, standard: standard)
  }

  /// One of the words of an enum.
  static func choice<Choice: CaseIterable & RawRepresentable<String>>(
    _ name: String, _: Choice.Type, _ help: String? = nil, isRequired: Bool = false, _ standard: Choice? = nil
  ) -> Self {
    let words = Choice.allCases.map(\.rawValue)
    return Self(
      name: name, type: words.map { "\"\($0)\"" }.joined(separator: "|"),
      help: help ?? "one of \(Suggestion.list(words))", isRequired: isRequired,
      standard: standard.map { .text($0.rawValue) })
  }

  /// `standard` as it is written in a file.
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
