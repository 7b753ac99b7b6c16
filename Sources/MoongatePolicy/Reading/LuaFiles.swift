import MoongateCore

/// Loads configuration files, each in its own Lua state.
struct LuaFiles {
  /// The text of a file, from which functions are loaded later.
  struct Source: Sendable {
    let name: String
    let bytes: [UInt8]
  }

  /// The files that were loaded, by name.
  private(set) var sources: [String: Source] = [:]
  /// The names that each file uses.
  private(set) var names: [String: LuaNames] = [:]
  let problems: Problems

  init(problems: Problems) { self.problems = problems }

  /// Loads a file and checks that the expected constructor made its value.
  /// - Parameters:
  /// - constructor: `gateway`, `policy`, …
  /// - example: the expected value, for the problem.
  /// - count: the number of arguments: two if a name precedes the table.
  /// - types: the providers whose names are constructors in this file.
  /// - Returns: the constructor's arguments; nil with a problem.
  mutating func read(
    _ file: ConfigurationFiles.File, constructor: String, example: String, count: Int = 1, types: [String] = []
  ) -> [LuaNode]? {
    guard let node = value(of: file, types) else { return nil }
    guard case .tagged(constructor, let arguments) = node.value, arguments.count == count else {
      let got: String =
        if case .tagged(constructor, _) = node.value {
          "a name without its table"
        } else if case .tagged(let other, _) = node.value {
          "`\(other)`"
        } else if case .null = node.value { "nothing" } else { node.value.described }
      problems.add(SourceLocation(file: file.name, line: 0), "", "must return \(example), but returns \(got)")
      return nil
    }
    return arguments
  }

  /// The beginning of the message for a field that a table sets twice.
  static let saidTwice = "is set twice in one table"

  /// The value of a file with the line of each field.
  private mutating func value(of file: ConfigurationFiles.File, _ types: [String]) -> LuaNode? {
    guard let bytes = Self.text(of: file, problems) else { return nil }
    do {
      let map = try Self.check(bytes, file.name, problems)
      guard let map else { return nil }
      for again in map.repeats {
        problems.add(
          SourceLocation(file: file.name, line: again.line), again.name,
          "\(Self.saidTwice), first in line \(again.first): rename or remove one of them")
      }
      let names = LuaNames(bytes)
      let unknown = UnknownNames(names, file: file.name, types: types)
      sources[file.name] = Source(name: file.name, bytes: bytes)
      self.names[file.name] = names
      problems.add(unknown.problems)
      // Misspelled names are replaced by the intended ones, so that they do not hide other mistakes. The file is
      // refused in any case.
      return try value(
        of: unknown.corrected(bytes), unknown.problems.isEmpty ? map : SourceMap(unknown.corrected(bytes)), file.name,
        unknown, types)
    } catch {
      sources[file.name] = nil
      let (line, message) = SyntaxAdvice.explanation(of: error, in: bytes)
      problems.add(SourceLocation(file: file.name, line: line), "", message)
      return nil
    }
  }

  private func value(
    of bytes: [UInt8], _ map: SourceMap, _ name: String, _ unknown: UnknownNames, _ types: [String]
  ) throws(LuaState.Failure) -> LuaNode? {
    do {
      let state = try LuaState(constructors: types)
      try state.load(map.instrumented, name: name, marks: true)
      return state.tree(file: name, map: map)
    } catch {}
    // The added calls can exceed a limit of Lua (nesting, registers). In that case, the original text decides.
    let state = try LuaState(constructors: types)
    do { try state.load(bytes, name: name, marks: false) } catch {
      if unknown.problems.contains(where: { $0.message == error.message }) { return nil }
      throw error
    }
    return state.tree(file: name, map: nil)
  }

  /// The map of a text that Lua can parse.
  private static func check(_ bytes: [UInt8], _ name: String, _ problems: Problems) throws(LuaState.Failure)
    -> SourceMap?
  {
    let map = SourceMap(bytes)
    // Attack on the loader: Lua's parser compares each label with all others, so a megabyte of labels would take
    // minutes.
    guard map.labels <= 1000 else {
      problems.add(SourceLocation(file: name, line: 0), "", "more than 1000 labels (`::name::`)")
      return nil
    }
    try LuaState().parse(bytes, name: name)
    return map
  }

  /// The bytes without a byte order mark; nil with a problem if they are not UTF-8.
  private static func text(of file: ConfigurationFiles.File, _ problems: Problems) -> [UInt8]? {
    // A line break is never part of a multi-byte character, so each line can be validated alone.
    let lines = file.bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    if let bad = lines.firstIndex(where: { String(validating: $0, as: UTF8.self) == nil }) {
      problems.add(
        SourceLocation(file: file.name, line: bad + 1), "", "the file is not UTF-8: save it as UTF-8 in your editor")
      return nil
    }
    return file.bytes.starts(with: [0xef, 0xbb, 0xbf]) ? Array(file.bytes.dropFirst(3)) : file.bytes
  }
}
