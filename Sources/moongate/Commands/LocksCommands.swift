import ArgumentParser
import MoongateCore
import MoongateHTTP
import MoongateProgram
import MoongateSDK

/// `moongate locks`: manages the locks of limits. Works directly on the store, whether or not a gateway is running.
struct LocksCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "locks", abstract: "List and lift the locks of limits.",
    discussion: """
      Exit status: 0 on success, 1 if the lock does not exist, 2 if the store is missing. `moongate account unlock` ends all locks that keep an account \
      from signing in.
      """,
    subcommands: [ListLocks.self, ClearLocks.self])
}

/// `moongate locks list`.
struct ListLocks: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the active locks with the identifiers that they apply to, oldest first.")

  @OptionGroup var configuration: ConfigurationOption
  @Flag(help: "Print JSON.") var json = false

  func run() async throws {
    try await OperatorStore.with(configuration) { opened in
      let locks = try await opened.administration.namedLocks(in: opened.generation)
      if json { return print(try ToolJSON.text(OperatorDocument.locks(locks, at: opened.now))) }
      for lock in locks { print(LockText(named: lock, now: opened.now).line) }
      if locks.isEmpty { print("no locks") }
    }
  }
}

/// `moongate locks clear NAME…`.
struct ClearLocks: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "clear", abstract: "Lift locks, and enable again what a limit disabled.")

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "A phone number in any format, an email address, an account id, or the id of a lock.") var names:
    [String] = []
  @Flag(help: "Lift all active locks.") var all = false
  @OptionGroup var identity: OperatorOption
  @Flag(help: "Print JSON.") var json = false

  private struct Cleared: Encodable {
    let cleared: [String]
    let unknown: [String]
  }

  func run() async throws {
    guard all != !names.isEmpty else { throw StartProblem("Name locks or use --all.", status: .couldNotRun) }
    try await OperatorStore.with(configuration) { opened in
      let administration = opened.administration.acting(as: try identity.identity("moongate locks clear"))
      var cleared: [NamedLock] = []
      var unknown: [String] = []
      for name in all ? [nil] : names.map(Optional.some) {
        let found =
          if let name {
            try await administration.locks(named: name, region: opened.gateway.region, in: opened.generation)
          } else {
            try await administration.namedLocks(in: opened.generation)
          }
        var count = 0
        for lock in found where try await administration.clear(lock) == .done {
          cleared.append(lock)
          count += 1
        }
        if let name, count == 0 { unknown.append(name) }
      }
      if json {
        print(try ToolJSON.text(Cleared(cleared: cleared.map(\.lock.id), unknown: unknown)))
      } else {
        for name in unknown { print("There is no lock \(name).") }
        if !all { for lock in cleared { print(LockText(named: lock, now: opened.now).line) } }
        print("\(cleared.count) lock\(cleared.count == 1 ? "" : "s") lifted")
      }
      if !unknown.isEmpty { throw ExitCode(ExitStatus.found.rawValue) }
    }
  }
}
