import ArgumentParser
import Foundation
import MoongateCore
import MoongateHTTP

/// `moongate upgrade`: replaces the running gateway process with a new one.
struct Upgrade: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Replace the running gateway process with a new one, without failed requests.",
    discussion: """
      Sends the request to the admin listener. The gateway starts the program at its own path, which may be a newer version, and hands it the listening sockets. When the new process is ready, the \
      old one finishes its connections, within the time of `drain` in gateway.lua, and exits. Exit status: 1 if the new process does not become ready. The reason \
      is printed, and the old process continues.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Option(help: "The time limit for the new process to load its configuration and open the store: 1s to 10m.")
  var within = "60s"
  @OptionGroup var identity: OperatorOption
  @Flag(help: "Print JSON.") var json = false

  /// The time beyond the limit until the new process is ready or has been stopped.
  private static let grace: Duration = .seconds(30)

  func run() async throws {
    guard let limit = Duration(asWritten: within), (.seconds(1)...(.seconds(UpgradeCalls.most))).contains(limit) else {
      throw StartProblem("--within \(within) must be a time from 1s to 10m, for example 90s.", status: .couldNotRun)
    }
    let gateway = try RunningGateway(configuration)
    let query = [("within", "\(limit.components.seconds)")] + (try gateway.asked(by: identity, "moongate upgrade"))
    let answer = try await gateway.client.act("POST", "/upgrade", query: query, within: limit + Self.grace)
    struct NotReplaced: Decodable { let why: String }
    if let notReplaced = try? JSONDecoder().decode(NotReplaced.self, from: answer.body) {
      if json { print(try ToolJSON.text(Array(answer.body))) }
      throw StartProblem("Not upgraded; the old process continues. \(notReplaced.why)")
    }
    try gateway.demand(answer, json: json)
    if json { return print(try ToolJSON.text(Array(answer.body))) }
    struct Replaced: Decodable {
      let process: Int32
      let generation: String
    }
    let replaced = try JSONDecoder().decode(Replaced.self, from: answer.body)
    print("Upgraded: process \(replaced.process) serves generation \(replaced.generation.prefix(8)).")
  }
}
