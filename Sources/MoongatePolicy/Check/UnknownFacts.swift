import CLua
import MoongateCore
import MoongateSDK

/// Finds unknown facts and invalid answers in functions without calling them, so that mistakes in rare branches are
/// found as well.
struct UnknownFacts {
  let functions: FunctionTable
  let catalog: ProviderCatalog
  /// The groups of accounts.lua; nil if it could not be read.
  let groups: Set<GroupName>?
  let claims: Set<String>
  /// Nil if gateway.lua could not be read.
  let gateway: GatewaySettings?
  let problems: Problems

  /// - Parameter names: the names that each file uses.
  func check(_ names: [String: LuaNames]) {
    let byFile = Dictionary(grouping: functions.entries.values) { $0.function.source }
    for (file, names) in names.sorted(by: { $0.key < $1.key })
    where file.hasPrefix(SharedFile.folder + "/") && byFile[file] == nil { checkAnswers(names, file) }
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

  /// The bodies in the text that are functions of the table, by their lines. If several stand on one line, those that
  /// are the value of a field.
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
        if let wrong = DenyReason.problem(of: text) {
          problems.add(location, "", wrong + Self.spelling(ofReason: text))
        }
      case "require_also" where file == "accounts.lua":
        problems.add(location, "", "accounts.lua cannot require a step by require_also: add it to sign_in")
      case "require_also":
        guard let configured = catalog.configured,
          ProviderName(rawValue: text).map({ !configured.contains($0) }) ?? true
        else { continue }
        problems.add(location, "", LuaEvaluator.unconfigured(text, among: configured))
      default: continue
      }
    }
  }

  /// Advice for the spelling of a reason; empty if none exists.
  private static func spelling(ofReason text: String) -> String {
    let name = text.lowercased().split { !$0.isASCII || !($0.isLetter || $0.isNumber) }.joined(separator: "_")
    return name != text && DenyReason.problem(of: name) == nil ? "; write `\(name)`" : ""
  }

  /// A text without its quotes; nil if it has escapes.
  static func plain(_ written: String) -> String? {
    guard let quote = written.first, quote == "\"" || quote == "'", written.count > 1, !written.contains("\\") else {
      return nil
    }
    return String(written.dropFirst().dropLast())
  }

  private func check(_ reads: [(path: [String], line: Int)], _ audience: FunctionTable.Audience, _ file: String) {
    guard audience != .identity else { return checkClaims(reads, file) }
    // The facts of limits are incomplete if the limits could not be read.
    let isWhole = !problems.all.contains { $0.location.file == file }
    let reads = reads.filter { isWhole || $0.path.first != "limits" }
    let sets = FactSlot.allCases.filter { $0.isSet && $0.isAvailable(to: audience) }.map {
      $0.path.split(separator: ".").map(String.init)
    }
    let distinct = Set(reads.map(\.path)).sorted { $0.lexicographicallyPrecedes($1) }
    let wrong = Self.ask(distinct, audience, catalog.facts)
    for read in reads {
      let location = SourceLocation(file: file, line: read.line)
      if let message = wrong[read.path] { problems.add(location, "", unconfigured(read.path) ?? message) }
      if let gateway, let missing = GeoChecks.missing(for: read.path, in: gateway.geo) {
        problems.add(
          location, "", "`f.\(read.path.joined(separator: "."))` is always nil: gateway.lua has no \(missing)")
      }
      // Absent members of a set are nil, so a misspelled member would always be absent.
      if let set = sets.first(where: { read.path.starts(with: $0) }), read.path.count > set.count,
        let wrong = unknownMember(read.path[set.count], of: set.joined(separator: "."))
      {
        problems.add(location, "", "`f.\(read.path.joined(separator: "."))`: \(wrong)")
      }
    }
  }

  /// `identity` receives only what another site says, which can have any name.
  private func checkClaims(_ reads: [(path: [String], line: Int)], _ file: String) {
    for read in reads where read.path.first != "claims" {
      problems.add(
        SourceLocation(file: file, line: read.line), "",
        "unknown fact `f.\(read.path.joined(separator: "."))`; `identity` receives `f.claims` only")
    }
  }

  /// The problem with the name of a set's member; nil if it is valid.
  private func unknownMember(_ name: String, of set: String) -> String? {
    switch set {
    case FactSlot.sessionGroups.path, FactSlot.accountGroups.path:
      guard let groups, !groups.contains(where: { $0.rawValue == name }) else { return nil }
      return EntitlementReader.undefined(name, among: groups)
    case FactSlot.sessionClaims.path:
      guard groups != nil, !claims.contains(name) else { return nil }
      return "accounts.lua does not define the claim `\(name)`\(Suggestion.phrase(for: name, among: claims.sorted()))"
    default:
      return catalog.known(name) == nil
        ? "unknown provider `\(name)`\(Suggestion.phrase(for: name, among: catalog.names))" : nil
    }
  }

  /// The problem with a path of an existing provider whose facts are not available here.
  private func unconfigured(_ path: [String]) -> String? {
    guard path.count > 1, let name = named(by: path) else { return nil }
    let read = "`f.\(path.joined(separator: "."))`"
    guard catalog.isConfigured(name) else {
      return "\(read): gateway.lua does not configure `\(name)`, so it reports no facts"
    }
    return catalog.descriptor(name.rawValue)?.facts.isEmpty ?? false ? "\(read): `\(name)` declares no facts" : nil
  }

  /// The provider whose fact the path names: `providers.NAME.…`, or `NAME.…`.
  private func named(by path: [String]) -> ProviderName? {
    if path[0] == DeclaredFact.providers { return catalog.known(path[1]) }
    return DeclaredFact.reservedGroups.contains(path[0]) ? nil : catalog.known(path[0])
  }

  /// The problem with each path, as a function that reads it would get it.
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
