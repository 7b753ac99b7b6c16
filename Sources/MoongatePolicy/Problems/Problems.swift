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
