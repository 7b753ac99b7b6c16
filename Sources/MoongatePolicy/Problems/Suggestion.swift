import CLua

/// Suggestions for misspelled names.
package enum Suggestion {
  /// The most similar name, if it is similar enough.
  package static func nearest(to word: String, among names: some Sequence<String>) -> String? {
    let allowed: Int32 = word.utf8.count <= 3 ? 1 : word.utf8.count <= 7 ? 2 : 3
    return names.map { (distance: clua_typing_distance(word, word.utf8.count, $0, $0.utf8.count), name: $0) }
      .filter { $0.distance <= allowed && $0.distance < Int32(max(word.utf8.count, $0.name.utf8.count)) }
      .min { ($0.distance, $0.name) < ($1.distance, $1.name) }?.name
  }

  /// "; did you mean `x`?", or the list of names.
  package static func phrase(for word: String, among names: some Collection<String>) -> String {
    if let name = nearest(to: word, among: names) { return "; did you mean `\(name)`?" }
    return names.isEmpty ? "" : "; available: \(list(names))"
  }

  /// "`a`, `b` and `c`", sorted.
  package static func list(_ names: some Collection<String>) -> String {
    let quoted = names.sorted().map { "`\($0)`" }
    guard let last = quoted.last, quoted.count > 1 else { return quoted.first ?? "nothing" }
    return quoted.dropLast().joined(separator: ", ") + " and " + last
  }
}
