import CLua
import MoongateCore

/// Reads one table field by field. What was not asked for when it is finished is an unknown field.
///
/// A field that is wrong is reported and read as nil: the caller goes on to find the other problems, and its result is
/// used only if there were none.
final class TableReader {
  let path: String
  let location: SourceLocation
  let problems: Problems
  private let table: LuaTable
  /// Every field asked for, with what belongs there in words.
  private var known: [String: String] = [:]

  /// - Returns: nil, with a problem, where the node holds no table, or a list where names are due.
  init?(_ node: LuaNode, path: String, problems: Problems, allowsItems: Bool = false) {
    guard case .table(let table) = node.value else {
      problems.add(node.location, path, "must be a table, as in `{ … }`, not \(node.value.described)")
      return nil
    }
    self.table = table
    self.path = path
    self.location = node.location
    self.problems = problems
    if !allowsItems {
      for item in table.items.prefix(3) {
        problems.add(item.location, path, "\(item.value.described) has no name here; fields are written `name = value`")
      }
    }
    for (key, node) in table.otherKeys { problems.add(node.location, path, "\(key) is no name of a field") }
  }

  var items: [LuaNode] { table.items }
  var names: [String] { table.fields.keys.sorted() }

  func path(_ name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }

  /// The field, noted as known.
  /// - Parameter kind: what belongs there, for the sentence about a misspelled one.
  func take(_ name: String, _ kind: String) -> LuaNode? {
    known[name] = kind
    guard let node = table.fields[name] else { return nil }
    if case .null = node.value { return nil }
    return node
  }

  /// A field that must be there.
  func require(_ name: String, _ kind: String) -> LuaNode? {
    if let node = take(name, kind) { return node }
    // A misspelled one is reported once, by its own line.
    if !names.contains(where: { known[$0] == nil && Suggestion.nearest(to: $0, among: [name]) != nil }) {
      problems.add(location, path(name), "is missing: \(kind)")
    }
    return nil
  }

  /// Reports every field that was not asked for.
  func finish() {
    for name in names where known[name] == nil {
      let candidates = known.keys.filter { table.fields[$0] == nil }
      if let meant = Suggestion.nearest(to: name, among: candidates) ?? Suggestion.nearest(to: name, among: known.keys) {
        report(name, "unknown field; did you mean `\(meant)`?\(known[meant].map { $0.isEmpty ? "" : " (\($0))" } ?? "")")
      } else {
        report(name, known.isEmpty ? "unknown field" : "unknown field; there are \(Suggestion.list(known.keys))")
      }
    }
  }

  private func report(_ name: String, _ message: String) { problems.add(table.fields[name]?.location ?? location, path(name), message) }

  // MARK: fields by type

  func text(_ name: String, _ kind: String = "a text") -> String? { take(name, kind).flatMap { Field.text($0, path(name), problems) } }
  func flag(_ name: String, _ kind: String = "true or false") -> Bool? { take(name, kind).flatMap { Field.flag($0, path(name), problems) } }

  func duration(_ name: String, _ kind: String = Field.durationKind, atLeast least: Duration = .milliseconds(1)) -> Duration? {
    take(name, kind).flatMap { Field.duration($0, path(name), problems, atLeast: least) }
  }

  func whole(_ name: String, in range: ClosedRange<Int>, _ kind: String = "a whole number") -> Int? {
    take(name, kind).flatMap { Field.whole($0, path(name), problems, in: range) }
  }

  func choice<Choice: CaseIterable & RawRepresentable<String>>(_ name: String, _ type: Choice.Type) -> Choice? {
    take(name, "one of \(Suggestion.list(Choice.allCases.map(\.rawValue)))").flatMap { Field.choice($0, path(name), problems, type) }
  }
}

/// Reads one value. A wrong one is reported and nil.
enum Field {
  static let durationKind = "a duration, such as \"15m\""

  static func text(_ node: LuaNode, _ path: String, _ problems: Problems) -> String? {
    guard case .text(let text) = node.value else {
      problems.add(node.location, path, "must be a text in quotes, not \(node.value.described)")
      return nil
    }
    // Text goes into headers, pages and log lines: a control character is a mistake everywhere.
    guard text.utf8.count <= 4096, !text.unicodeScalars.contains(where: { $0.value < 32 && $0 != "\n" || $0.value == 127 || $0 == "\u{FFFD}" }) else {
      problems.add(node.location, path, "must be plain text of at most 4096 bytes, without control characters")
      return nil
    }
    return text
  }

  static func flag(_ node: LuaNode, _ path: String, _ problems: Problems) -> Bool? {
    if case .flag(let flag) = node.value { return flag }
    problems.add(node.location, path, "must be true or false, not \(node.value.described)")
    return nil
  }

  static func whole(_ node: LuaNode, _ path: String, _ problems: Problems, in range: ClosedRange<Int>) -> Int? {
    let whole: Int? =
      switch node.value {
      case .integer(let integer): Int(exactly: integer)
      case .number(let number): Int(exactly: number)
      default: nil
      }
    if let whole, range.contains(whole) { return whole }
    switch node.value {
    case .function: problems.add(node.location, path, Field.bareFunction)
    default: problems.add(node.location, path, "must be a whole number from \(range.lowerBound) to \(range.upperBound), not \(node.value.described)")
    }
    return nil
  }

  static func duration(_ node: LuaNode, _ path: String, _ problems: Problems, atLeast least: Duration = .milliseconds(1)) -> Duration? {
    switch node.value {
    case .text(let text):
      guard let duration = duration(text) else {
        problems.add(node.location, path, "\(node.value.described) is no duration; write \"90s\", \"10m\", \"1h30m\" or \"7d\"")
        return nil
      }
      guard duration >= least else {
        problems.add(node.location, path, "must be longer than \"\(text)\"")
        return nil
      }
      return duration
    case .integer(let number):
      problems.add(node.location, path, "a bare number is no duration; write \"\(number)s\" for seconds or \"\(number)m\" for minutes")
    case .number: problems.add(node.location, path, "a bare number is no duration; write \"90s\", \"10m\", \"1h30m\" or \"7d\"")
    case .function: problems.add(node.location, path, Field.bareFunction)
    default: problems.add(node.location, path, "must be a duration, such as \"15m\", not \(node.value.described)")
    }
    return nil
  }

  static let bareFunction = "a function alone has no bounds; write vary(lowest, highest, function(f) … end)"

  /// `1h30m` as a duration; nil where the text is none.
  static func duration(_ text: String) -> Duration? {
    var milliseconds: Int64 = 0
    return clua_parse_duration(text, text.utf8.count, &milliseconds) ? .milliseconds(milliseconds) : nil
  }

  static func choice<Choice: CaseIterable & RawRepresentable<String>>(
    _ node: LuaNode, _ path: String, _ problems: Problems, _: Choice.Type
  ) -> Choice? {
    let names = Choice.allCases.map(\.rawValue)
    guard case .text(let text) = node.value else {
      problems.add(node.location, path, "must be one of \(Suggestion.list(names)), in quotes, not \(node.value.described)")
      return nil
    }
    if let choice = Choice(rawValue: text) { return choice }
    problems.add(node.location, path, "\(node.value.described) is not known\(Suggestion.phrase(for: text, among: names))")
    return nil
  }

  /// The texts of a list.
  static func texts(_ node: LuaNode, _ path: String, _ problems: Problems) -> [(text: String, node: LuaNode)]? {
    guard case .table(let table) = node.value, table.isList else {
      problems.add(node.location, path, "must be a list of texts, as in `{ \"a\", \"b\" }`, not \(node.value.described)")
      return nil
    }
    return table.items.enumerated().compactMap { index, item in text(item, "\(path)[\(index + 1)]", problems).map { ($0, item) } }
  }
}
