/// A tag of a template that uses a name or ends a section. Mustache renders unknown names as nothing, so a misspelled
/// layout would give a blank page.
struct TemplateTag {
  enum Meaning: Equatable {
    /// `{{>name}}`.
    case includes(String)
    /// `{{<name}}`, up to `{{/name}}`.
    case inherits(String)
    /// `{{$name}}`, up to `{{/name}}`.
    case block
    /// `{{#name}}`, up to `{{/name}}`. Names inside it are looked up in the value first.
    case section(String)
    /// `{{^name}}`, up to `{{/name}}`.
    case inverted(String)
    case end
    case value(String)
  }

  /// Counted from 1.
  let line: Int
  let meaning: Meaning

  /// The tags of a valid template, up to a change of its delimiters.
  static func all(in text: String) -> [TemplateTag] {
    var tags: [TemplateTag] = []
    var (line, counted) = (1, text.startIndex)
    for match in text.matches(of: /\{\{(.*?)\}\}/.dotMatchesNewlines()) {
      let said = match.1.drop(while: \.isWhitespace)
      guard let sign = said.first, !"!%".contains(sign) else { continue }
      if sign == "=" { break }
      line += text.utf8[counted..<match.range.lowerBound].count { $0 == UInt8(ascii: "\n") }
      counted = match.range.lowerBound
      tags.append(TemplateTag(line: line, meaning: meaning(of: said, sign)))
    }
    return tags
  }

  /// The lines of the tags of a valid template that turn escaping off: `{{{name}}}`, `{{&name}}`, a pragma, or a change
  /// of the delimiters, after which all of these are possible.
  static func unescaped(in text: String) -> [Int] {
    text.matches(of: /\{\{\s*[{&%=]/).map { match in
      1 + text.utf8[..<match.range.lowerBound].count { $0 == UInt8(ascii: "\n") }
    }
  }

  private static func meaning(of said: Substring, _ sign: Character) -> Meaning {
    let rest = String(said.dropFirst().filter { !$0.isWhitespace })
    return switch sign {
    case ">": .includes(rest)
    case "<": .inherits(rest)
    case "$": .block
    case "/": .end
    case "#": .section(name(in: rest))
    case "^": .inverted(name(in: rest))
    default: .value(name(in: said.filter { !"{&".contains($0) && !$0.isWhitespace }))
    }
  }

  /// The name without transforms, as in `uppercased(w.name)`; empty for transforms without a name, as in `first()`.
  private static func name(in text: String) -> String {
    guard let inner = text.lastIndex(of: "(") else { return text }
    return String(text[text.index(after: inner)...].prefix { $0 != ")" })
  }

  /// "; did you mean `x`?", if one of the names is similar.
  static func suggestion(_ name: String, among names: some Sequence<String>) -> String {
    let near = names.map { (steps: $0.difference(from: name).count, name: $0) }.filter { $0.steps <= 2 }
    return near.min { ($0.steps, $0.name) < ($1.steps, $1.name) }.map { "; did you mean `\($0.name)`?" } ?? ""
  }

  /// The files that include themselves, directly or through other files. Rendering one would overflow the stack and end
  /// the program.
  static func endless(in files: [String: [UInt8]]) -> [String] {
    var included: [String: Set<String>] = [:]
    for (name, bytes) in files where name.hasSuffix(".mustache") {
      for tag in all(in: String(decoding: bytes, as: UTF8.self)) {
        switch tag.meaning {
        case .includes(let other), .inherits(let other): included[name, default: []].insert(other + ".mustache")
        default: break
        }
      }
    }
    return included.keys.sorted().filter { start in
      var (reached, open): (Set<String>, Set<String>) = ([], included[start] ?? [])
      while let next = open.popFirst() {
        if reached.insert(next).inserted { open.formUnion(included[next] ?? []) }
      }
      return reached.contains(start)
    }
  }
}
