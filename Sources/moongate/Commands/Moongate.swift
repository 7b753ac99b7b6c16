import ArgumentParser
import Foundation
import MoongateSDK

/// The `moongate` program, for its own entry point and for programs that add their own providers:
/// ```swift
/// import MoongateCommand
///
/// await Moongate.run(providers: Moongate.shipped + [PigeonPost()])
/// ```
public enum Moongate {
  /// The providers included in Moongate, in the order in which pages offer them.
  public static let shipped: [any Provider] = Providers.shipped

  /// Runs the command of the command line and exits the process with status 0 (success), 1 (problems found) or 2 (could
  /// not run).
  /// - Parameter providers: all providers of this program, in the order in which pages offer them.
  public static func run(providers: [any Provider] = shipped) async -> Never {
    await Providers.$all.withValue(providers) { await CommandLineCall.run() }
    exit(ExitStatus.fine.rawValue)
  }
}

/// The root command. Each subcommand is in its own file.
struct RootCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "moongate",
    abstract: "An authentication gateway: every request must be authenticated before it reaches a service.",
    version: BuildVersion.text,
    subcommands: [
      Serve.self, Init.self, Check.self, Reload.self, Upgrade.self, Health.self, Doctor.self, Policy.self,
      ProviderCommand.self,
      AccountCommand.self,
      GroupCommand.self,
      LocksCommand.self,
      TokenCommand.self,
      PagesCommand.self,
      KeysCommand.self,
      StoreCommand.self, Version.self, ReferenceCommand.self, HelpCommand.self,
    ])
}

/// Runs the command and maps its result to an exit status.
enum CommandLineCall {
  static func run() async {
    do {
      try ProcessMemory.protect()
      var command = try RootCommand.parseAsRoot()
      if var asynchronous = command as? any AsyncParsableCommand {
        try await asynchronous.run()
      } else {
        try command.run()
      }
    } catch let problem as StartProblem {
      LineLog.standardError("moongate: \(problem.sentence)\n")
      exit(problem.status.rawValue)
    } catch let code as ExitCode {
      exit(code.rawValue)
    } catch {
      // Requested help is a success; everything else that the parser throws is bad usage.
      if RootCommand.exitCode(for: error) == .success { RootCommand.exit(withError: error) }
      LineLog.standardError(RootCommand.fullMessage(for: error) + "\n")
      exit(ExitStatus.couldNotRun.rawValue)
    }
  }
}
