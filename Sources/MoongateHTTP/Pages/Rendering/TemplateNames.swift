/// What there is for a template to name.
struct TemplateNames {
  /// Templates that can be included.
  let templates: Set<String>
  /// Found as `{{w.name}}`.
  let words: Set<String>
  /// Everything else.
  let shape: ModelShape

  /// What a template names and there is not, each with its line.
  func missing(in tags: [TemplateTag]) -> [(line: Int, message: String)] {
    var found: [(line: Int, message: String)] = []
    // What names are looked up in, the innermost last. nil: nothing is known of it, so nothing in it is said to be
    // missing.
    var open: [[ModelShape?]] = [[shape]]
    for tag in tags {
      let here = open.last ?? [shape]
      switch tag.meaning {
      case .includes(let name), .inherits(let name):
        // One that starts with a star is chosen by a value.
        if !name.hasPrefix("*"), !templates.contains(name) {
          found.append((tag.line, "there is no template `\(name)`" + TemplateTag.meant(name, among: templates)))
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

  /// What has nothing in it to name.
  private static let text = ModelShape(members: [:])

  /// What a name stands for; nil where nothing is known of that, for whatever reason.
  private func look(for name: String, _ open: [ModelShape?]) -> (shape: ModelShape?, message: String?) {
    let parts = name.split(separator: ".").map(String.init)
    guard let first = parts.first else { return (open.last ?? nil, nil) }
    if first == "w" {
      // In `{{#w}}…{{/w}}` words are named without it.
      guard parts.count > 1 else {
        return (ModelShape(members: Dictionary(uniqueKeysWithValues: words.map { ($0, Self.text) })), nil)
      }
      guard !words.contains(parts[1]) else { return (Self.text, nil) }
      return (nil, "the pages have no words of the name `\(parts[1])`" + TemplateTag.meant(parts[1], among: words))
    }
    guard var shape = open.reversed().lazy.compactMap({ $0?.members[first] }).first else {
      if open.contains(where: { $0 == nil }) { return (nil, nil) }
      let known = Set(open.compactMap { $0 }.flatMap(\.members.keys)).union(["w"])
      return (nil, "there is nothing of the name `\(first)` here" + TemplateTag.meant(first, among: known))
    }
    for (index, part) in parts.enumerated().dropFirst() {
      guard let inner = shape.members[part] else {
        return (
          nil,
          "`\(parts[index - 1])` has nothing of the name `\(part)`" + TemplateTag.meant(part, among: shape.members.keys)
        )
      }
      shape = inner
    }
    return (shape, nil)
  }
}
