import CLua
import MoongateCore

/// Gathers everything that is wrong, so that an operator mends a file once and not ten times.
final class Problems {
  private(set) var all: [ConfigurationProblem] = []
  private(set) var warnings: [ConfigurationProblem] = []
  /// What can be read and must not be served. Kept apart until a file is read, so that it does not hide what else is
  /// wrong with it.
  private var unsafe: [ConfigurationProblem] = []

  func add(_ location: SourceLocation, _ path: String, _ message: String) {
    all.append(ConfigurationProblem(location: location, path: path, message: message))
  }

  func add(_ problems: [ConfigurationProblem]) { all += problems }

  func addUnsafe(_ location: SourceLocation, _ path: String, _ message: String) {
    unsafe.append(ConfigurationProblem(location: location, path: path, message: message))
  }

  /// Makes problems like any other of those.
  func tellUnsafe() {
    all += unsafe
    unsafe = []
  }

  func warn(_ location: SourceLocation, _ path: String, _ message: String) {
    warnings.append(ConfigurationProblem(location: location, path: path, message: message))
  }

  /// By file and line, each once.
  static func sorted(_ problems: [ConfigurationProblem]) -> [ConfigurationProblem] {
    var seen: Set<ConfigurationProblem> = []
    return problems.filter { seen.insert($0).inserted }.sorted {
      ($0.location.file, $0.location.line, $0.path, $0.message) < (
        $1.location.file, $1.location.line, $1.path, $1.message
      )
    }
  }
}

/// "Did you mean".
package enum Suggestion {
  /// The nearest of the names, where one is near enough to be meant.
  package static func nearest(to word: String, among names: some Sequence<String>) -> String? {
    let allowed: Int32 = word.utf8.count <= 3 ? 1 : word.utf8.count <= 7 ? 2 : 3
    return names.map { (distance: clua_typing_distance(word, word.utf8.count, $0, $0.utf8.count), name: $0) }
      .filter { $0.distance <= allowed && $0.distance < Int32(max(word.utf8.count, $0.name.utf8.count)) }
      .min { ($0.distance, $0.name) < ($1.distance, $1.name) }?.name
  }

  /// "; did you mean `x`?", or else which names there are.
  package static func phrase(for word: String, among names: some Collection<String>) -> String {
    if let name = nearest(to: word, among: names) { return "; did you mean `\(name)`?" }
    return names.isEmpty ? "" : "; there \(names.count == 1 ? "is" : "are") \(list(names))"
  }

  /// "`a`, `b` and `c`", sorted.
  package static func list(_ names: some Collection<String>) -> String {
    let quoted = names.sorted().map { "`\($0)`" }
    guard let last = quoted.last, quoted.count > 1 else { return quoted.first ?? "nothing" }
    return quoted.dropLast().joined(separator: ", ") + " and " + last
  }
}
