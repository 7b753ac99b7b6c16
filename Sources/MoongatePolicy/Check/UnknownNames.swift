import MoongateCore

/// Globals that a file uses and that there are not, found without running it.
///
/// What is wrong with a name is asked of Lua itself, so that `check` says the same as a function that fails.
struct UnknownNames {
  private static let libraries: Set<String> = ["string", "table", "math"]

  private static let usual = Set(EditorGlobals.names)

  /// In the order of the text.
  private(set) var problems: [ConfigurationProblem] = []
  /// Where a name is to be replaced by the one that was meant.
  private var meant: [(range: Range<Int>, name: String)] = []

  /// - Parameter types: the providers whose names are constructors in the file.
  init(_ names: LuaNames, file: String, types: [String] = []) {
    let probes = NameProbes(types: types)
    let known = Self.usual.union(types)
    for global in names.globals {
      guard let first = global.path.first, let probe = Self.probe(global, known), let message = probes.ask(probe) else {
        continue
      }
      problems.append(
        ConfigurationProblem(location: SourceLocation(file: file, line: global.line), path: "", message: message))
      if !known.contains(first), !global.isAssigned,
        let nearest = Suggestion.nearest(to: first, among: EditorGlobals.names + types)
      {
        meant.append((global.range, nearest))
      }
    }
    for call in names.calls {
      guard let probe = Self.probe(call), let message = probes.ask(probe) else { continue }
      problems.append(
        ConfigurationProblem(location: SourceLocation(file: file, line: call.line), path: "", message: message))
    }
  }

  /// The text with names as they were meant.
  func mended(_ bytes: [UInt8]) -> [UInt8] {
    var mended = bytes
    for word in meant.sorted(by: { $0.range.lowerBound > $1.range.lowerBound }) {
      mended.replaceSubrange(word.range, with: word.name.utf8)
    }
    return mended
  }

  /// - Returns: nil where there is nothing to be asked.
  private static func probe(_ global: LuaNames.Global, _ known: Set<String>) -> String? {
    guard let first = global.path.first else { return nil }
    if first == "_ENV" { return first }
    if global.isAssigned { return "\(first) = nil" }
    if !known.contains(first) { return "local _ = \(first)" }
    return libraries.contains(first) && global.path.count > 1 ? "local _ = \(first).\(global.path[1])" : nil
  }

  /// Helpers that refuse a text are as wrong on Monday as at night.
  private static func probe(_ call: LuaNames.Call) -> String? {
    switch (call.function, call.texts.first ?? nil, call.texts.dropFirst().first ?? nil) {
    case ("duration", let text?, _): "local _ = duration(\(text))"
    case ("hour", _, let zone?): "local _ = hour(0, \(zone))"
    case ("cidr", let block?, _): "local _ = cidr(\(block), \"127.0.0.1\")"
    default: nil
    }
  }
}

/// Asks Lua what it thinks of a few words.
private final class NameProbes {
  private let answers = Answers(declared: [])
  private let types: [String]
  private lazy var state = try? LuaState(answers.callbacks, constructors: types)
  private var told: [String: String?] = [:]

  init(types: [String]) { self.types = types }

  /// - Returns: nil where nothing is wrong.
  func ask(_ probe: String) -> String? {
    if probe == "_ENV" { return "`_ENV` is not offered: name the global itself" }
    if let known = told[probe] { return known }
    var message: String?
    do throws(LuaState.Failure) { try state?.load(Array(probe.utf8), name: "probe", marks: false) } catch {
      if error.kind == .error { message = error.message }
    }
    told[probe] = .some(message)
    return message
  }
}
