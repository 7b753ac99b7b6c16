/// What Lua's parser complains of, by the line where the mistake begins, with what to do.
enum SyntaxAdvice {
  /// - Parameter failure: of the parser.
  static func told(_ failure: LuaState.Failure, in text: [UInt8]) -> (line: Int, message: String) {
    let lua = failure.message
    if let line = MissingComma.line(in: text, before: failure) {
      return (line, "a comma is missing after this field? (\(lua))")
    }
    if let match = lua.firstMatch(of: /^'end' expected \(to close '(\w+)' at line (\d+)\)/), let line = Int(match.2) {
      return (
        line,
        "the `\(match.1)` that begins here has no `end` of its own, which is due before line \(failure.line) (\(lua))"
      )
    }
    if let match = lua.firstMatch(of: /^'([})\]])' expected \(to close '(.)' at line (\d+)\) near <eof>/),
      let line = Int(match.3)
    {
      return (line, "the `\(match.2)` that begins here has no `\(match.1)` (\(lua))")
    }
    return (failure.line, lua + advice(lua))
  }

  /// What people write who know other languages.
  private static func advice(_ lua: String) -> String {
    if lua.hasPrefix("unfinished string") { return "; a quote is missing on this line" }
    guard let match = lua.firstMatch(of: #/ near '(.)'$/#) else { return "" }
    switch match.1 {
    case "=" where lua.hasPrefix("'then' expected") || lua.hasPrefix("')' expected") || lua.hasPrefix("'do' expected"):
      return "; == compares, and = sets"
    case "!": return "; Lua writes ~= for not equal, and `not` for not"
    case "&": return "; Lua writes `and`"
    case "|": return "; Lua writes `or`"
    case "+": return "; Lua has no += and no ++: write x = x + 1"
    default: return ""
    }
  }
}
