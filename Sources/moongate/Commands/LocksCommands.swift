import ArgumentParser
import MoongateCore
import MoongateSDK

/// `moongate locks`: the locks of limits. Works on the store itself, whether a gateway runs on it or not.
struct LocksCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "locks", abstract: "List and lift the locks of limits.",
    discussion:
      "Exits with 0, with 1 where there is no such lock, with 2 where there is no store. An account is unlocked by `moongate account unlock`.",
    subcommands: [ListLocks.self, ClearLocks.self])
}

/// `moongate locks list`.
struct ListLocks: AsyncParsableCommand {
  static let configuration = CommandConfiguration(commandName: "list", abstract: "List the locks that stand, oldest first.")

  @OptionGroup var configuration: ConfigurationOption
  @Flag(help: "Print JSON.") var json = false

  /// As `GET /locks` tells it.
  private struct Line: Encodable {
    let id: String
    let provider: String
    let limit: String
    let since: String
    let until: String?
  }

  func run() async throws {
    try await OperatorStore.with(configuration) { opened in
      let locks = try await opened.desk.locks().map {
        Line(id: $0.id, provider: $0.provider.rawValue, limit: $0.limit, since: $0.since.text, until: $0.until?.text)
      }
      if json { return print(try ToolJSON.text(locks)) }
      for lock in locks { print("\(lock.id)  \(lock.provider) \(lock.limit)  since \(lock.since)  \(lock.until.map { "until \($0)" } ?? "off")") }
      if locks.isEmpty { print("no locks") }
    }
  }
}

/// `moongate locks clear ID…`.
struct ClearLocks: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "clear", abstract: "Lift locks, and turn on again what a limit turned off.")

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The locks, as `moongate locks list` names them.") var ids: [String] = []
  @Flag(help: "All that stand.") var all = false
  @Flag(help: "Print JSON.") var json = false

  private struct Cleared: Encodable {
    let cleared: [String]
    let unknown: [String]
  }

  func run() async throws {
    guard all != !ids.isEmpty else { throw StartProblem("Name locks, or say --all.", status: .couldNotRun) }
    try await OperatorStore.with(configuration) { opened in
      var cleared: [String] = []
      var unknown: [String] = []
      for id in all ? try await opened.desk.locks().map(\.id) : ids {
        if try await opened.desk.clearLock(id) == .done { cleared.append(id) } else { unknown.append(id) }
      }
      if json {
        print(try ToolJSON.text(Cleared(cleared: cleared, unknown: unknown)))
      } else {
        for id in unknown { print("There is no lock \(id).") }
        print("\(cleared.count) lock\(cleared.count == 1 ? "" : "s") lifted")
      }
      if !unknown.isEmpty { throw ExitCode(ExitStatus.found.rawValue) }
    }
  }
}
