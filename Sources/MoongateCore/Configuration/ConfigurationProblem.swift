/// A position in a Lua file.
package struct SourceLocation: Hashable, Sendable, Codable, CustomStringConvertible {
  /// Relative to the configuration folder, or a plugin's own path for its defaults.
  package let file: String
  /// From 1; 0 for the whole file.
  package let line: Int

  package init(file: String, line: Int) {
    self.file = file
    self.line = line
  }

  package var description: String { line > 0 ? "\(file):\(line)" : file }
}

/// A problem in a configuration, described for the operator.
package struct ConfigurationProblem: Error, Hashable, Sendable, Codable, CustomStringConvertible {
  package let location: SourceLocation
  /// The field, such as `limits.send.windw`; empty if the problem concerns no field.
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
