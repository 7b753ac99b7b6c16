extension ConfigurationFiles {
  /// Identifies the change of a folder for `flips_accepted`: a digest without the value of `flips_accepted` itself, and
  /// without insignificant text of gateway.lua (white space, comments and trailing commas).
  var changeMark: String { digest { $0.name == "gateway.lua" ? Self.unmarked($0.bytes) : $0.bytes } }

  /// The tokens of gateway.lua, one per line, without the first field `flips_accepted = "…"`.
  ///
  /// Attack: a change is accepted, and another change has the same id. Only one text is left out, and only as the value
  /// of that field.
  static func unmarked(_ source: [UInt8]) -> [UInt8] {
    var tokens: [LuaToken] = []
    var cutter = LuaTokens(source)
    while let token = cutter.next() { tokens.append(token) }
    if let at = tokens.indices.first(where: { isMark(tokens[$0...]) }) {
      var (first, end) = (at, at + 3)
      // Removes one separator with the field: the preceding one, or else the following one.
      if first > 0, tokens[first - 1].kind == .symbol(.separator) {
        first -= 1
      } else if end < tokens.count, tokens[end].kind == .symbol(.separator) {
        end += 1
      }
      tokens.removeSubrange(first..<end)
    }
    var words: [UInt8] = []
    for (index, token) in tokens.enumerated() {
      let isLast = index + 1 < tokens.count && tokens[index + 1].kind == .symbol(.closeBrace)
      if token.kind == .symbol(.separator), isLast { continue }
      words += source[token.range] + [UInt8(ascii: "\n")]
    }
    return words
  }

  private static func isMark(_ tokens: ArraySlice<LuaToken>) -> Bool {
    guard tokens.count >= 3, case .string = tokens[tokens.startIndex + 2].kind else { return false }
    return tokens[tokens.startIndex].kind == .name("flips_accepted")
      && tokens[tokens.startIndex + 1].kind == .symbol(.assign)
  }
}
