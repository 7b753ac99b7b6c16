/// Where something is said in a Lua file.
package struct SourceLocation: Hashable, Sendable, Codable, CustomStringConvertible {
  /// Relative to the configuration folder, or a plugin's own path for its defaults.
  package let file: String
  /// From 1; 0 where the whole file is meant.
  package let line: Int

  package init(file: String, line: Int) {
    self.file = file
    self.line = line
  }

  package var description: String { line > 0 ? "\(file):\(line)" : file }
}

/// One thing that is wrong with a configuration, in words for the operator.
package struct ConfigurationProblem: Error, Hashable, Sendable, Codable, CustomStringConvertible {
  package let location: SourceLocation
  /// The field: `limits.send.windw`; empty where none is meant.
  package let path: String
  /// What is wrong and what to do.
  package let message: String

  package init(location: SourceLocation, path: String, message: String) {
    self.location = location
    self.path = path
    self.message = message
  }

  package var description: String { path.isEmpty ? "\(location): \(message)" : "\(location): \(path): \(message)" }
}
