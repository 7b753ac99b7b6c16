import CLua
import MoongateCore

/// Collects all problems, so that an operator sees everything that is wrong in one run.
final class Problems {
  private(set) var all: [ConfigurationProblem] = []
  private(set) var warnings: [ConfigurationProblem] = []
  /// Valid settings that are not safe to serve. They are kept apart until a file has been read, so that they do not
  /// hide its other problems.
  private var unsafe: [ConfigurationProblem] = []

  func add(_ location: SourceLocation, _ path: String, _ message: String) {
    all.append(ConfigurationProblem(location: location, path: path, message: message))
  }

  func add(_ problems: [ConfigurationProblem]) { all += problems }

  func addUnsafe(_ location: SourceLocation, _ path: String, _ message: String) {
    unsafe.append(ConfigurationProblem(location: location, path: path, message: message))
  }

  /// Adds the unsafe settings to the problems.
  func reportUnsafe() {
    all += unsafe
    unsafe = []
  }

  func warn(_ location: SourceLocation, _ path: String, _ message: String) {
    warnings.append(ConfigurationProblem(location: location, path: path, message: message))
  }

  /// The problems by file and line, without duplicates.
  static func sorted(_ problems: [ConfigurationProblem]) -> [ConfigurationProblem] {
    var seen: Set<ConfigurationProblem> = []
    return problems.filter { seen.insert($0).inserted }.sorted {
      ($0.location.file, $0.location.line, $0.path, $0.message) < (
        $1.location.file, $1.location.line, $1.path, $1.message
      )
    }
  }
}

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
