import CLua
import MoongateCore
import MoongateSDK

/// Reads the fields of one table by its shape.
///
/// An invalid field is reported and read as nil, so that the caller finds further problems. The result is used only if
/// there were no problems.
final class TableReader {
  let path: String
  let location: SourceLocation
  let problems: Problems
  private let table: LuaTable
  private let shape: TableShape?

  /// - Parameters:
  /// - shape: nil if the operator chooses the names, as for limits.
  /// - allowsItems: whether the table may contain a list as well as fields.
  /// - Returns: nil, with a problem, if the node is not a table, or is a list although fields are expected.
  init?(_ node: LuaNode, _ shape: TableShape?, path: String, problems: Problems, allowsItems: Bool = false) {
    guard case .table(let table) = node.value else {
      problems.add(node.location, path, "must be a table, as in `{ … }`, not \(node.value.described)")
      return nil
    }
    self.table = table
    self.shape = shape
    self.path = path
    self.location = node.location
    self.problems = problems
    if !allowsItems {
      for item in table.items.prefix(3) {
        problems.add(item.location, path, "\(item.value.described) is not a field; write fields as `name = value`")
      }
    }
    for (key, node) in table.otherKeys { problems.add(node.location, path, "\(key) is not a valid field name") }
    if let shape { reportUnknown(shape) }
  }

  var items: [LuaNode] { table.items }
  var names: [String] { table.fields.keys.sorted() }

  func path(_ name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }

  /// The explicit value of a field; nil if it is not set.
  func explicitValue(_ name: String) -> LuaNode? {
    guard let node = table.fields[name] else { return nil }
    if case .null = node.value { return nil }
    return node
  }

  /// The value of a field, or its default. Reports a required field that is missing.
  func take(_ name: String) -> LuaNode? {
    if let node = explicitValue(name) { return node }
    guard let entry = shape?.entry(name) else { return nil }
    if entry.isRequired { return require(name) }
    return entry.standard.map { LuaNode(value: $0, location: location) }
  }

  /// A field that is required in this case.
  func require(_ name: String) -> LuaNode? {
    if let node = explicitValue(name) { return node }
    // A misspelled field is reported only once, at its own line.
    if !names.contains(where: { shape?.entry($0) == nil && Suggestion.nearest(to: $0, among: [name]) != nil }) {
      problems.add(location, path(name), "is missing: \(shape?.entry(name)?.help ?? "a value")")
    }
    return nil
  }

  /// The location of a field, also of one in a table of this one, such as `["identity", "user"]`.
  func location(of path: [String]) -> SourceLocation {
    var (location, fields) = (location, table.fields)
    for name in path {
      guard let node = fields[name] else { break }
      location = node.location
      if case .table(let inner) = node.value { fields = inner.fields } else { fields = [:] }
    }
    return location
  }

  private func reportUnknown(_ shape: TableShape) {
    let known = shape.entries.map(\.name)
    for name in names where shape.entry(name) == nil {
      let absent = known.filter { table.fields[$0] == nil }
      let message: String
      if let meant = Suggestion.nearest(to: name, among: absent) ?? Suggestion.nearest(to: name, among: known) {
        message = "unknown field; did you mean `\(meant)`?\(shape.entry(meant).map { " (\($0.help))" } ?? "")"
      } else {
        message = known.isEmpty ? "unknown field" : "unknown field; available: \(Suggestion.list(known))"
      }
      problems.add(table.fields[name]?.location ?? location, path(name), message)
    }
  }

  // MARK: fields by type

  func text(_ name: String) -> String? { take(name).flatMap { Field.text($0, path(name), problems) } }
  func flag(_ name: String) -> Bool? { take(name).flatMap { Field.flag($0, path(name), problems) } }

  func duration(_ name: String, atLeast least: Duration = .milliseconds(1)) -> Duration? {
    take(name).flatMap { Field.duration($0, path(name), problems, atLeast: least) }
  }

  func whole(_ name: String, in range: ClosedRange<Int>) -> Int? {
    take(name).flatMap { Field.whole($0, path(name), problems, in: range) }
  }

  /// In bytes.
  func size(_ name: String, in range: ClosedRange<Int> = 0...Int.max) -> Int? {
    take(name).flatMap { Field.size($0, path(name), problems, in: range) }
  }

  /// - Parameter example: a valid value, for the problem.
  func function(_ name: String, example: String = "function(f) return allow end") -> LuaFunction? {
    guard let node = take(name) else { return nil }
    if case .function(let function) = node.value { return function }
    problems.add(node.location, path(name), "must be a function, as in \(example), not \(node.value.described)")
    return nil
  }

  func choice<Choice: CaseIterable & RawRepresentable<String>>(_ name: String, _ type: Choice.Type) -> Choice? {
    take(name).flatMap { Field.choice($0, path(name), problems, type) }
  }
}

extension LuaNode {
  /// Whether it is `{}`.
  var isEmptyTable: Bool { if case .table(let table) = value { table.isEmpty } else { false } }
}

/// Reads one value. An invalid value is reported and read as nil.
enum Field {
  static func text(_ node: LuaNode, _ path: String, _ problems: Problems) -> String? {
    guard case .text(let text) = node.value else {
      problems.add(node.location, path, "must be a text in quotes, not \(node.value.described)")
      return nil
    }
    // Text goes into headers, pages and log lines, where control characters are never valid.
    guard text.utf8.count <= 4096,
      !text.unicodeScalars.contains(where: { $0.value < 32 && $0 != "\n" || $0.value == 127 || $0 == "\u{FFFD}" })
    else {
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
    default:
      problems.add(
        node.location, path,
        "must be a whole number from \(range.lowerBound) to \(range.upperBound), not \(node.value.described)")
    }
    return nil
  }

  static func number(_ node: LuaNode, _ path: String, _ problems: Problems, in bounds: ClosedRange<Double>) -> Double? {
    let number: Double? =
      switch node.value {
      case .integer(let integer): Double(integer)
      case .number(let number): number
      default: nil
      }
    if let number, bounds.contains(number) { return number }
    let (lowest, highest) = (bounded(bounds.lowerBound), bounded(bounds.upperBound))
    problems.add(node.location, path, "must be a number from \(lowest) to \(highest), not \(node.value.described)")
    return nil
  }

  /// The number without `.0` if it is whole.
  private static func bounded(_ number: Double) -> String { Int64(exactly: number).map(String.init) ?? String(number) }

  static func duration(
    _ node: LuaNode, _ path: String, _ problems: Problems, atLeast least: Duration = .milliseconds(1)
  ) -> Duration? {
    switch node.value {
    case .text(let text):
      guard let duration = duration(text) else {
        let advice =
          meantDuration(text).map { "did you mean \"\($0)\"?" } ?? "write \"90s\", \"10m\", \"1h30m\" or \"7d\""
        problems.add(node.location, path, "\(node.value.described) is not a duration; \(advice)")
        return nil
      }
      guard duration >= least else {
        problems.add(node.location, path, "must be longer than \"\(text)\"")
        return nil
      }
      return duration
    case .integer(let number):
      problems.add(
        node.location, path,
        "a bare number is not a duration; write \"\(number)s\" for seconds or \"\(number)m\" for minutes")
    case .number:
      problems.add(node.location, path, "a bare number is not a duration; write \"90s\", \"10m\", \"1h30m\" or \"7d\"")
    case .function: problems.add(node.location, path, Field.bareFunction)
    default: problems.add(node.location, path, "must be a duration, such as \"15m\", not \(node.value.described)")
    }
    return nil
  }

  /// The duration that a text such as "3min", "2 hours" or "1w" probably means; nil if it is unclear.
  static func meantDuration(_ text: String) -> String? {
    guard let match = text.lowercased().wholeMatch(of: /\s*([0-9]{1,6})\s*([a-z]+)\s*/), let count = Int(match.1) else {
      return nil
    }
    switch match.2 {
    case "ms", "msec", "msecs", "millis", "millisecond", "milliseconds": return "\(count)ms"
    case "s", "sec", "secs", "second", "seconds": return "\(count)s"
    case "m", "min", "mins", "minute", "minutes": return "\(count)m"
    case "h", "hr", "hrs", "hour", "hours": return "\(count)h"
    case "d", "day", "days": return "\(count)d"
    case "w", "wk", "week", "weeks": return "\(count * 7)d"
    default: return nil
    }
  }

  static let bareFunction = "a function alone has no bounds; write vary(lowest, highest, function(f) … end)"

  /// Parses a duration such as `1h30m`; nil if it is invalid.
  static func duration(_ text: String) -> Duration? {
    var milliseconds: Int64 = 0
    return clua_parse_duration(text, text.utf8.count, &milliseconds) ? .milliseconds(milliseconds) : nil
  }

  static func choice<Choice: CaseIterable & RawRepresentable<String>>(
    _ node: LuaNode, _ path: String, _ problems: Problems, _: Choice.Type
  ) -> Choice? {
    choice(node, path, problems, among: Choice.allCases.map(\.rawValue)).flatMap { Choice(rawValue: $0) }
  }

  /// Reads the name of a provider's entry.
  static func provider(_ text: String, at location: SourceLocation, _ path: String, _ problems: Problems)
    -> ProviderName?
  {
    guard let name = ProviderName(rawValue: text) else {
      problems.add(
        location, path,
        "is not a valid provider name: use at most 48 lower-case letters, digits and _, beginning with a letter")
      return nil
    }
    // Attack: a program of this name reads and replaces what the App API has stored under it.
    guard name != ProviderKeyValues.appAPI else {
      problems.add(location, path, "is a name of the gateway's own: choose another one")
      return nil
    }
    return name
  }

  /// Reads a size in bytes, such as "64MiB".
  static func size(_ node: LuaNode, _ path: String, _ problems: Problems, in range: ClosedRange<Int>) -> Int? {
    guard let text = text(node, path, problems) else { return nil }
    guard let size = ByteSize.parse(text) else {
      problems.add(node.location, path, "\"\(text)\" is not a size; write \"64KiB\", \"64MiB\" or \"1GiB\"")
      return nil
    }
    if range.contains(size) { return size }
    problems.add(node.location, path, "must be from \(range.lowerBound) to \(range.upperBound) bytes, not \"\(text)\"")
    return nil
  }

  /// Reads one of these words.
  static func choice(_ node: LuaNode, _ path: String, _ problems: Problems, among words: [String]) -> String? {
    guard case .text(let text) = node.value else {
      problems.add(
        node.location, path, "must be one of \(Suggestion.list(words)), in quotes, not \(node.value.described)")
      return nil
    }
    if words.contains(text) { return text }
    problems.add(
      node.location, path, "\(node.value.described) is not known\(Suggestion.phrase(for: text, among: words))")
    return nil
  }

  /// Reads a list of texts.
  static func texts(_ node: LuaNode, _ path: String, _ problems: Problems) -> [(text: String, node: LuaNode)]? {
    guard case .table(let table) = node.value, table.isList else {
      problems.add(
        node.location, path, "must be a list of texts, as in `{ \"a\", \"b\" }`, not \(node.value.described)")
      return nil
    }
    return table.items.enumerated().compactMap { index, item in
      text(item, "\(path)[\(index + 1)]", problems).map { ($0, item) }
    }
  }
}
