import ArgumentParser
import Foundation
import MoongateCore

/// `moongate reload`: makes the running gateway read its configuration again.
struct Reload: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Make the running gateway reload its configuration.",
    discussion: """
      Sends the request to the admin listener. If gateway.lua has a `gate`, a configuration that would change too many of the recorded decisions is refused; --force \
      skips the gate. Exit status: 1 if the configuration is refused. The reasons are printed, and the previous configuration stays active.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Flag(help: "Skip the gate.") var force = false
  @OptionGroup var identity: OperatorOption
  @Flag(help: "Print JSON.") var json = false

  /// The time limit: test cases of the folder, gate, and a margin.
  static let timeLimit = ConfigurationFolder.timeLimit + ReloadGate.timeLimit + .seconds(30)

  func run() async throws {
    let gateway = try RunningGateway(configuration)
    let query = (force ? [("force", "1")] : []) + (try gateway.asked(by: identity, "moongate reload"))
    let answer = try await gateway.client.act("POST", "/policy/reload", query: query, within: Self.timeLimit)
    try gateway.demand(answer, json: json)
    try Self.printReport(answer, json: json)
  }

  /// Prints the active generation.
  static func printReport(_ answer: AdminClient.Answer, json: Bool) throws {
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

/// The gateway that runs with a configuration, reached by its admin listener.
struct RunningGateway {
  let client: AdminClient

  /// - Throws: exit status 1 if the folder has problems, after printing them, because the address of the admin listener
  ///   is then unknown.
  init(_ configuration: ConfigurationOption) throws { client = AdminClient(try configuration.generation().gateway) }

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
