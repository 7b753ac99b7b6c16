// Parses expressions (Reference Manual, section 3.4) and what is known of their values.

extension NameReader {
  mutating func readList() -> [LuaNames.Value] {
    var values = [readExpression()]
    while takes(",") { values.append(readExpression()) }
    return values
  }

  mutating func readExpression() -> LuaNames.Value {
    guard depth < Self.deepest else {
      isTooDeep = true
      return .other
    }
    depth += 1
    defer { depth -= 1 }
    var value = LuaNames.Value.other
    var operands = 0
    repeat {
      var isPlain = true
      while let word = word(), isUnary(word) {
        at += 1
        isPlain = false
      }
      let operand = readOperand()
      operands += 1
      value = operands == 1 && isPlain ? operand : .other
    } while takesOperator()
    return value
  }

  func isUnary(_ word: Word) -> Bool {
    word.kind == .keyword && word.text == "not" || word.kind == .sign && ["-", "#", "~"].contains(word.text)
  }

  mutating func takesOperator() -> Bool {
    guard let word = word() else { return false }
    if word.kind == .keyword, word.text == "and" || word.text == "or" {
      at += 1
      return true
    }
    let isOperator = { (word: Word) in
      word.kind == .sign
        && ["+", "-", "*", "/", "%", "^", "&", "~", "|", "<", ">", "<=", ">=", "~=", "==", "..", "."].contains(
          word.text)
    }
    guard isOperator(word) else { return false }
    at += 1
    // The tokenizer splits `//`, `<<` and `>>` in two.
    if let next = self.word(), next.text == word.text, ["/", "<", ">"].contains(word.text) { at += 1 }
    return true
  }

  mutating func readOperand() -> LuaNames.Value {
    guard let word = word() else { return .other }
    switch word.kind {
    case .text:
      at += 1
      return .text(word.text)
    case .number:
      at += 1
      return .other
    case .name: return readSuffixes(of: takeName())
    case .keyword:
      guard word.text == "function" else {
        if ["nil", "true", "false"].contains(word.text) { at += 1 }
        return .other
      }
      at += 1
      return .function(readFunction())
    case .sign:
      switch word.text {
      case "{":
        readTable()
        return .other
      case "(":
        at += 1
        _ = readExpression()
        _ = takes(")")
        return readSuffixes(of: nil)
      default:
        if word.text == "..." { at += 1 }
        return .other
      }
    }
  }

  /// The members, calls and indexes after a name or a bracket.
  mutating func readSuffixes(of name: Word?) -> LuaNames.Value {
    var path: [String] = []
    while name != nil, sees("."), let member = word(1), member.kind == .name {
      path.append(member.text)
      at += 2
    }
    if let name, path.isEmpty, let arguments = readArguments() {
      call(name, arguments)
      return readMore()
    }
    let isWhole = !(sees("[") || sees(":") || sees("(") || sees("{") || word()?.kind == .text)
    if let name { use(name, path: path, isAssigned: false) }
    guard isWhole, let name else { return readMore() }
    guard let variable = variable(name.text) else { return .other }
    if path.isEmpty { names.passedOn.insert(variable) }
    return .chain(variable: variable, path: path)
  }

  mutating func readMore() -> LuaNames.Value {
    while true {
      if sees("."), word(1)?.kind == .name {
        at += 2
      } else if takes("[") {
        _ = readExpression()
        _ = takes("]")
      } else if takes(":") {
        _ = takeName()
        _ = readArguments()
      } else if readArguments() == nil {
        return .other
      }
    }
  }

  /// - Returns: nil if no call follows.
  mutating func readArguments() -> [LuaNames.Value]? {
    if let word = word(), word.kind == .text {
      at += 1
      return [.text(word.text)]
    }
    if sees("{") {
      readTable()
      return [.other]
    }
    guard takes("(") else { return nil }
    if takes(")") { return [] }
    let arguments = readList()
    _ = takes(")")
    return arguments
  }

  mutating func readTable() {
    _ = takes("{")
    while let word = word(), !sees("}") {
      let before = at
      var isField = false
      if word.kind == .name, self.word(1)?.text == "=" {
        at += 2
        isField = true
      } else if takes("[") {
        _ = readExpression()
        _ = takes("]")
        _ = takes("=")
      }
      let value = readExpression()
      if isField { note(field: value) }
      if !takes(",") { _ = takes(";") }
      if at == before { at += 1 }
    }
    _ = takes("}")
  }

  /// - Returns: the number of the function.
  mutating func readFunction(hasSelf: Bool = false) -> Int {
    let line = word()?.line ?? 0
    let number = names.bodies.count
    names.bodies.append(LuaNames.Body(line: line, parameters: []))
    scoped { reader in
      var parameters = hasSelf ? [reader.declare("self")] : []
      _ = reader.takes("(")
      while let name = reader.takeName() {
        parameters.append(reader.declare(name))
        _ = reader.takes(",")
      }
      _ = reader.takes("...")
      _ = reader.takes(")")
      reader.names.bodies[number] = LuaNames.Body(line: line, parameters: parameters)
      reader.readBlock()
    }
    _ = takes("end")
    return number
  }
}
