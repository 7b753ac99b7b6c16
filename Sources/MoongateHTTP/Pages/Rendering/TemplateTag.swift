/// A tag of a template that names something of ours. Mustache takes what it does not find for nothing: a layout that is misspelt is a blank page.
struct TemplateTag {
  enum Meaning {
    /// `{{<name}}` and `{{>name}}`.
    case template(String)
    /// `{{w.name}}`, in whatever kind of tag.
    case words(String)
  }

  /// From 1.
  let line: Int
  let meaning: Meaning

  /// Those of a template that can be read, up to where it changes what a tag looks like.
  static func all(in text: String) -> [TemplateTag] {
    var tags: [TemplateTag] = []
    for match in text.matches(of: /\{\{(.*?)\}\}/.dotMatchesNewlines()) {
      let said = match.1.drop(while: \.isWhitespace)
      guard let sign = said.first, !"!/$%".contains(sign) else { continue }
      if sign == "=" { break }
      guard let meaning = meaning(of: said, sign) else { continue }
      tags.append(TemplateTag(line: text[..<match.range.lowerBound].count(where: \.isNewline) + 1, meaning: meaning))
    }
    return tags
  }

  private static func meaning(of said: Substring, _ sign: Character) -> Meaning? {
    if sign == "<" || sign == ">" {
      let name = String(said.dropFirst().filter { !$0.isWhitespace })
      // One that starts with a star is chosen by a value.
      return name.hasPrefix("*") ? nil : .template(name)
    }
    // A name may stand in transforms, as in `uppercased(w.name)`.
    let name = said.split { "#^&{()".contains($0) || $0.isWhitespace }.last ?? ""
    guard name.hasPrefix("w.") else { return nil }
    return .words(String(name.dropFirst(2).prefix { $0 != "." }))
  }

  /// "; did you mean `x`?", where one of the names is a slip of the finger away.
  static func meant(_ name: String, among names: Set<String>) -> String {
    let near = names.map { (steps: $0.difference(from: name).count, name: $0) }.filter { $0.steps <= 2 }
    return near.min { ($0.steps, $0.name) < ($1.steps, $1.name) }.map { "; did you mean `\($0.name)`?" } ?? ""
  }

  /// The names of the files that include themselves, in one step or more: the first such page that is asked for would end the program.
  static func endless(in files: [String: [UInt8]]) -> [String] {
    var included: [String: Set<String>] = [:]
    for (name, bytes) in files where name.hasSuffix(".mustache") {
      for tag in all(in: String(decoding: bytes, as: UTF8.self)) {
        if case .template(let other) = tag.meaning { included[name, default: []].insert(other + ".mustache") }
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
