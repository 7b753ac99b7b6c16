import CLua
import MoongateCore
import MoongateSDK

/// Facts that functions read and that there are not, and answers that they cannot give, found without calling them: in
/// a branch that nobody takes for a month, too.
struct UnknownFacts {
  let functions: FunctionTable
  let catalog: ProviderCatalog
  /// Those of accounts.lua; nil while it could not be read.
  let groups: Set<GroupName>?
  let claims: Set<String>
  let problems: Problems

  /// - Parameter names: of each file.
  func check(_ names: [String: LuaNames]) {
    let byFile = Dictionary(grouping: functions.entries.values) { $0.function.file }
    for (file, entries) in byFile.sorted(by: { $0.key < $1.key }) {
      guard let names = names[file] else { continue }
      checkAnswers(names, file)
      // accounts.lua has functions of two kinds.
      for (audience, entries) in Dictionary(grouping: entries, by: \.audience) {
        let parts = names.parts(given: Self.given(names, entries.map(\.function)))
        var reads: [(path: [String], line: Int)] = []
        for read in names.reads {
          for part in parts[read.variable] ?? [] { reads.append((part + read.path, read.line)) }
        }
        check(reads, audience, file)
      }
    }
  }

  /// The bodies of the text that are the functions of the table: by their lines, and where several stand on one, those
  /// that are the value of a field.
  private static func given(_ names: LuaNames, _ functions: [LuaFunction]) -> Set<Int> {
    var given: Set<Int> = []
    let onlyCalled = names.onlyCalled
    let byLine = Dictionary(grouping: names.bodies.indices.filter { !onlyCalled.contains($0) }) {
      names.bodies[$0].line
    }
    for (line, here) in Dictionary(grouping: Set(functions), by: \.line) {
      let bodies = byLine[line] ?? []
      let fields = bodies.filter { names.bodies[$0].isField }
      if bodies.count == 1 || bodies.count == here.count {
        given.formUnion(bodies)
      } else if fields.count == here.count {
        given.formUnion(fields)
      }
    }
    return given
  }

  private func checkAnswers(_ names: LuaNames, _ file: String) {
    for call in names.calls {
      guard let text = call.texts.first.flatMap(\.self).flatMap(Self.plain) else { continue }
      let location = SourceLocation(file: file, line: call.line)
      switch call.function {
      case "deny":
        if let wrong = LuaEvaluator.problem(ofReason: text) {
          problems.add(location, "", wrong + Self.spelling(ofReason: text))
        }
      case "require_also":
        guard let configured = catalog.configured,
          ProviderName(rawValue: text).map({ !configured.contains($0) }) ?? true
        else { continue }
        problems.add(location, "", LuaEvaluator.unconfigured(text, among: configured))
      default: continue
      }
    }
  }

  /// How a reason could be spelled; empty where that cannot be told.
  private static func spelling(ofReason text: String) -> String {
    let name = text.lowercased().split { !$0.isASCII || !($0.isLetter || $0.isNumber) }.joined(separator: "_")
    return name != text && LuaEvaluator.problem(ofReason: name) == nil ? "; write `\(name)`" : ""
  }

  /// A text without its quotes; nil where more would have to be undone.
  static func plain(_ written: String) -> String? {
    guard let quote = written.first, quote == "\"" || quote == "'", written.count > 1, !written.contains("\\") else {
      return nil
    }
    return String(written.dropFirst().dropLast())
  }

  private func check(_ reads: [(path: [String], line: Int)], _ audience: FunctionTable.Audience, _ file: String) {
    // Limits that could not be read are missing among the facts.
    let isWhole = !problems.all.contains { $0.location.file == file }
    let reads = reads.filter { isWhole || $0.path.first != "limits" }
    let sets = FactSlot.allCases.filter { $0.isSet && $0.isTold(to: audience) }.map {
      $0.path.split(separator: ".").map(String.init)
    }
    let distinct = Set(reads.map(\.path)).sorted { $0.lexicographicallyPrecedes($1) }
    let wrong = Self.ask(distinct, audience, catalog.facts)
    for read in reads {
      let location = SourceLocation(file: file, line: read.line)
      if let message = wrong[read.path] { problems.add(location, "", unconfigured(read.path) ?? message) }
      // Absent members of a set are nil, and one that there never was is always absent.
      if let set = sets.first(where: { read.path.starts(with: $0) }), read.path.count > set.count,
        let wrong = unknownMember(read.path[set.count], of: set.joined(separator: "."))
      {
        problems.add(location, "", "`f.\(read.path.joined(separator: "."))`: \(wrong)")
      }
    }
  }

  /// What is wrong with the name of a set's member; nil where nothing is.
  private func unknownMember(_ name: String, of set: String) -> String? {
    switch set {
    case FactSlot.sessionGroups.path:
      guard let groups, !groups.contains(where: { $0.rawValue == name }) else { return nil }
      return EntitlementReader.undefined(name, among: groups)
    case FactSlot.sessionClaims.path:
      guard groups != nil, !claims.contains(name) else { return nil }
      return "accounts.lua defines no claim `\(name)`\(Suggestion.phrase(for: name, among: claims.sorted()))"
    default:
      return catalog.known(name) == nil
        ? "no provider is called `\(name)`\(Suggestion.phrase(for: name, among: catalog.names))" : nil
    }
  }

  /// What is wrong with a path of a provider that there is, and whose facts nobody can read here.
  private func unconfigured(_ path: [String]) -> String? {
    guard path.count > 1, let name = named(by: path) else { return nil }
    let read = "`f.\(path.joined(separator: "."))`"
    guard catalog.isConfigured(name) else {
      return "\(read): gateway.lua does not configure `\(name)`, so it tells nothing"
    }
    return catalog.descriptor(name.rawValue)?.facts.isEmpty ?? false ? "\(read): `\(name)` declares no facts" : nil
  }

  /// The provider whose fact the path asks for: `providers.NAME.…`, or `NAME.…`.
  private func named(by path: [String]) -> ProviderName? {
    if path[0] == DeclaredFact.providers { return catalog.known(path[1]) }
    return DeclaredFact.reservedGroups.contains(path[0]) ? nil : catalog.known(path[0])
  }

  /// What is wrong with each path, as a function that reads it is told.
  private static func ask(_ paths: [[String]], _ audience: FunctionTable.Audience, _ declared: [DeclaredFact])
    -> [[String]: String]
  {
    guard !paths.isEmpty, let state = try? LuaState(),
      let facts = try? LuaEvaluator.makeFacts(audience, declared, in: state)
    else { return [:] }
    var wrong: [[String]: String] = [:]
    for path in paths {
      let text = "return function(f) local _ = f.\(path.joined(separator: ".")) end"
      guard (try? state.load(Array(text.utf8), name: "probe", marks: false)) != nil, let function = state.functions.last
      else { continue }
      var budget = LuaState.loading
      var value = clua_value()
      guard clua_call(state.pointer, function.number, facts, &budget, &value) == CLUA_ERROR else { continue }
      let message = state.failure(CLUA_ERROR).message
      if message.hasPrefix("unknown fact") { wrong[path] = message }
    }
    return wrong
  }
}
