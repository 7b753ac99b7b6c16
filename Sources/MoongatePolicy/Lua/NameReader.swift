/// A parser for Lua's grammar (Reference Manual, section 9) that collects names.
struct NameReader {
  struct Word {
    enum Kind { case name, keyword, text, number, sign }
    let kind: Kind
    let text: String
    let range: Range<Int>
    let line: Int
  }

  /// Lua itself refuses deeper nesting.
  static let deepest = 500
  private static let blockEnds: Set<String> = ["end", "else", "elseif", "until"]

  var names = LuaNames()
  var words: [Word] = []
  var at = 0
  var depth = 0
  var isTooDeep = false
  private var variables = 0
  private var scopes: [[String: Int]] = [[:]]

  init(_ source: [UInt8]) {
    var tokens = LuaTokens(source)
    while let token = tokens.next() {
      let kind: Word.Kind =
        switch token.kind {
        case .name: .name
        case .opener, .closer, .keyword: .keyword
        case .string: .text
        case .number: .number
        case .symbol: .sign
        }
      let text = String(decoding: source[token.range], as: UTF8.self)
      // The tokenizer splits `..` and `...` into dots.
      if text == ".", let last = words.last, last.range.upperBound == token.range.lowerBound,
        last.text == "." || last.text == ".."
      {
        words[words.count - 1] = Word(
          kind: .sign, text: last.text + ".", range: last.range.lowerBound..<token.range.upperBound, line: last.line)
      } else {
        words.append(Word(kind: kind, text: text, range: token.range, line: token.line))
      }
    }
  }

  func word(_ offset: Int = 0) -> Word? { at + offset < words.count ? words[at + offset] : nil }
  /// Whether the next word is this keyword or sign.
  func sees(_ text: String) -> Bool { word().map { $0.text == text && $0.kind != .name && $0.kind != .text } ?? false }
  mutating func takes(_ text: String) -> Bool {
    guard sees(text) else { return false }
    at += 1
    return true
  }
  mutating func takeName() -> Word? {
    guard let word = word(), word.kind == .name else { return nil }
    at += 1
    return word
  }

  mutating func readAll() {
    while at < words.count {
      readBlock()
      at += 1
    }
    // Skipped text may have declared names that are used elsewhere.
    if isTooDeep { names = LuaNames() }
  }

  // MARK: scopes

  mutating func declare(_ name: Word) -> Int {
    // All globals are members of `_ENV`. After it is declared again, globals cannot be resolved.
    if name.text == "_ENV" { use(name, path: [], isAssigned: true) }
    return declare(name.text)
  }

  mutating func declare(_ name: String) -> Int {
    variables += 1
    scopes[scopes.count - 1][name] = variables
    return variables
  }

  func variable(_ name: String) -> Int? { scopes.reversed().lazy.compactMap { $0[name] }.first }

  mutating func scoped(_ body: (inout NameReader) -> Void) {
    scopes.append([:])
    depth += 1
    body(&self)
    depth -= 1
    scopes.removeLast()
  }

  // MARK: statements

  mutating func readBlock() {
    while let word = word(), !(word.kind == .keyword && Self.blockEnds.contains(word.text)) {
      let before = at
      if depth < Self.deepest { readStatement(word) } else { isTooDeep = true }
      if at == before { at += 1 }
    }
  }

  mutating func readBody(of opening: String) {
    _ = takes(opening)
    scoped { $0.readBlock() }
  }

  mutating func readStatement(_ word: Word) {
    guard word.kind == .keyword else { return readExpressionStatement() }
    at += 1
    switch word.text {
    case "if":
      repeat {
        _ = readExpression()
        readBody(of: "then")
      } while takes("elseif")
      if sees("else") { readBody(of: "else") }
      _ = takes("end")
    case "while":
      _ = readExpression()
      readBody(of: "do")
      _ = takes("end")
    case "do":
      scoped { $0.readBlock() }
      _ = takes("end")
    case "for": readFor()
    case "repeat":
      scoped { reader in
        reader.readBlock()
        if reader.takes("until") { _ = reader.readExpression() }
      }
    case "function": readNamedFunction()
    case "local": readLocal()
    case "return":
      if let next = self.word(), !(next.kind == .keyword && Self.blockEnds.contains(next.text)), next.text != ";" {
        _ = readList()
      }
    case "goto": at += 1
    default: break
    }
  }

  mutating func readFor() {
    var counted: [Word] = []
    repeat { if let name = takeName() { counted.append(name) } } while takes(",")
    if !takes("=") { _ = takes("in") }
    _ = readList()
    scoped { reader in
      for name in counted { reader.names.changing.insert(reader.declare(name)) }
      reader.readBody(of: "do")
    }
    _ = takes("end")
  }

  mutating func readNamedFunction() {
    guard let name = takeName() else { return }
    let isMember = sees(".") || sees(":")
    var isMethod = false
    while takes(".") || sees(":") {
      if takes(":") { isMethod = true }
      _ = takeName()
    }
    use(name, path: [], isAssigned: !isMember)
    _ = readFunction(hasSelf: isMethod)
  }

  mutating func readLocal() {
    if takes("function") {
      guard let name = takeName() else { return }
      let variable = declare(name)
      names.values[variable] = .function(readFunction())
      return
    }
    var declared: [Word] = []
    repeat {
      if let name = takeName() { declared.append(name) }
      if takes("<") {
        _ = takeName()
        _ = takes(">")
      }
    } while takes(",")
    // A local is in scope only after its own initial value.
    let values = takes("=") ? readList() : []
    for (index, name) in declared.enumerated() {
      let variable = declare(name)
      names.values[variable] = index < values.count ? values[index] : .other
    }
  }

  /// A call or an assignment.
  mutating func readExpressionStatement() {
    if takes(";") { return }
    if takes("::") {
      _ = takeName()
      _ = takes("::")
      return
    }
    while true {
      let first = word()
      let isBare = first?.kind == .name && (word(1).map { $0.text == "=" || $0.text == "," } ?? false)
      if isBare, let name = takeName() { use(name, path: [], isAssigned: true) } else { _ = readOperand() }
      guard takes(",") else { break }
    }
    if takes("=") { _ = readList() }
  }

  // MARK: results

  mutating func use(_ name: Word, path: [String], isAssigned: Bool) {
    guard let variable = variable(name.text) else {
      names.globals.append(
        LuaNames.Global(path: [name.text] + path, range: name.range, line: name.line, isAssigned: isAssigned))
      return
    }
    if isAssigned { names.changing.insert(variable) }
    if !path.isEmpty { names.reads.append(LuaNames.Read(variable: variable, path: path, line: name.line)) }
  }

  mutating func note(field value: LuaNames.Value) {
    if case .function(let number) = value { names.bodies[number].isField = true }
  }

  mutating func call(_ name: Word, _ arguments: [LuaNames.Value]) {
    if let variable = variable(name.text) {
      names.localCalls.append((variable, arguments))
      return
    }
    use(name, path: [], isAssigned: false)
    if name.text == "vary" { arguments.forEach { note(field: $0) } }
    let texts = arguments.map { argument -> String? in
      guard case .text(let text) = argument else { return nil }
      return text
    }
    if texts.contains(where: { $0 != nil }) {
      names.calls.append(LuaNames.Call(function: name.text, texts: texts, line: name.line))
    }
  }
}
