import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateProgram

/// The gateway that runs with a configuration, reached by its admin listener.
struct RunningGateway {
  /// The time limit of a reload: test cases of the folder, gate, and a margin.
  static let reloadTimeLimit = ConfigurationFolder.timeLimit + ReloadGate.timeLimit + .seconds(30)

  let client: AdminClient

  /// Only `admin` of gateway.lua is read: a mistake elsewhere must not keep an operator from the gateway that runs.
  /// - Throws: an error if the folder does not name the admin listener, and `admin` does not either.
  init(_ configuration: ConfigurationOption, _ admin: AdminOption) throws(StartProblem) {
    let named = try admin.named()
    do throws(StartProblem) {
      let listener = try configuration.adminListener()
      let address = named ?? listener.address
      // Attack: a mistyped address of another machine gets the tokens, without TLS.
      if address == listener.address || address.isLoopback {
        client = AdminClient(asking: address, tokens: listener.tokens)
      } else {
        client = AdminClient(
          asking: address,
          withoutTokens: "Its tokens are sent only to this machine and to the address at `admin` in gateway.lua.")
      }
    } catch {
      guard let named else { throw error }
      client = AdminClient(asking: named, withoutTokens: error.sentence)
    }
  }

  /// The query parameter with the operator's name.
  func asked(by identity: OperatorOption, _ command: String) throws(StartProblem) -> [(String, String)] {
    (try identity.identity(command)).name.map { [("as", $0)] } ?? []
  }

  /// - Throws: exit status 1, after printing the problems on standard error, if the gateway refused; an error for any
  ///   other failure.
  func demand(_ answer: AdminClient.Answer, json: Bool) throws {
    if answer.status < 300 { return }
    struct Problems: Decodable { let problems: [ConfigurationProblemDocument] }
    if let told = try? JSONDecoder().decode(Problems.self, from: answer.body) {
      if json { print(try ToolJSON.text(Array(answer.body))) }
      for problem in told.problems { LineLog.standardError("\(problem.text)\n") }
      throw ExitCode(ExitStatus.found.rawValue)
    }
    struct Document: Decodable {
      let title: String?
      let detail: String?
    }
    let document = try? JSONDecoder().decode(Document.self, from: answer.body)
    throw StartProblem(
      document?.detail ?? document?.title ?? "The admin listener answered \(answer.status).", status: .couldNotRun)
  }

  /// Makes the gateway activate a configuration, and prints the generation that is then active.
  /// - Parameters:
  ///   - path: the path of the call.
  ///   - force: whether to skip the gate.
  ///   - command: the command in the audit trail.
  func activate(_ path: String, force: Bool, by identity: OperatorOption, _ command: String, json: Bool) async throws {
    let query = (force ? [("force", "1")] : []) + (try asked(by: identity, command))
    let answer = try await client.act("POST", path, query: query, within: Self.reloadTimeLimit)
    try demand(answer, json: json)
    try Self.printActiveGeneration(answer, json: json)
  }

  /// Prints the active generation of an answer.
  private static func printActiveGeneration(_ answer: AdminClient.Answer, json: Bool) throws {
    if json { return print(try ToolJSON.text(Array(answer.body))) }
    struct Status: Decodable {
      let active: String
      let restartNeeded: [ConfigurationProblemDocument]

      enum CodingKeys: String, CodingKey {
        case active
        case restartNeeded = "restart_needed"
      }
    }
    let status = try JSONDecoder().decode(Status.self, from: answer.body)
    print("generation \(status.active.prefix(8)) is active")
    for problem in status.restartNeeded { print("  \(problem.text)") }
  }
}

/// A problem in the JSON of the admin listener.
struct ConfigurationProblemDocument: Decodable {
  let file: String
  let line: Int?
  let path: String
  let message: String

  var text: String {
    ConfigurationProblem(location: SourceLocation(file: file, line: line ?? 0), path: path, message: message)
      .description
  }
}
