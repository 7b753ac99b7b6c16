import ArgumentParser
import Foundation
import MoongateCore
import MoongateSDK

/// `moongate keys`: the master keys. Never prints a byte of one, but for `add`, `rotate` and `retire` if the ring comes
/// from the environment or from systemd.
struct KeysCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keys", abstract: "Show, rotate and retire the master keys.",
    discussion: """
      One gateway: `keys rotate`. Several gateways with copies of one key file: `keys add`, copy the file to all of them; then `keys rotate`, and copy \
      again: so every gateway knows a key before another uses it. A gateway that runs takes a changed file within a second; one whose key comes from \
      the environment is restarted. Nothing that was made with a former key is lost by that. Exits with 0, with 1 where it refuses, with 2 where it \
      could not look.
      """,
    subcommands: [ShowKeys.self, AddKey.self, RotateKeys.self, RetireKey.self])
}

/// `moongate keys show`.
struct ShowKeys: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "List the keys, the oldest first, and how much of the store is still under each.")

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
    var census: KeyCensus?
    var reason: String?
    do {
      census = try await OperatorStore.with(configuration) { try await KeyCensus(of: $0.store, by: $0.keys) }
    } catch let problem as StartProblem {
      // The keys can be listed without their store.
      reason = problem.sentence
    }
    let lines = masters.members.map { member in
      Line(
        name: member.name, role: member.role.rawValue, oldest: member.name == masters.oldest.name,
        sealed: census.map { $0.sealed[member.name] ?? 0 },
        hashes: census.map { ($0.peppered[member.name] ?? [:]).reduce(into: [:]) { $0[$1.key.rawValue] = $1.value } })
    }
    if json { return print(try ToolJSON.text(Document(keys: lines, unreadable: census?.foreign))) }
    for line in lines {
      let role = line.role.padding(toLength: 8, withPad: " ", startingAt: 0)
      let uses = census.map { "  \($0.words(for: line.name))" } ?? ""
      print(
        "\(line.name)  \(role)\(uses)\(line.oldest && lines.count > 1 ? "; counters, locks and log hashes are by it" : "")"
      )
    }
    if let foreign = census?.foreign, foreign > 0 {
      print("\(foreign) record\(foreign == 1 ? "" : "s") under none of these keys, or changed")
    }
    if let reason { FileHandle.standardError.write(Data("moongate: the store was not counted. \(reason)\n".utf8)) }
  }
}

extension KeyCensus {
  /// `3 records, hashes in 2 of them (pin 1, password 1)`.
  func words(for name: String) -> String {
    let records = sealed[name] ?? 0
    let hashes = hashWords(for: name)
    return "\(records) record\(records == 1 ? "" : "s")" + (hashes.map { ", hashes of \($0)" } ?? "")
  }

  /// `password 1, pin 3`; nil where there are none.
  func hashWords(for name: String) -> String? {
    guard let found = peppered[name], !found.isEmpty else { return nil }
    return found.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
  }
}

/// Where the master keys come from, for commands that change them.
struct KeySource {
  private let location: KeyLocation

  init(_ location: KeyLocation) { self.location = location }

  /// The keys that are there; makes none.
  func read() throws(StartProblem) -> MasterKeys {
    if case .file(let path) = location, !FileManager.default.fileExists(atPath: path) {
      throw StartProblem("There is no key file \(path): a gateway that has run makes it.", status: .couldNotRun)
    }
    return try MasterKey(location).masters
  }

  /// Puts other keys in their place: in the file; a variable's are printed, for whoever sets it.
  /// - Parameter body: makes them; nothing is changed where it throws.
  func change(_ body: (MasterKeys) async throws -> MasterKeys) async throws {
    switch location {
    case .file(let path):
      let before = try read().oldest.name
      let changed = try await KeyFile.change(path, body)
      tell(
        "Keep a new copy of \(path), apart from the store; backups of the store from before need the copy from before.")
      if changed.oldest.name == before { tell("A gateway that runs takes it within a second.") }
    case .value:
      let changed = try await body(try read())
      tell("The key comes from the environment. Set its variable to these lines, all of them, and restart the gateway:")
      print(changed.text, terminator: "")
    case .credential(let path):
      let changed = try await body(try read())
      let name = (path as NSString).lastPathComponent
      tell(
        "systemd hands over the key. Write these lines, all of them, to the file that LoadCredential=\(name) names, and restart the gateway:"
      )
      print(changed.text, terminator: "")
    }
  }

  /// On standard error: standard output may be the ring itself.
  func tell(_ sentence: String) { FileHandle.standardError.write(Data((sentence + "\n").utf8)) }
}
