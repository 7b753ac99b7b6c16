import ArgumentParser
import Foundation
import MoongateCore
import MoongateHTTP
import MoongateProgram

/// `moongate upgrade`: replaces the running gateway process with a new one.
struct Upgrade: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Replace the running gateway process with a new one, without failed requests.",
    discussion: """
      Sends the request to the admin listener, and reads only `admin` of gateway.lua to find it. The gateway starts the program at its own path, which may be a newer version, and hands it the listening sockets. When the new process is ready, the \
      old one finishes its connections, within the time of `drain` in gateway.lua, and exits. Exit status: 1 if the new process does not become ready. The reason \
      is printed, and the old process continues.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @OptionGroup var admin: AdminOption
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
    let answer = try await ask(within: limit)
    if json { return print(try ToolJSON.text(Array(answer.body))) }
    struct Replaced: Decodable {
      let process: Int32
      let generation: String
    }
    let replaced = try JSONDecoder().decode(Replaced.self, from: answer.body)
    print("Upgraded: process \(replaced.process) serves generation \(replaced.generation.prefix(8)).")
  }

  /// The gateway's answer after a successful upgrade.
  /// - Throws: an error that says why the old process continues, or why the outcome is unknown. With `--json`, the
  ///   reason is also printed as JSON.
  private func ask(within limit: Duration) async throws -> AdminClient.Answer {
    let gateway: RunningGateway
    do throws(StartProblem) { gateway = try RunningGateway(configuration, admin) } catch {
      throw try notUpgraded(error.sentence, status: error.status)
    }
    let query = [("within", "\(limit.components.seconds)")] + (try gateway.asked(by: identity, "moongate upgrade"))
    do {
      let answer = try await gateway.client.act("POST", "/upgrade", query: query, within: limit + Self.grace)
      if let refused = try? JSONDecoder().decode(NotReplaced.self, from: answer.body) { throw refused }
      try gateway.demand(answer, json: json)
      return answer
    } catch let answer as NotReplaced {
      throw try notUpgraded(answer.why)
    } catch let problem as StartProblem {
      if json { print(try ToolJSON.text(NotReplaced(why: problem.sentence))) }
      throw problem
    }
  }

  private func notUpgraded(_ why: String, status: ExitStatus = .found) throws -> StartProblem {
    if json { print(try ToolJSON.text(NotReplaced(why: why))) }
    return StartProblem("Not upgraded; the old process continues. \(why)", status: status)
  }

  /// The answer of a gateway that continues.
  private struct NotReplaced: Codable, Error { let why: String }
}
