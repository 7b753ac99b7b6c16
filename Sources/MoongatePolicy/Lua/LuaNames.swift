/// The names that a file uses, found without running it.
///
/// A misspelled name in a rarely executed branch is found when the file is loaded, not when the branch first runs.
///
/// The analysis knows Lua's scopes (Reference Manual, section 3.5), so it distinguishes locals from globals. It follows
/// a function's parameter through locals and calls of local functions. Where it cannot follow a value, it reports
/// nothing.
struct LuaNames: Sendable {
  /// A global variable, with the members that are read of it, such as `string.find`.
  struct Global: Sendable {
    let path: [String]
    /// The range of the first name in the text.
    let range: Range<Int>
    let line: Int
    let isAssigned: Bool
  }

  /// A call of a global function with text arguments: `deny "reason"`, `hour(f.now, "Asia/Kolkata")`.
  struct Call: Sendable {
    let function: String
    /// The arguments as they are written, including quotes; nil for an argument that is not a literal.
    let texts: [String?]
    let line: Int
  }

  /// Members that are read of a variable, such as `f.phone.country`.
  struct Read: Sendable {
    let variable: Int
    let path: [String]
    let line: Int
  }

  /// A function definition in the text.
  struct Body: Sendable {
    let line: Int
    /// The numbers of its parameter variables.
    let parameters: [Int]
    /// Whether the function is the value of a field or an argument of `vary`.
    var isField = false
  }

  /// The value of an argument or a local.
  enum Value: Sendable {
    case chain(variable: Int, path: [String])
    case function(Int)
    /// As it is written, including quotes.
    case text(String)
    case other
  }

  var globals: [Global] = []
  var calls: [Call] = []
  var reads: [Read] = []
  var bodies: [Body] = []
  var values: [Int: Value] = [:]
  var localCalls: [(variable: Int, arguments: [Value])] = []
  /// Variables that are assigned again after their declaration.
  var changing: Set<Int> = []
  /// Variables that are used other than by a call or a member access.
  var passedOn: Set<Int> = []

  /// Attack on the loader: a megabyte of functions that pass their arguments on.
  private static let maxRounds = 100

  /// - Parameter source: text that Lua can parse. Any other text gives meaningless names, but does no harm.
  init(_ source: [UInt8]) {
    var reader = NameReader(source)
    reader.readAll()
    self = reader.names
  }

  /// No names.
  init() {}

  /// The functions that are only called by the name of a local. Code outside the file cannot call them.
  var onlyCalled: Set<Int> {
    var bodies: Set<Int> = []
    for case (let variable, .function(let body)) in values
    where !passedOn.contains(variable) && !changing.contains(variable) { bodies.insert(body) }
    return bodies
  }

  /// The fact paths that each variable may stand for, if all its values derive from the first parameter of `given`.
  /// - Parameter given: the functions that are called from outside.
  /// - Returns: the paths by variable; empty if the analysis takes too many rounds.
  func parts(given: Set<Int>) -> [Int: Set<[String]>] {
    var paths: [Int: Set<[String]>] = [:]
    var unknown = changing
    for number in given { if let first = bodies[number].parameters.first { paths[first] = [[]] } }
    // Each pair is a variable and one of its possible values.
    var sources = values.map { (variable: $0.key, value: $0.value) }
    for call in localCalls {
      guard case .function(let number)? = values[call.variable] else { continue }
      for (index, parameter) in bodies[number].parameters.enumerated() {
        sources.append((parameter, index < call.arguments.count ? call.arguments[index] : .other))
      }
    }
    for case (let variable, .function(let number)) in values
    where passedOn.contains(variable) && !given.contains(number) {
      unknown.formUnion(bodies[number].parameters)
    }
    // Each round adds at least one path, and paths are no longer than the deepest fact.
    var grows = true
    var rounds = 0
    while grows {
      grows = false
      rounds += 1
      if rounds > Self.maxRounds { return [:] }
      for case (let variable, .chain(let from, let path)) in sources {
        for part in (paths[from] ?? []).map({ $0 + path }) where part.count <= 4 {
          if paths[variable, default: []].insert(part).inserted { grows = true }
        }
      }
    }
    repeat {
      grows = false
      rounds += 1
      if rounds > 2 * Self.maxRounds { return [:] }
      for (variable, value) in sources where !unknown.contains(variable) {
        if case .chain(let from, _) = value, paths[from] != nil, !unknown.contains(from) { continue }
        if case .function = value { continue }
        unknown.insert(variable)
        grows = true
      }
    } while grows
    return paths.filter { !unknown.contains($0.key) }
  }
}
