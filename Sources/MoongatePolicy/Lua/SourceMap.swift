/// The lines of the fields of a file's tables.
///
/// A running Lua program does not know which line created a table. Before a file is run, each table constructor `{…}`
/// in its text is therefore wrapped in a call that records the constructor's number with the table. Together with the
/// fields of each constructor listed here, every value has an exact line, even if the table was passed around in
/// between. The instrumented text has the same lines, so errors keep theirs.
struct SourceMap: Sendable {
  /// A table constructor `{…}` in the text.
  struct Constructor: Sendable {
    /// The line of the opening brace.
    let line: Int
    /// The lines of `name = …` and `["name"] = …`.
    var named: [String: Int] = [:]
    /// The lines of `[7] = …`.
    var numbered: [Int64: Int] = [:]
    /// The lines of the items without a key, in order.
    var items: [Int] = []

    func line(of name: String) -> Int { named[name] ?? line }
    func line(ofItem number: Int64) -> Int {
      if let line = numbered[number] { return line }
      return number >= 1 && number <= items.count ? items[Int(number) - 1] : line
    }
  }

  /// A name that a constructor sets twice. Lua silently keeps only the last value.
  struct Repeat: Sendable {
    let name: String
    let first: Int
    let line: Int
  }

  /// By constructor number.
  private(set) var constructors: [Constructor] = []
  private(set) var repeats: [Repeat] = []
  /// The text with the added calls.
  private(set) var instrumented: [UInt8] = []
  /// The number of labels `::name::`. Lua's parser compares each label with all others of its function.
  private(set) var labels = 0

  /// - Parameter source: text that Lua can parse. Any other text gives a meaningless map, but does no harm.
  init(_ source: [UInt8]) {
    var tokens = LuaTokens(source)
    var marker = Marker(source: source)
    while let token = tokens.next() {
      if token.kind == .symbol(.label) { labels += 1 }
      marker.take(token)
    }
    constructors = marker.constructors
    repeats = marker.repeats
    instrumented = marker.finish()
  }
}

/// Adds the calls and lists the fields, token by token.
private struct Marker {
  private enum Frame {
    /// A table constructor. `isArgument`: as in `f{…}`, where the added call needs parentheses.
    case constructor(Int, isArgument: Bool)
    /// The brackets of a key in a constructor.
    case key(Int)
    case other
  }

  private enum FieldState {
    /// Before a field. The next token decides its kind.
    case start
    /// After a name at the start of a field. `=` makes it a key.
    case name(String, line: Int)
    /// Inside a field, up to the next separator.
    case inside
  }

  private let source: [UInt8]
  private var output: [UInt8] = []
  private var copied = 0
  private var frames: [Frame] = []
  private var states: [FieldState] = []
  private var keyTokens: [LuaToken] = []
  private var previous: LuaToken?
  private(set) var constructors: [SourceMap.Constructor] = []
  private(set) var repeats: [SourceMap.Repeat] = []

  init(source: [UInt8]) { self.source = source }

  mutating func take(_ token: LuaToken) {
    if case .key? = frames.last, token.kind != .symbol(.closeBracket) { keyTokens.append(token) }
    beginField(with: token)
    switch token.kind {
    case .symbol(.openBrace): open(token)
    case .symbol(.closeBrace): close(token)
    case .symbol(.openBracket):
      if case .constructor(let number, _)? = frames.last, case .start? = states.last {
        frames.append(.key(number))
        keyTokens = []
      } else {
        frames.append(.other)
      }
    case .symbol(.openParen), .opener: frames.append(.other)
    case .symbol(.closeParen), .closer: popOther()
    case .symbol(.closeBracket):
      if case .key(let number)? = frames.last {
        frames.removeLast()
        endKey(of: number, at: token.line)
      } else {
        popOther()
      }
    case .symbol(.separator):
      if case .constructor? = frames.last { setState(.start) }
    default: break
    }
    previous = token
  }

  mutating func finish() -> [UInt8] {
    output += source[copied...]
    copied = source.count
    return output
  }

  private mutating func popOther() { if case .other? = frames.last { frames.removeLast() } }

  private mutating func setState(_ state: FieldState) { if !states.isEmpty { states[states.count - 1] = state } }

  private mutating func insert(_ text: String, at offset: Int) {
    guard offset >= copied else { return }
    output += source[copied..<offset]
    output += Array(text.utf8)
    copied = offset
  }

  private mutating func open(_ token: LuaToken) {
    let isArgument = previous?.endsExpression ?? false
    let number = constructors.count
    constructors.append(SourceMap.Constructor(line: token.line))
    insert((isArgument ? "(" : "") + "_moongate_at(\(number),", at: token.range.lowerBound)
    frames.append(.constructor(number, isArgument: isArgument))
    states.append(.start)
  }

  private mutating func close(_ token: LuaToken) {
    guard case .constructor(_, let isArgument)? = frames.last else { return }
    frames.removeLast()
    states.removeLast()
    insert(isArgument ? "}))" : "})", at: token.range.lowerBound)
    copied = token.range.upperBound
  }

  /// Determines the kind of the innermost constructor's current field from its first tokens.
  private mutating func beginField(with token: LuaToken) {
    guard case .constructor(let number, _)? = frames.last, let state = states.last else { return }
    switch state {
    case .start:
      switch token.kind {
      case .symbol(.closeBrace), .symbol(.separator), .symbol(.openBracket): return
      case .name(let name): setState(.name(name, line: token.line))
      default: addItem(to: number, at: token.line)
      }
    case .name(let name, let line):
      if token.kind == .symbol(.assign) {
        note(name, in: number, at: line)
        setState(.inside)
      } else {
        addItem(to: number, at: line)
      }
    case .inside: return
    }
  }

  private mutating func note(_ name: String, in number: Int, at line: Int) {
    if let first = constructors[number].named.updateValue(line, forKey: name) {
      repeats.append(SourceMap.Repeat(name: name, first: first, line: line))
    }
  }

  private mutating func addItem(to number: Int, at line: Int) {
    constructors[number].items.append(line)
    setState(.inside)
  }

  private mutating func endKey(of number: Int, at line: Int) {
    setState(.inside)
    guard keyTokens.count == 1, let key = keyTokens.first else { return }
    switch key.kind {
    case .string(let text): note(text, in: number, at: key.line)
    case .number(let value?): constructors[number].numbered[value] = key.line
    default: return
    }
  }
}
