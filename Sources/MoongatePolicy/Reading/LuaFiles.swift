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
  /// The files that others may include.
  private(set) var shared: [SharedFile] = []
  /// Shared files with problems. Files that include them are refused too, and only the first problem is reported.
  private var broken: Set<String> = []
  let problems: Problems

  init(problems: Problems) { self.problems = problems }

  /// Reads the files that others may include. Each is run once by itself, so that its problems are found even if no
  /// file includes it.
  mutating func share(_ files: [SharedFile]) {
    shared = files
    // Failures in another file than the one that was run, by what the two do together.
    var failures: [(failure: LuaState.Failure, file: SharedFile)] = []
    for file in files {
      let before = problems.all.count
      let source = ConfigurationFiles.File(name: file.file, bytes: file.bytes)
      if let bytes = prepare(source, types: [])?.bytes {
        do {
          try LuaState(shared: files).load(Array("return include \"\(file.name)\"".utf8), name: "include", marks: false)
        } catch {
          if error.shared == nil || error.shared == file.file {
            add(error, in: file.file, bytes)
          } else {
            failures.append((error, file))
          }
        }
      }
      if problems.all.count > before { broken.insert(file.file) }
    }
    // A shared file that is broken by itself has reported its own problems.
    for (failure, file) in failures {
      add(failure, in: file.file, file.bytes)
      if let shared = failure.shared { broken.insert(shared) }
    }
  }

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

  /// The text of a file, with its map and the names that it uses; nil with problems.
  private mutating func prepare(_ file: ConfigurationFiles.File, types: [String]) -> (
    bytes: [UInt8], map: SourceMap, unknown: UnknownNames
  )? {
    guard let bytes = Self.text(of: file, problems) else { return nil }
    do {
      guard let map = try Self.check(bytes, file.name, problems) else { return nil }
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
      return (bytes, map, unknown)
    } catch {
      add(error, in: file.name, bytes)
      return nil
    }
  }

  private func add(_ failure: LuaState.Failure, in file: String, _ bytes: [UInt8]) {
    if let shared = failure.shared {
      if broken.contains(shared) { return }
      let text = sources[shared]?.bytes ?? []
      let (line, message) = SyntaxAdvice.explanation(of: failure, in: text)
      problems.add(SourceLocation(file: shared, line: line), "", message)
      return
    }
    let (line, message) = SyntaxAdvice.explanation(of: failure, in: bytes)
    problems.add(SourceLocation(file: file, line: line), "", message)
  }

  /// The value of a file with the line of each field.
  private mutating func value(of file: ConfigurationFiles.File, _ types: [String]) -> LuaNode? {
    guard let (bytes, map, unknown) = prepare(file, types: types) else { return nil }
    do {
      // Misspelled names are replaced by the intended ones, so that they do not hide other mistakes. The file is
      // refused in any case.
      return try value(
        of: unknown.corrected(bytes), unknown.problems.isEmpty ? map : SourceMap(unknown.corrected(bytes)), file.name,
        unknown, types)
    } catch {
      sources[file.name] = nil
      add(error, in: file.name, bytes)
      return nil
    }
  }

  private func value(
    of bytes: [UInt8], _ map: SourceMap, _ name: String, _ unknown: UnknownNames, _ types: [String]
  ) throws(LuaState.Failure) -> LuaNode? {
    do {
      let state = try LuaState(constructors: types, shared: shared)
      try state.load(map.instrumented, name: name, marks: true)
      return state.tree(file: name, map: map)
    } catch {}
    // The added calls can exceed a limit of Lua (nesting, registers). In that case, the original text decides.
    let state = try LuaState(constructors: types, shared: shared)
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
