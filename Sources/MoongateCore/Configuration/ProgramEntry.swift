import MoongateSDK

/// An entry of gateway.lua whose provider is another program: `sms_hub = exec { "./sms_hub.py" }`.
package struct ProgramEntry: Sendable {
  package let name: ProviderName
  /// Of the entry.
  package let location: SourceLocation
  /// Absolute.
  package let path: String
  package let arguments: [String]
  /// What its environment holds beside the little that every program gets.
  package let environment: [String: SecretText]
  /// How long it may take for one call.
  package let timeout: Duration
  /// The configuration folder, absolute: where it runs.
  package let folder: String
  /// The SHA-256 over its file and those that its arguments name, in lower-case hexadecimal.
  package let digest: String

  package init(
    name: ProviderName, location: SourceLocation, path: String, arguments: [String], environment: [String: SecretText],
    timeout: Duration,
    folder: String, digest: String
  ) {
    self.name = name
    self.location = location
    self.path = path
    self.arguments = arguments
    self.environment = environment
    self.timeout = timeout
    self.folder = folder
    self.digest = digest
  }
}

/// Starts the programs of a candidate, aside from those that serve. All of this blocks, for as long as handshakes may
/// take.
package protocol ProgramStarter: Sendable {
  /// Starts them all at once, or finds those that run already, and asks each what it is.
  /// - Returns: in the order of the entries.
  func introduce(_ entries: [ProgramEntry]) -> [Result<any CandidateProgram, ProgramRefusal>]
}

/// A program that has said what it is, and serves nobody yet.
package protocol CandidateProgram: Sendable {
  var descriptor: ProviderDescriptor { get }

  /// Gives it its settings, which were read by what it declared.
  /// - Throws: why it does not take them.
  func accept(_ settings: ProviderSettings) throws(ProgramRefusal) -> any Provider
}

/// A program that cannot be used.
package struct ProgramRefusal: Error, Sendable {
  /// For the operator: each why, without the program's name.
  package let sentences: [String]

  package init(sentences: [String]) { self.sentences = sentences }
}
