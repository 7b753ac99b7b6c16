/// A function, an initializer, a subscript or a property, as far as its size goes.
///
/// It may have five parameters and 60 lines between its braces. If it has more, the first line of its doc comment says
/// why: "More than five parameters: …", "More than 60 lines: …", or "More than five parameters and 60 lines: …".
struct FunctionShape {
  private static let mostParameters = 5
  private static let mostLines = 60

  /// The path of its file.
  let file: String
  /// The line of its declaration, from 1.
  let line: Int
  let parameters: Int
  /// The lines between its braces; 0 for a requirement of a protocol and for a stored property.
  let lines: Int
  /// The first line of its doc comment; empty if it has none.
  let comment: String

  /// What is missing or superfluous in its doc comment, a sentence for each.
  var violations: [String] {
    let both = comment.contains("ore than five parameters and 60 lines: ")
    return [
      violation(
        "\(parameters) parameters", isExcess: parameters > Self.mostParameters, "More than five parameters:",
        isGiven: both || comment.contains("ore than five parameters: ")),
      violation(
        "\(lines) lines", isExcess: lines > Self.mostLines, "More than 60 lines:",
        isGiven: both || comment.contains("ore than 60 lines: ")),
    ].compactMap { $0 }
  }

  private func violation(_ size: String, isExcess: Bool, _ words: String, isGiven: Bool) -> String? {
    switch (isExcess, isGiven) {
    case (true, false):
      "\(file):\(line) has \(size): the first line of its doc comment must say why, after `\(words)`"
    case (false, true): "\(file):\(line) has \(size): its doc comment gives a reason that it does not need"
    default: nil
    }
  }

  /// The functions of a file.
  static func all(in source: String, file: String) -> [FunctionShape] {
    var reader = DeclarationReader(source)
    return reader.declarations().map { found in
      FunctionShape(
        file: file, line: found.line + 1, parameters: found.parameters, lines: found.lines,
        comment: comment(above: found.line, in: reader.lines))
    }
  }

  /// The functions of every Swift file below the folder, except those of tests.
  static func all(below folder: String) throws -> [FunctionShape] {
    try Repository.sources(below: folder, [".swift"]).flatMap { all(in: try Repository.text(of: $0), file: $0) }
  }

  private static func comment(above line: Int, in lines: [String]) -> String {
    var above = lines[..<line]
    while above.last?.hasPrefix("@") ?? false { above.removeLast() }
    return above.reversed().prefix { $0.hasPrefix("///") }.last ?? ""
  }
}

/// Finds declarations in Swift source in the style of this repository (`swift format`).
private struct DeclarationReader {
  struct Declaration {
    /// The line of its keyword, from 0.
    let line: Int
    let parameters: Int
    let lines: Int
  }

  /// The lines of the source, without the spaces at their beginning.
  let lines: [String]
  /// The source with spaces instead of comments and string literals.
  private let code: [UInt8]
  private var index = 0

  init(_ source: String) {
    lines = source.split(separator: "\n", omittingEmptySubsequences: false).map { String($0.drop { $0 == " " }) }
    code = PlainCode.of(Array(source.utf8))
  }

  mutating func declarations() -> [Declaration] {
    var found: [Declaration] = []
    var line = 0
    var start = 0
    index = 0
    while index < code.count {
      let byte = code[index]
      if byte == .newline { (line, start) = (line + 1, index + 1) }
      guard byte.isInitial, !isInsideWord else {
        index += 1
        continue
      }
      let word = code[index...].prefix { $0.isInName }
      index = word.endIndex
      if let list = parameterList(after: word) {
        let indentation = code[start...].prefix { $0 == .space }.count
        let parameters = count(inListAt: list)
        found.append(Declaration(line: line, parameters: parameters, lines: bodyLines(indentation)))
      } else if beginsProperty(word) {
        let indentation = code[start...].prefix { $0 == .space }.count
        found.append(Declaration(line: line, parameters: 0, lines: bodyLines(indentation, isProperty: true)))
      }
      // A body may contain further declarations.
      index = word.endIndex
    }
    return found
  }

  /// Whether no declaration can begin at `index`, because of the byte before it.
  private var isInsideWord: Bool {
    guard index > 0 else { return false }
    let before = code[index - 1]
    return before.isInName || before == UInt8(ascii: ".") || before == UInt8(ascii: "`")
  }

  private mutating func skip(_ isSkipped: (UInt8) -> Bool) {
    while index < code.count, isSkipped(code[index]) { index += 1 }
  }

  /// The place of the parenthesis that opens the parameters, if the word begins a declaration.
  private mutating func parameterList(after word: ArraySlice<UInt8>) -> Int? {
    if word.elementsEqual("func".utf8) {
      skip { $0 == .space }
      guard index < code.count else { return nil }
      if code[index].isInName || code[index] == UInt8(ascii: "`") {
        skip { $0.isInName || $0 == UInt8(ascii: "`") }
      } else {
        skip { $0 != .space && $0 != .open }
      }
    } else if word.elementsEqual("init".utf8) {
      skip { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "!") }
    } else if !word.elementsEqual("subscript".utf8) {
      return nil
    }
    skip { $0 == .space }
    if index < code.count, code[index] == .less {
      var depth = 0
      repeat {
        if code[index] == .less { depth += 1 }
        if code[index] == .greater, code[index - 1] != .dash { depth -= 1 }
        index += 1
      } while depth > 0 && index < code.count
      skip { $0 == .space }
    }
    return index < code.count && code[index] == .open ? index : nil
  }

  /// Whether the word begins a property with a type. Leaves `index` behind the colon.
  private mutating func beginsProperty(_ word: ArraySlice<UInt8>) -> Bool {
    guard word.elementsEqual("var".utf8) else { return false }
    skip { $0 == .space || $0.isInName || $0 == UInt8(ascii: "`") }
    guard index < code.count, code[index] == UInt8(ascii: ":") else { return false }
    index += 1
    return true
  }

  /// Counts parameters. Leaves `index` behind the closing parenthesis.
  private mutating func count(inListAt start: Int) -> Int {
    index = start
    var count = 0
    var depth = 0
    var isEmpty = true
    while index < code.count {
      let (byte, before) = (code[index], code[index - 1])
      index += 1
      if byte.opens || (byte == .less && before != .space) {
        if depth > 0 { isEmpty = false }
        depth += 1
      } else if byte.closes || (byte == .greater && before != .dash && before != .space) {
        depth -= 1
        if depth == 0 { break }
      } else if byte == UInt8(ascii: ","), depth == 1 {
        if !isEmpty { count += 1 }
        isEmpty = true
      } else if byte != .space, byte != .newline {
        isEmpty = false
      }
    }
    return isEmpty ? count : count + 1
  }

  /// The lines between the braces of the declaration whose parameters, or whose name, end at `index`; 0 without braces
  /// and for the initial value of a property.
  private mutating func bodyLines(_ indentation: Int, isProperty: Bool = false) -> Int {
    var depth = 0
    while index < code.count {
      let byte = code[index]
      if byte == UInt8(ascii: "{"), depth == 0 { return linesInBraces() }
      if byte == UInt8(ascii: "="), depth == 0, isProperty { return 0 }
      if byte.opens { depth += 1 }
      if byte.closes {
        depth -= 1
        if depth < 0 { return 0 }
      }
      index += 1
      if byte == .newline, depth == 0, !continuesSignature(indentation) { return 0 }
    }
    return 0
  }

  /// Whether the line at `index` belongs to a signature that began with this indentation.
  private func continuesSignature(_ indentation: Int) -> Bool {
    let line = code[index...].prefix { $0 != .newline }
    let text = line.drop { $0 == .space }
    guard let first = text.first else { return false }
    return line.count - text.count > indentation || first == UInt8(ascii: "{") || first == UInt8(ascii: ")")
      || text.starts(with: "where ".utf8)
  }

  private mutating func linesInBraces() -> Int {
    var depth = 0
    var lines = 0
    while index < code.count {
      if code[index] == UInt8(ascii: "{") { depth += 1 }
      if code[index] == UInt8(ascii: "}") { depth -= 1 }
      if depth == 0 { break }
      if code[index] == .newline { lines += 1 }
      index += 1
    }
    return max(0, lines - 1)
  }
}
