/// The names that a file's text uses, found without running it: a misspelled one in a branch that nobody takes until
/// Friday night is found on Monday.
///
/// It knows Lua's scopes (Reference Manual, section 3.5), so that a local is told from a global, and follows a
/// function's parameter through locals and calls of local functions. Where it cannot follow, it says nothing.
struct LuaNames: Sendable {
  /// A global, with the members that are read of it: `string.find`.
  struct Global: Sendable {
    let path: [String]
    /// Of its first word in the text.
    let range: Range<Int>
    let line: Int
    let isAssigned: Bool
  }

  /// A call of a global with texts for arguments: `deny "reason"`, `hour(f.now, "Asia/Kolkata")`.
  struct Call: Sendable {
    let function: String
    /// As they are written, quotes included; nil where something else stands there.
    let texts: [String?]
    let line: Int
  }

  /// Members that are read of a variable: `f.phone.country`.
  struct Read: Sendable {
    let variable: Int
    let path: [String]
    let line: Int
  }

  /// A function of the text.
  struct Body: Sendable {
    let line: Int
    /// Variables.
    let parameters: [Int]
    /// Whether it stands where a field's value, or the function of `vary`, is due.
    var isField = false
  }

  /// What an argument, or the value of a local, is.
  enum Value: Sendable {
    case chain(variable: Int, path: [String])
    case function(Int)
    /// As it is written.
    case text(String)
    case other
  }

  var globals: [Global] = []
  var calls: [Call] = []
  var reads: [Read] = []
  var bodies: [Body] = []
  var values: [Int: Value] = [:]
  var localCalls: [(variable: Int, arguments: [Value])] = []
  /// Variables whose value is not only what they were declared with.
  var changing: Set<Int> = []
  /// Variables that are named other than to be called or read of.
  var passedOn: Set<Int> = []

  /// Attack on the loader: a megabyte of functions that hand on what they are given.
  private static let mostRounds = 100

  /// - Parameter source: text that Lua can parse; of any other it is nonsense, though made without harm.
  init(_ source: [UInt8]) {
    var reader = NameReader(source)
    reader.readAll()
    self = reader.names
  }

  /// Of nothing.
  init() {}

  /// The bodies that are called by the name of a local and are never anything else's value: nobody outside can call
  /// them.
  var onlyCalled: Set<Int> {
    var bodies: Set<Int> = []
    for case (let variable, .function(let body)) in values
    where !passedOn.contains(variable) && !changing.contains(variable) { bodies.insert(body) }
    return bodies
  }

  /// What each variable holds a part of, where all that it ever holds is parts of what the bodies are given first.
  /// - Parameter given: the bodies that are called from outside.
  /// - Returns: by variable, the paths that it may stand for; none at all where that takes long to tell.
  func parts(given: Set<Int>) -> [Int: Set<[String]>] {
    var paths: [Int: Set<[String]>] = [:]
    var unknown = changing
    for number in given { if let first = bodies[number].parameters.first { paths[first] = [[]] } }
    // Each is a source of what the variable holds.
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
    // Each round adds to one of them at least, and paths cannot grow beyond what facts have.
    var grows = true
    var rounds = 0
    while grows {
      grows = false
      rounds += 1
      if rounds > Self.mostRounds { return [:] }
      for case (let variable, .chain(let from, let path)) in sources {
        for part in (paths[from] ?? []).map({ $0 + path }) where part.count <= 4 {
          if paths[variable, default: []].insert(part).inserted { grows = true }
        }
      }
    }
    repeat {
      grows = false
      rounds += 1
      if rounds > 2 * Self.mostRounds { return [:] }
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
