import MoongateCore

/// Finds unknown globals of a file without running it.
///
/// Lua itself evaluates each name, so that `check` reports the same message as a failing function.
struct UnknownNames {
  private static let libraries: Set<String> = ["string", "table", "math"]

  private static let usual = Set(LuaGlobals.names)

  /// In the order of the text.
  private(set) var problems: [ConfigurationProblem] = []
  /// The replacements of misspelled names.
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
        let nearest = Suggestion.nearest(to: first, among: LuaGlobals.names + types)
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

  /// The text with misspelled names replaced.
  func corrected(_ bytes: [UInt8]) -> [UInt8] {
    var corrected = bytes
    for word in meant.sorted(by: { $0.range.lowerBound > $1.range.lowerBound }) {
      corrected.replaceSubrange(word.range, with: word.name.utf8)
    }
    return corrected
  }

  /// - Returns: nil if there is nothing to check.
  private static func probe(_ global: LuaNames.Global, _ known: Set<String>) -> String? {
    guard let first = global.path.first else { return nil }
    if first == "_ENV" { return first }
    if global.isAssigned { return "\(first) = nil" }
    if !known.contains(first) { return "local _ = \(first)" }
    return libraries.contains(first) && global.path.count > 1 ? "local _ = \(first).\(global.path[1])" : nil
  }

  /// Calls of helpers with constant arguments, which fail the same way at any time.
  private static func probe(_ call: LuaNames.Call) -> String? {
    switch (call.function, call.texts.first ?? nil, call.texts.dropFirst().first ?? nil) {
    case ("duration", let text?, _): "local _ = duration(\(text))"
    case ("hour", _, let zone?): "local _ = hour(0, \(zone))"
    case ("cidr", let block?, _): "local _ = cidr(\(block), \"127.0.0.1\")"
    default: nil
    }
  }
}

/// Evaluates single expressions in Lua.
private final class NameProbes {
  private let answers = LuaCallbacks(declared: [])
  private let types: [String]
  private lazy var state = try? LuaState(answers.callbacks, constructors: types)
  private var messages: [String: String?] = [:]

  init(types: [String]) { self.types = types }

  /// - Returns: the error message; nil if there is no error.
  func ask(_ probe: String) -> String? {
    if probe == "_ENV" { return "`_ENV` is not offered: name the global itself" }
    if let known = messages[probe] { return known }
    var message: String?
    do throws(LuaState.Failure) { try state?.load(Array(probe.utf8), name: "probe", marks: false) } catch {
      if error.kind == .error { message = error.message }
    }
    messages[probe] = .some(message)
    return message
  }
}
