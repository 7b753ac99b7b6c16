import MoongateSDK

/// An entry of gateway.lua whose provider is an external program: `sms_hub = exec { "./sms_hub.py" }`.
package struct ProgramEntry: Sendable {
  package let name: ProviderName
  /// The location of the entry.
  package let location: SourceLocation
  /// The absolute path.
  package let path: String
  package let arguments: [String]
  /// Environment variables in addition to the few that every program gets.
  package let environment: [String: SecretText]
  /// The timeout of one call.
  package let timeout: Duration
  /// The absolute path of the configuration folder, which is the working directory.
  package let folder: String
  /// The SHA-256 of its file and of the files that its arguments name, in lower-case hexadecimal.
  package let digest: String

  /// More than five parameters: one for each field.
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

/// Starts a candidate's programs without affecting the running ones. All calls block for as long as the handshakes
/// take.
package protocol ProgramStarter: Sendable {
  /// Starts all programs at once, or finds running ones, and asks each for its descriptor.
  /// - Returns: the results in the order of the entries.
  func introduce(_ entries: [ProgramEntry]) -> [Result<any CandidateProgram, ProgramRefusal>]
}

/// A started program that has sent its descriptor and does not serve requests yet.
package protocol CandidateProgram: Sendable {
  var descriptor: ProviderDescriptor { get }

  /// Sends the program its settings, which were validated against its descriptor.
  /// - Throws: why it does not accept them.
  func accept(_ settings: ProviderSettings) throws(ProgramRefusal) -> any Provider
}

/// A program that cannot be used.
package struct ProgramRefusal: Error, Sendable {
  /// The reasons for the operator, without the program's name.
  package let sentences: [String]

  package init(sentences: [String]) { self.sentences = sentences }
}
