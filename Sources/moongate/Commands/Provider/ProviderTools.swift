import ArgumentParser
import Foundation
import MoongateProgram

/// The tools for authors of providers, which are the program `moongate-provider`.
package enum ProviderTools {
  /// Runs a command of the tools. A program that contains them replaces this.
  @TaskLocal package static var run: @Sendable ([String]) async throws -> Void = { try replaceProcess(with: $0) }

  /// Replaces this process by the program, which keeps the folder, the environment and the terminal.
  ///
  /// Attack: a program of the same name lies in the current folder or in a folder of PATH. It is not run.
  /// - Throws: an error if there is no such program.
  private static func replaceProcess(with arguments: [String]) throws(StartProblem) {
    // The threads of the concurrency pool block signals, which the program would inherit: Ctrl-C would not end it.
    var none = sigset_t()
    sigemptyset(&none)
    pthread_sigmask(SIG_SETMASK, &none, nil)
    guard let path else {
      throw StartProblem(
        "/proc/self/exe cannot be read, so that moongate-provider is not found: run it by its own path.",
        status: .couldNotRun)
    }
    let words = ([path] + arguments).map { strdup($0) }
    defer { for word in words { free(word) } }
    execv(path, words + [nil])
    throw StartProblem(
      "\(path) cannot be run: \(String(cString: strerror(errno))). It is the program that creates and tests providers: "
        + "install it beside this one.", status: .couldNotRun)
  }

  /// The commands of the tools, as `--experimental-dump-help` prints them; nil if the program is missing.
  static func dumpedHelp() -> String? {
    guard let path else { return nil }
    let (process, output) = (Process(), Pipe())
    process.executableURL = URL(filePath: path)
    process.arguments = ["--experimental-dump-help"]
    process.standardOutput = output
    guard (try? process.run()) != nil else { return nil }
    defer { process.waitUntilExit() }
    return String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
  }

  /// The program beside the file that this process runs, whatever link started it.
  ///
  /// Attack: where /proc is not mounted, a relative path would run a program of the working folder.
  /// - Returns: nil if the file is not known.
  private static var path: String? {
    guard let own = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"), own.hasPrefix("/")
    else { return nil }
    return URL(filePath: own).deletingLastPathComponent().appending(path: "moongate-provider").path(
      percentEncoded: false)
  }
}

/// A command of `moongate-provider` that `moongate provider` runs as well.
protocol ProviderToolCommand: AsyncParsableCommand {
  var arguments: [String] { get }
}

extension ProviderToolCommand {
  func run() async throws { try await ProviderTools.run([Self._commandName] + arguments) }
}

/// `moongate provider test`, the same as `moongate-provider test`.
struct RunProviderTest: ProviderToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "test", abstract: "Run the conformance suite against a provider: the same as moongate-provider test.")

  @Argument(
    parsing: .captureForPassthrough, help: "The arguments of moongate-provider test.", completion: .file())
  var arguments: [String] = []
}

/// `moongate provider new`, the same as `moongate-provider new`.
struct RunProviderNew: ProviderToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "new", abstract: "Create a provider: the same as moongate-provider new.")

  @Argument(parsing: .captureForPassthrough, help: "The arguments of moongate-provider new.")
  var arguments: [String] = []
}
