/// A token of Lua text.
struct LuaToken {
  enum Symbol: Equatable {
    case openBrace, closeBrace, openParen, closeParen, openBracket, closeBracket, separator, assign, label, other
  }
  enum Kind: Equatable {
    case name(String)
    /// Opens a block. Separators inside it do not belong to a surrounding table.
    case opener(String)
    /// Closes a block.
    case closer(String)
    /// Any other keyword.
    case keyword(String)
    /// Without quotes. Escapes are not decoded, because no known key contains any.
    case string(String)
    /// The value of a decimal integer; nil for other numbers.
    case number(Int64?)
    case symbol(Symbol)
  }

  let kind: Kind
  let range: Range<Int>
  let line: Int

  /// Whether a `{` after this token is the argument of a call: `f {`, `f "x" {`, `f() {`, `t[1] {`, `f {} {`.
  var endsExpression: Bool {
    switch kind {
    case .name, .string, .symbol(.closeParen), .symbol(.closeBracket), .symbol(.closeBrace): true
    default: false
    }
  }
}

/// Splits Lua 5.4 text into tokens (Reference Manual, section 3.1). Never fails: text that Lua would refuse is split in
/// an arbitrary way.
struct LuaTokens: IteratorProtocol {
  private static let keywords: Set<String> = [
    "and", "break", "else", "elseif", "false", "for", "goto", "in", "local", "nil", "not", "or", "return", "then",
    "true", "while",
  ]

  private let source: [UInt8]
  private var at = 0
  private var line = 1

  init(_ source: [UInt8]) { self.source = source }

  mutating func next() -> LuaToken? {
    skipBlank()
    guard at < source.count else { return nil }
    let start = at
    let startLine = line
    let kind = cut()
    return LuaToken(kind: kind, range: start..<at, line: startLine)
  }

  private func byte(_ offset: Int = 0) -> UInt8 { at + offset < source.count ? source[at + offset] : 0 }

  private mutating func advance() {
    if source[at] == UInt8(ascii: "\n") { line += 1 }
    at += 1
  }

  private mutating func skipBlank() {
    while at < source.count {
      switch source[at] {
      case 9...13, 32: advance()
      case UInt8(ascii: "-") where byte(1) == UInt8(ascii: "-"):
        at += 2
        if let level = longBracket() {
          skipLong(level)
        } else {
          while at < source.count, source[at] != UInt8(ascii: "\n") { at += 1 }
        }
      default: return
      }
    }
  }

  /// The level of the long bracket that opens here: 0 for `[[`, 1 for `[=[`; nil if none opens.
  private func longBracket() -> Int? {
    guard byte() == UInt8(ascii: "[") else { return nil }
    var level = 0
    while byte(1 + level) == UInt8(ascii: "=") { level += 1 }
    return byte(1 + level) == UInt8(ascii: "[") ? level : nil
  }

  private mutating func skipLong(_ level: Int) {
    at += level + 2
    while at < source.count {
      if source[at] == UInt8(ascii: "]") {
        var count = 0
        while byte(1 + count) == UInt8(ascii: "=") { count += 1 }
        if count == level, byte(1 + count) == UInt8(ascii: "]") {
          at += level + 2
          return
        }
      }
      advance()
    }
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    byte == 95 || (65...90).contains(byte) || (97...122).contains(byte)
  }
  private static func isDigit(_ byte: UInt8) -> Bool { (48...57).contains(byte) }

  private mutating func cut() -> LuaToken.Kind {
    let first = source[at]
    if Self.isLetter(first) { return cutWord() }
    if Self.isDigit(first) || (first == UInt8(ascii: ".") && Self.isDigit(byte(1))) { return cutNumber() }
    switch first {
    case UInt8(ascii: "\""), UInt8(ascii: "'"): return cutString(first)
    case UInt8(ascii: "["):
      guard let level = longBracket() else { return symbol(.openBracket) }
      let start = at + level + 2
      skipLong(level)
      return .string(String(decoding: source[min(start, at)..<max(start, at - level - 2)], as: UTF8.self))
    case UInt8(ascii: "{"): return symbol(.openBrace)
    case UInt8(ascii: "}"): return symbol(.closeBrace)
    case UInt8(ascii: "("): return symbol(.openParen)
    case UInt8(ascii: ")"): return symbol(.closeParen)
    case UInt8(ascii: "]"): return symbol(.closeBracket)
    case UInt8(ascii: ","), UInt8(ascii: ";"): return symbol(.separator)
    case UInt8(ascii: ":") where byte(1) == first: return symbol(.label, length: 2)
    case UInt8(ascii: "="): return byte(1) == first ? symbol(.other, length: 2) : symbol(.assign)
    case UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "~"):
      return symbol(.other, length: byte(1) == UInt8(ascii: "=") ? 2 : 1)
    default: return symbol(.other)
    }
  }

  private mutating func symbol(_ symbol: LuaToken.Symbol, length: Int = 1) -> LuaToken.Kind {
    at += length
    return .symbol(symbol)
  }

  private mutating func cutWord() -> LuaToken.Kind {
    let start = at
    while at < source.count, Self.isLetter(source[at]) || Self.isDigit(source[at]) { at += 1 }
    let word = String(decoding: source[start..<at], as: UTF8.self)
    switch word {
    case "function", "do", "if", "repeat": return .opener(word)
    case "end", "until": return .closer(word)
    default: return Self.keywords.contains(word) ? .keyword(word) : .name(word)
    }
  }

  private mutating func cutNumber() -> LuaToken.Kind {
    let start = at
    while at < source.count {
      let isExponent = at > start && [69, 101, 80, 112].contains(source[at - 1]) && [43, 45].contains(source[at])
      guard Self.isLetter(source[at]) || Self.isDigit(source[at]) || source[at] == UInt8(ascii: ".") || isExponent
      else { break }
      at += 1
    }
    return .number(Int64(String(decoding: source[start..<at], as: UTF8.self)))
  }

  private mutating func cutString(_ quote: UInt8) -> LuaToken.Kind {
    at += 1
    let start = at
    while at < source.count, source[at] != quote {
      if source[at] == UInt8(ascii: "\\"), at + 1 < source.count { advance() }
      advance()
    }
    let text = String(decoding: source[start..<min(at, source.count)], as: UTF8.self)
    at = min(at + 1, source.count)
    return .string(text)
  }
}
