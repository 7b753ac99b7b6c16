import ArgumentParser
import Foundation
import MoongateSDK

/// The `moongate` program, for its own main and for mains that list providers of their own beside the shipped ones:
/// ```swift
/// import MoongateCommand
///
/// await Moongate.run(providers: Moongate.shipped + [PigeonPost()])
/// ```
public enum Moongate {
  /// The providers that come with Moongate, in the order in which they are offered.
  public static let shipped: [any Provider] = Providers.shipped

  /// Reads the command line, does what it says, and ends the process with the exit statuses of exact.md: 0, 1 (found
  /// something), 2 (could not run).
  /// - Parameter providers: all that this program has, in the order in which they are offered.
  public static func run(providers: [any Provider] = shipped) async -> Never {
    await Providers.$all.withValue(providers) { await CommandLineCall.run() }
    exit(ExitStatus.fine.rawValue)
  }
}

/// The command. Each subcommand is a file of its own.
struct RootCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "moongate",
    abstract: "An authentication gateway: it makes every caller prove who they are before a request reaches a service.",
    version: BuildVersion.text,
    subcommands: [
      Serve.self, Init.self, Check.self, Reload.self, Upgrade.self, Health.self, Doctor.self, Policy.self,
      ProviderCommand.self,
      AccountCommand.self,
      GroupCommand.self,
      LocksCommand.self,
      TokenCommand.self,
      KeysCommand.self,
      StoreCommand.self, MockGoogleCommand.self, Version.self, ReferenceCommand.self, HelpCommand.self,
    ])
}

/// Where every tool looks for its configuration.
struct ConfigurationOption: ParsableArguments {
  @Option(name: .customLong("config"), help: "The folder with gateway.lua, routes.lua, policies/ and flows/.")
  var folder = "config"

  /// - Throws: a sentence, with exit status 2, where there is no such folder.
  func checked() throws(StartProblem) -> String {
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder), isFolder.boolValue else {
      throw StartProblem(
        "There is no folder \(folder). Name the configuration's folder by --config FOLDER.", status: .couldNotRun)
    }
    return folder
  }
}

/// Runs the command and turns whatever ends it into the exit statuses of exact.md.
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
      FileHandle.standardError.write(Data("moongate: \(problem.sentence)\n".utf8))
      exit(problem.status.rawValue)
    } catch let code as ExitCode {
      exit(code.rawValue)
    } catch {
      // Help that was asked for is no mistake; anything else that the parser throws is bad usage.
      if RootCommand.exitCode(for: error) == .success { RootCommand.exit(withError: error) }
      FileHandle.standardError.write(Data((RootCommand.fullMessage(for: error) + "\n").utf8))
      exit(ExitStatus.couldNotRun.rawValue)
    }
  }
}

/// What a tool's end tells a script.
enum ExitStatus: Int32 {
  case fine = 0
  /// There is a problem, and it was told.
  case found = 1
  /// Bad usage, or nothing there to look at.
  case couldNotRun = 2
}

/// Why a command ended early, in a sentence for whoever started it: what, where, and what to do.
struct StartProblem: Error {
  let sentence: String
  let status: ExitStatus

  init(_ sentence: String, status: ExitStatus = .found) {
    self.sentence = sentence
    self.status = status
  }
}
