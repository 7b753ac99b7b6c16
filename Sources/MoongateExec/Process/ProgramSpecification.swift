import Foundation

/// The command of one entry in gateway.lua. Equal specifications share one program.
package struct ProgramSpecification: Hashable, Sendable {
  /// The name of the provider and of the entry.
  package let name: String
  /// The absolute path of the program.
  package let path: String
  /// The arguments after the program's name.
  package let arguments: [String]
  /// The complete environment, which may contain secrets.
  package let environment: [String: String]
  /// The working folder: the absolute path of the configuration folder.
  package let folder: String
  /// The time limit of one call.
  package let timeout: Duration
  /// The digest of the program file and of the files among its arguments. A program with another digest is a different
  /// program.
  package let digest: String

  /// More than five parameters: one for each field.
  package init(
    name: String, path: String, arguments: [String] = [], environment: [String: String] = [:], folder: String,
    timeout: Duration = .seconds(5),
    digest: String
  ) {
    self.name = name
    self.path = path
    self.arguments = arguments
    self.environment = environment
    self.folder = folder
    self.timeout = timeout
    self.digest = digest
  }

  /// The environment of a program. It inherits only PATH, because the gateway's environment contains secrets.
  package static var leastEnvironment: [String: String] {
    ["PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"]
  }
}
