/// Finds the table field that lacks a comma. Lua reports the line of the following field instead.
enum MissingComma {
  /// - Parameter failure: the parser's error.
  /// - Returns: the line on which the field ends; nil for any other error.
  static func line(in text: [UInt8], before failure: LuaState.Failure) -> Int? {
    guard failure.message.hasPrefix("'}' expected") else { return nil }
    var tokens = LuaTokens(text)
    // The open brackets and blocks; true for tables.
    var isTable: [Bool] = []
    var last: LuaToken?
    var current = tokens.next()
    while let token = current {
      let next = tokens.next()
      if token.line == failure.line, isTable.last == true, let last, endsValue(last), beginsField(token, next) {
        return last.line
      }
      switch token.kind {
      case .symbol(.openBrace): isTable.append(true)
      case .opener: isTable.append(false)
      case .symbol(.closeBrace), .closer: _ = isTable.popLast()
      default: break
      }
      (last, current) = (token, next)
    }
    return nil
  }

  private static func endsValue(_ token: LuaToken) -> Bool {
    switch token.kind {
    case .number, .closer: true
    case .keyword(let word): ["true", "false", "nil"].contains(word)
    default: token.endsExpression
    }
  }

  /// Whether a field or a list item begins at this token.
  private static func beginsField(_ token: LuaToken, _ next: LuaToken?) -> Bool {
    switch token.kind {
    case .name, .symbol(.openBrace), .symbol(.openBracket), .string, .number: true
    case .opener(let word): word == "function"
    case .keyword(let word): ["true", "false", "nil"].contains(word) && next != nil
    default: false
    }
  }
}
