import ArgumentParser
// Import Glibc explicitly: the compiler attributes `struct stat` to the first of these modules that it loads.
import CDispatch
import CoreFoundation
import Foundation
import Glibc
import MoongateCore
import MoongatePolicy
import MoongateProgram

/// The configuration folder of a command.
struct ConfigurationOption: ParsableArguments {
  @Option(
    name: .customLong("config"),
    help: ArgumentHelp(
      "The configuration folder, with gateway.lua, routes.lua, policies/ and flows/. Without it: the folder in the "
        + "environment variable MOONGATE_CONFIG, or config in the current folder, or /etc/moongate.",
      valueName: "folder"))
  var named: String?

  /// The folder that is named, or the one where packages and units keep the configuration.
  var folder: String { named ?? Self.standard(ProcessInfo.processInfo.environment) }

  /// The folder that is used without `--config`.
  ///
  /// Attack: another user makes a folder `config` with programs in /tmp, where an operator runs a command.
  /// - Parameter owner: returns the ID of the user who owns a folder, or nil if the folder does not exist.
  static func standard(_ environment: [String: String], owner: (String) -> uid_t? = owner(of:)) -> String {
    if let named = environment["MOONGATE_CONFIG"], !named.isEmpty { return named }
    guard owner("/etc/moongate") != nil else { return "config" }
    return [0, geteuid()].contains(owner("config")) ? "config" : "/etc/moongate"
  }

  private static func owner(of path: String) -> uid_t? {
    var status = stat()
    return stat(path, &status) == 0 ? status.st_uid : nil
  }

  /// - Throws: an error with exit status 2 if the folder does not exist, or if this user may not read it.
  func checked() throws(StartProblem) -> String {
    if access(folder, R_OK | X_OK) != 0, errno == EACCES {
      throw StartProblem(
        "Permission denied: this user cannot read the folder \(folder). "
          + "Run the command as the gateway's user, or let that user read the folder.", status: .couldNotRun)
    }
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder), isFolder.boolValue else {
      throw StartProblem(
        "There is no folder \(folder). Name the configuration folder with --config FOLDER or MOONGATE_CONFIG.",
        status: .couldNotRun)
    }
    return folder
  }
}

extension ConfigurationOption {
  /// The generation of the folder.
  /// - Throws: exit status 1 if there are problems, after printing all of them on standard error.
  func generation() throws -> any PolicyGeneration { try loaded().generation }

  /// The generation of the folder with its test cases.
  /// - Throws: like `generation()`.
  func loaded() throws -> LoadedConfiguration { try Self.loaded(checked()) }

  /// The generation of another folder.
  static func generation(of folder: String) throws -> any PolicyGeneration { try loaded(folder).generation }

  /// The providers of this program and, if a folder is given, its instances and programs.
  /// - Throws: an error if the folder has problems.
  static func registry(of folder: String?) async throws -> ProviderRegistry {
    let compiledIn = try Providers.registry()
    guard let folder else { return compiledIn }
    var option = ConfigurationOption()
    option.named = folder
    let programs = ProviderProcessManager.forTools()
    let asked = ConfigurationFolder(path: try option.checked(), providers: compiledIn, programs: programs.loading())
    let generation = asked.generation()
    await programs.end()
    guard let generation else {
      throw StartProblem(
        "The providers of \(folder) cannot be listed because the folder has problems. Run `moongate check --config \(folder)`."
      )
    }
    return generation.registry ?? compiledIn
  }

  private static func loaded(_ folder: String) throws -> LoadedConfiguration {
    let loader = ConfigurationLoader(
      providers: try Providers.registry().all, programs: ProviderProcessManager.forTools().loading())
    switch loader.read(folder: folder) {
    case .success(let loaded): return loaded
    case .failure(let refused):
      for problem in refused.problems { LineLog.standardError("\(problem)\n") }
      throw ExitCode(refused.isFolderMissing ? ExitStatus.couldNotRun.rawValue : ExitStatus.found.rawValue)
    }
  }
}
