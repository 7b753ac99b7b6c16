import ArgumentParser
import Foundation

/// Runs a command, and ends the process if it fails.
package enum CommandLineCall {
  /// Returns after success. Otherwise exits with status 1 (problems found) or 2 (could not run).
  /// - Parameters:
  ///   - root: the command of the program, with its subcommands.
  ///   - arguments: nil for those of the process.
  package static func run(_ root: any ParsableCommand.Type, _ arguments: [String]? = nil) async {
    do {
      try ProcessMemory.protect()
      var command = try root.parseAsRoot(arguments)
      if var asynchronous = command as? any AsyncParsableCommand {
        try await asynchronous.run()
      } else {
        try command.run()
      }
    } catch let problem as StartProblem {
      LineLog.standardError("\(root._commandName): \(problem.sentence)\n")
      exit(problem.status.rawValue)
    } catch let code as ExitCode {
      exit(code.rawValue)
    } catch {
      // Requested help is a success; everything else that the parser throws is bad usage.
      if root.exitCode(for: error) == .success { root.exit(withError: error) }
      LineLog.standardError(root.fullMessage(for: error) + "\n")
      exit(ExitStatus.couldNotRun.rawValue)
    }
  }
}
