/// Advice for errors of Lua's parser, with the line where the mistake begins.
enum SyntaxAdvice {
  /// - Parameter failure: the parser's error.
  static func explanation(of failure: LuaState.Failure, in text: [UInt8]) -> (line: Int, message: String) {
    let lua = failure.message
    if let line = MissingComma.line(in: text, before: failure) {
      return (line, "is a comma missing after this field? (\(lua))")
    }
    if let match = lua.firstMatch(of: /^'end' expected \(to close '(\w+)' at line (\d+)\)/), let line = Int(match.2) {
      return (
        line,
        "the `\(match.1)` that begins here has no `end`, which is expected before line \(failure.line) (\(lua))"
      )
    }
    if let match = lua.firstMatch(of: /^'([})\]])' expected \(to close '(.)' at line (\d+)\) near <eof>/),
      let line = Int(match.3)
    {
      return (line, "the `\(match.2)` that begins here has no `\(match.1)` (\(lua))")
    }
    return (failure.line, lua + advice(lua))
  }

  /// Advice for syntax of other languages.
  private static func advice(_ lua: String) -> String {
    if lua.hasPrefix("unfinished string") { return "; a quote is missing on this line" }
    guard let match = lua.firstMatch(of: #/ near '(.)'$/#) else { return "" }
    switch match.1 {
    case "=" where lua.hasPrefix("'then' expected") || lua.hasPrefix("')' expected") || lua.hasPrefix("'do' expected"):
      return "; == compares, = assigns"
    case "!": return "; in Lua, ~= means not equal and `not` negates"
    case "&": return "; Lua writes `and`"
    case "|": return "; Lua writes `or`"
    case "+": return "; Lua has no += and no ++: write x = x + 1"
    default: return ""
    }
  }
}
