import ArgumentParser
import Foundation
import MoongateCore
import MoongateProgram
import MoongateSDK

/// `moongate keys`: manages the master keys. The commands print no key material, except `add`, `rotate` and `retire` if
/// the keys come from the environment or from systemd.
struct KeysCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keys", abstract: "Show, rotate and retire the master keys.",
    discussion: """
      Single gateway: `keys rotate`. Several gateways with copies of one key file: run `keys add`, copy the file to all of them, run `keys rotate`, and copy \
      the file again. Every gateway then knows a key before another gateway uses it. A running gateway reloads a changed file within a second; restart a \
      gateway whose key comes from the environment. Everything that was made with a former key stays valid. Exit status: 0 on success, 1 if the command refuses, 2 if it \
      could not run.
      """,
    subcommands: [ShowKeys.self, AddKey.self, RotateKeys.self, RetireKey.self])
}

/// `moongate keys show`.
struct ShowKeys: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "List the keys, oldest first, and how many records of the store each one still protects.")

  @OptionGroup var configuration: ConfigurationOption
  @Flag(help: "Print JSON.") var json = false

  private struct Line: Encodable {
    let name: String
    let role: String
    let oldest: Bool
    let sealed: Int?
    let hashes: [String: Int]?
  }

  private struct Document: Encodable {
    let keys: [Line]
    let unreadable: Int?
  }

  func run() async throws {
    let location = try configuration.generation().gateway.key
    let masters = try KeySource(location).read()
    var usage: KeyUsage?
    var reason: String?
    do {
      usage = try await OperatorStore.with(configuration) { try await KeyUsage(of: $0.store, by: $0.keys) }
    } catch let problem as StartProblem {
      // The keys can be listed even if the store cannot be opened.
      reason = problem.sentence
    }
    let lines = masters.members.map { member in
      Line(
        name: member.name, role: member.role.rawValue, oldest: member.name == masters.oldest.name,
        sealed: usage.map { $0.sealed[member.name] ?? 0 },
        hashes: usage.map { ($0.peppered[member.name] ?? [:]).reduce(into: [:]) { $0[$1.key.rawValue] = $1.value } })
    }
    if json { return print(try ToolJSON.text(Document(keys: lines, unreadable: usage?.foreign))) }
    for line in lines {
      let role = line.role.padding(toLength: 8, withPad: " ", startingAt: 0)
      let uses = usage.map { "  \($0.words(for: line.name))" } ?? ""
      print(
        "\(line.name)  \(role)\(uses)\(line.oldest && lines.count > 1 ? "; used for counters, locks and log hashes" : "")"
      )
    }
    if let foreign = usage?.foreign, foreign > 0 {
      print("\(foreign) record\(foreign == 1 ? "" : "s") under no known key, or changed")
    }
    if let reason { LineLog.standardError("moongate: the store was not counted. \(reason)\n") }
  }
}

extension KeyUsage {
  /// The uses of a key, for example `3 records, hashes of password 1, pin 3`.
  func words(for name: String) -> String {
    let records = sealed[name] ?? 0
    let hashes = hashWords(for: name)
    return "\(records) record\(records == 1 ? "" : "s")" + (hashes.map { ", hashes of \($0)" } ?? "")
  }

  /// The hashes under a key by provider, for example `password 1, pin 3`; nil if none exist.
  func hashWords(for name: String) -> String? {
    guard let found = peppered[name], !found.isEmpty else { return nil }
    return found.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
  }
}
