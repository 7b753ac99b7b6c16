import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy

/// `moongate policy shadow`: a candidate judges live traffic beside the active configuration, without effect.
struct PolicyShadowCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "shadow",
    abstract: "Let a candidate judge live traffic beside the active configuration, without effect.",
    discussion: """
      `moongate policy shadow FOLDER` loads the folder into the gateway that runs. It sends nothing, writes nothing and refuses nobody. `status` shows which \
      decisions would differ, and why; `promote` makes it the active configuration; `stop` ends it. Where FOLDER is called like one of these, write ./FOLDER.
      """, subcommands: [ShadowStart.self, ShadowStatus.self, ShadowPromote.self, ShadowStop.self],
    defaultSubcommand: ShadowStart.self)
}

/// `moongate policy shadow FOLDER`.
struct ShadowStart: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "start", abstract: "Load a folder, and let it look on in place of the one that does.",
    discussion: """
      The gateway reads the folder itself, so it must lie on its machine. Only root, the gateway's user and the owner of the folder that is served may be \
      able to change it. Relative paths in its files count from the folder that is served. Exits with 1 where it has problems, and tells them.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The candidate's folder.", completion: .directory) var candidate: String
  @OptionGroup var identity: OperatorOption
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    let gateway = try RunningGateway(configuration)
    let path = URL(fileURLWithPath: candidate).standardizedFileURL.path
    let query = [("folder", path)] + (try gateway.asked(by: identity, "moongate policy shadow"))
    let answer = try await gateway.client.act("POST", "/policy/shadow", query: query, within: Reload.patience)
    try gateway.demand(answer, json: json)
    try ShadowText.tell(answer.body, json: json) {
      "generation \($0.id.prefix(8)) looks on. `moongate policy shadow status` shows what it would change."
    }
  }
}

/// `moongate policy shadow status`.
struct ShadowStatus: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status", abstract: "Show which decisions the candidate would make otherwise, by cause.",
    discussion: "Exits with 1 where decisions differ, and with 2 where no candidate looks on.")

  @OptionGroup var configuration: ConfigurationOption
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    guard let answer = try await RunningGateway(configuration).client.get("/policy") else {
      throw StartProblem("No gateway listens there.", status: .couldNotRun)
    }
    let seen = try ShadowText.tell(answer.body, json: json) { $0.text }
    if !seen.differences.isEmpty { throw ExitCode(ExitStatus.found.rawValue) }
  }
}

/// `moongate policy shadow promote`.
struct ShadowPromote: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "promote", abstract: "Make the candidate the active configuration.",
    discussion: """
      Its folder is read and checked again, as by a reload, and it goes through the gate of gateway.lua. Copy its files to the folder that is served: until \
      then the next start takes those that lie there. Exits with 1 where it is refused.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Flag(help: "Pass over the gate.") var force = false
  @OptionGroup var identity: OperatorOption
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    let gateway = try RunningGateway(configuration)
    let query = (force ? [("force", "1")] : []) + (try gateway.asked(by: identity, "moongate policy shadow promote"))
    let answer = try await gateway.client.act("POST", "/policy/shadow/promote", query: query, within: Reload.patience)
    try gateway.demand(answer, json: json)
    try Reload.tell(answer, json: json)
  }
}

/// `moongate policy shadow stop`.
struct ShadowStop: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stop", abstract: "End the candidate, and forget what it has seen.")

  @OptionGroup var configuration: ConfigurationOption
  @OptionGroup var identity: OperatorOption

  func run() async throws {
    let gateway = try RunningGateway(configuration)
    let query = try gateway.asked(by: identity, "moongate policy shadow stop")
    try gateway.demand(
      try await gateway.client.act("DELETE", "/policy/shadow", query: query, within: .seconds(5)), json: false)
    print("it looks on no more")
  }
}

/// What the admin listener tells of the candidate.
struct SeenShadow: Decodable {
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

  /// For a person.
  var text: String {
    let all = { (counts: [String: Int]) in counts.values.reduce(0, +) }
    var lines = ["\(id.prefix(8)) from \(folder), since \(since)\(by.map { ", by \($0)" } ?? "")"]
    if let failure { lines.append("nothing is compared any more: \(failure)") }
    let differ = all(differing) == 0 ? "none differs" : "\(all(differing)) differ"
    lines.append(
      "\(all(judged)) decisions: \(differ)\(all(dropped) > 0 ? "; \(all(dropped)) more were not looked at, for want of room" : "")"
    )
    if countersRestarted > 0 {
      lines.append("its counters began anew \(countersRestarted) times: locks that last long may not be seen")
    }
    for difference in differences {
      lines.append("")
      lines.append("  \(difference.count) × \(difference.about): \(difference.active) → \(difference.candidate)")
      if let rule = difference.rule { lines.append("    by \(rule)") }
      lines.append("    \(difference.decisions.joined(separator: " "))")
    }
    if otherDifferences > 0 { lines += ["", "  \(otherDifferences) × by other causes"] }
    lines += warnings.map { "warning: \($0.text)" }
    return lines.joined(separator: "\n")
  }
}

enum ShadowText {
  private struct Status: Decodable { let shadow: SeenShadow? }

  /// - Throws: a sentence where no candidate looks on.
  @discardableResult
  static func tell(_ body: Data, json: Bool, _ text: (SeenShadow) -> String) throws -> SeenShadow {
    guard let seen = try JSONDecoder().decode(Status.self, from: body).shadow else {
      throw StartProblem("No candidate looks on. `moongate policy shadow FOLDER` lets one.", status: .couldNotRun)
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
