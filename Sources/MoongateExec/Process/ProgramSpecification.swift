/// What is run for one entry of gateway.lua: two that are equal are one program.
package struct ProgramSpecification: Hashable, Sendable {
  /// The provider's name: what the entry is called.
  package let name: String
  /// Absolute.
  package let path: String
  /// Behind the program's own name.
  package let arguments: [String]
  /// All that its environment holds; some of it may be secret.
  package let environment: [String: String]
  /// Where it runs: the configuration folder, absolute.
  package let folder: String
  /// How long it may take for one call.
  package let timeout: Duration
  /// Of its file, and of those that its arguments name: another digest is another program.
  package let digest: String

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
}
