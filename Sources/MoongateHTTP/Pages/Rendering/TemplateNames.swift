/// The names that templates can use.
struct TemplateNames {
  /// The templates that can be included.
  let templates: Set<String>
  /// The words, used as `{{w.name}}`.
  let words: Set<String>
  /// All other names.
  let shape: ModelShape

  /// The unknown names in a template, each with its line.
  func missing(in tags: [TemplateTag]) -> [(line: Int, message: String)] {
    var found: [(line: Int, message: String)] = []
    // The scopes for lookups, the innermost last. Nil: an unknown scope, in which no name is reported.
    var open: [[ModelShape?]] = [[shape]]
    for tag in tags {
      let here = open.last ?? [shape]
      switch tag.meaning {
      case .includes(let name), .inherits(let name):
        // A name with a star is computed from a value.
        if !name.hasPrefix("*"), !templates.contains(name) {
          found.append((tag.line, "unknown template `\(name)`" + TemplateTag.suggestion(name, among: templates)))
        }
        if case .inherits = tag.meaning { open.append(here) }
      case .block: open.append(here)
      case .end: if open.count > 1 { open.removeLast() }
      case .value(let name), .section(let name), .inverted(let name):
        let (shape, message) = look(for: name, here)
        if let message { found.append((tag.line, message)) }
        if case .section = tag.meaning { open.append(here + [shape]) }
        if case .inverted = tag.meaning { open.append(here) }
      }
    }
    return found
  }

  /// A value without members.
  private static let text = ModelShape(members: [:])

  /// The shape of a name; nil if it is unknown for any reason.
  private func look(for name: String, _ open: [ModelShape?]) -> (shape: ModelShape?, message: String?) {
    let parts = name.split(separator: ".").map(String.init)
    guard let first = parts.first else { return (open.last ?? nil, nil) }
    if first == "w" {
      // Inside `{{#w}}…{{/w}}`, words are used without the prefix.
      guard parts.count > 1 else {
        return (ModelShape(members: Dictionary(uniqueKeysWithValues: words.map { ($0, Self.text) })), nil)
      }
      guard !words.contains(parts[1]) else { return (Self.text, nil) }
      return (nil, "unknown words `\(parts[1])`" + TemplateTag.suggestion(parts[1], among: words))
    }
    guard var shape = open.reversed().lazy.compactMap({ $0?.members[first] }).first else {
      if open.contains(where: { $0 == nil }) { return (nil, nil) }
      let known = Set(open.compactMap { $0 }.flatMap(\.members.keys)).union(["w"])
      return (nil, "unknown name `\(first)`" + TemplateTag.suggestion(first, among: known))
    }
    for (index, part) in parts.enumerated().dropFirst() {
      guard let inner = shape.members[part] else {
        return (
          nil,
          "`\(parts[index - 1])` has no member `\(part)`" + TemplateTag.suggestion(part, among: shape.members.keys)
        )
      }
      shape = inner
    }
    return (shape, nil)
  }
}
