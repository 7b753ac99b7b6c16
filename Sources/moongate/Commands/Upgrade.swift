import ArgumentParser
import Foundation
import MoongateCore
import MoongateHTTP

/// `moongate upgrade`: the program takes the place of the gateway that runs.
struct Upgrade: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Start the program again in the place of the gateway that runs, without a failed request.",
    discussion: """
      Asks by the admin listener. The gateway starts the program at its own path, which may be a newer one, with its listening sockets. Once that serves, the \
      old process finishes its connections, for as long as `drain` in gateway.lua says, and ends. Exits with 1 where the new program does not serve, and tells \
      why: the old process goes on.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Option(help: "How long the new program may take to load its configuration and to open the store: 1s to 10m.")
  var within = "60s"
  @OptionGroup var identity: OperatorOption
  @Flag(help: "Print JSON.") var json = false

  /// Beyond what the program may take: until it serves, or has been ended.
  private static let grace: Duration = .seconds(30)

  func run() async throws {
    guard let limit = Duration(asWritten: within), (.seconds(1)...(.seconds(UpgradeCalls.most))).contains(limit) else {
      throw StartProblem("--within \(within) is no time from 1s to 10m, such as 90s.", status: .couldNotRun)
    }
    let gateway = try RunningGateway(configuration)
    let query = [("within", "\(limit.components.seconds)")] + (try gateway.asked(by: identity, "moongate upgrade"))
    let answer = try await gateway.client.act("POST", "/upgrade", query: query, within: limit + Self.grace)
    struct Kept: Decodable { let why: String }
    if let kept = try? JSONDecoder().decode(Kept.self, from: answer.body) {
      if json { print(try ToolJSON.text(Array(answer.body))) }
      throw StartProblem("Not upgraded, and the old process goes on. \(kept.why)")
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
