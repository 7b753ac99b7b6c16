import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateProgram

/// `moongate policy shadow`: evaluates live traffic with a candidate configuration, without effect.
struct PolicyShadowCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "shadow",
    abstract: "Evaluate live traffic with a candidate configuration, without effect.",
    discussion: """
      `moongate policy shadow FOLDER` loads the candidate folder into the running gateway. The candidate sends nothing, writes nothing and refuses no request. `status` shows which \
      decisions would differ, and why; `promote` makes the candidate the active configuration; `stop` removes it. If FOLDER has the name of a subcommand, write ./FOLDER.
      """, subcommands: [ShadowStart.self, ShadowStatus.self, ShadowPromote.self, ShadowStop.self],
    defaultSubcommand: ShadowStart.self)
}

/// `moongate policy shadow FOLDER`.
struct ShadowStart: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "start", abstract: "Load a candidate folder, in place of the current candidate.",
    discussion: """
      The gateway reads the folder itself, so it must be on the gateway's machine. Only root, the gateway's user and the owner of the active folder may have write \
      access to it. Relative paths in its files are relative to the active folder. Exit status: 1 if the folder has problems, which are listed.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @OptionGroup var admin: AdminOption
  @Argument(help: "The candidate folder.", completion: .directory) var candidate: String
  @OptionGroup var identity: OperatorOption
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    let gateway = try RunningGateway(configuration, admin)
    let path = URL(fileURLWithPath: candidate).standardizedFileURL.path
    let query = [("folder", path)] + (try gateway.asked(by: identity, "moongate policy shadow"))
    let answer = try await gateway.client.act(
      "POST", "/policy/shadow", query: query, within: RunningGateway.reloadTimeLimit)
    try gateway.demand(answer, json: json)
    try ShadowText.printReport(answer.body, json: json) {
      "generation \($0.id.prefix(8)) is the candidate. `moongate policy shadow status` shows what it would change."
    }
  }
}

/// `moongate policy shadow status`.
struct ShadowStatus: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status", abstract: "Show the decisions that the candidate would make differently, by cause.",
    discussion: "Exit status: 1 if decisions differ, 2 if there is no candidate.")

  @OptionGroup var configuration: ConfigurationOption
  @OptionGroup var admin: AdminOption
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    guard let answer = try await RunningGateway(configuration, admin).client.get("/policy") else {
      throw StartProblem("No gateway listens at the admin address.", status: .couldNotRun)
    }
    let seen = try ShadowText.printReport(answer.body, json: json) { $0.text }
    if !seen.differences.isEmpty { throw ExitCode(ExitStatus.found.rawValue) }
  }
}

/// `moongate policy shadow promote`.
struct ShadowPromote: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "promote", abstract: "Make the candidate the active configuration.",
    discussion: """
      The gateway reads and checks the candidate folder again, like a reload, and applies the gate of gateway.lua. Copy the files to the active folder: otherwise \
      the next start loads the old files from there. Exit status: 1 if the candidate is refused.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @OptionGroup var admin: AdminOption
  @Flag(help: "Skip the gate.") var force = false
  @OptionGroup var identity: OperatorOption
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    let gateway = try RunningGateway(configuration, admin)
    try await gateway.activate(
      "/policy/shadow/promote", force: force, by: identity, "moongate policy shadow promote", json: json)
  }
}

/// `moongate policy shadow stop`.
struct ShadowStop: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stop", abstract: "Remove the candidate and discard its results.")

  @OptionGroup var configuration: ConfigurationOption
  @OptionGroup var admin: AdminOption
  @OptionGroup var identity: OperatorOption

  func run() async throws {
    let gateway = try RunningGateway(configuration, admin)
    let query = try gateway.asked(by: identity, "moongate policy shadow stop")
    try gateway.demand(
      try await gateway.client.act("DELETE", "/policy/shadow", query: query, within: .seconds(5)), json: false)
    print("candidate removed")
  }
}

/// The state of the candidate, from the admin listener.
struct ShadowStatusReport: Decodable {
  struct Difference: Decodable {
    let about: String
    let active: String
    let candidate: String
    let rule: String?
    let count: Int
    let decisions: [String]
  }

  let id: String
  let folder: String
  let since: String
  let by: String?
  let judged: [String: Int]
  let differing: [String: Int]
  let dropped: [String: Int]
  let differences: [Difference]
  let otherDifferences: Int
  let countersRestarted: Int
  let warnings: [ConfigurationProblemDocument]
  let failure: String?

  enum CodingKeys: String, CodingKey {
    case id, folder, since, by, judged, differing, dropped, differences, warnings, failure
    case otherDifferences = "other_differences"
    case countersRestarted = "counters_restarted"
  }

  /// The text output for a terminal.
  var text: String {
    let all = { (counts: [String: Int]) in counts.values.reduce(0, +) }
    var lines = ["\(id.prefix(8)) from \(folder), since \(since)\(by.map { ", by \($0)" } ?? "")"]
    if let failure { lines.append("no longer compared: \(failure)") }
    let differ = all(differing) == 0 ? "none differs" : "\(all(differing)) differ"
    lines.append(
      "\(all(judged)) decisions: \(differ)\(all(dropped) > 0 ? "; \(all(dropped)) more were dropped because the queue was full" : "")"
    )
    if countersRestarted > 0 {
      lines.append("its counters were restarted \(countersRestarted) times: long locks may be missing")
    }
    for difference in differences {
      lines.append("")
      lines.append("  \(difference.count) × \(difference.about): \(difference.active) → \(difference.candidate)")
      if let rule = difference.rule { lines.append("    by \(rule)") }
      lines.append("    \(difference.decisions.joined(separator: " "))")
    }
    if otherDifferences > 0 { lines += ["", "  \(otherDifferences) × with other causes"] }
    lines += warnings.map { "warning: \($0.text)" }
    return lines.joined(separator: "\n")
  }
}

enum ShadowText {
  private struct Status: Decodable { let shadow: ShadowStatusReport? }

  /// - Throws: an error if there is no candidate.
  @discardableResult
  static func printReport(_ body: Data, json: Bool, _ text: (ShadowStatusReport) -> String) throws -> ShadowStatusReport
  {
    guard let seen = try JSONDecoder().decode(Status.self, from: body).shadow else {
      throw StartProblem("There is no candidate. Load one with `moongate policy shadow FOLDER`.", status: .couldNotRun)
    }
    if json {
      let members = try JSONSerialization.jsonObject(with: body) as? [String: Any]
      print(try ToolJSON.text(Array(try JSONSerialization.data(withJSONObject: members?["shadow"] ?? [:]))))
    } else {
      print(text(seen))
    }
    return seen
  }
}
