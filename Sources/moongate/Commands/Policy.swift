import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateSDK
import MoongateStore

/// `moongate policy`: tools for policies. Each subcommand is in its own file.
struct Policy: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Test, explain and compare policies.",
    subcommands: [
      PolicyTest.self, Show.self, PolicyFacts.self, Explain.self, Simulate.self, Diff.self, PolicyShadowCommand.self,
      PolicyTypes.self,
    ])
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
    option.folder = folder
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

/// In-memory stores for one command.
enum PassingStore {
  @Sendable static func make() throws -> any Store { try SQLiteStore(path: ":memory:", keyFingerprint: []) }
}

/// JSON output for programs.
enum ToolJSON {
  /// Reformats existing JSON like `text(_ value:)`.
  static func text(_ json: [UInt8]) throws -> String {
    let value = try JSONSerialization.jsonObject(with: Data(json), options: .fragmentsAllowed)
    let options: JSONSerialization.WritingOptions = [
      .sortedKeys, .withoutEscapingSlashes, .prettyPrinted, .fragmentsAllowed,
    ]
    return String(decoding: try JSONSerialization.data(withJSONObject: value, options: options), as: UTF8.self)
  }

  static func text(_ value: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted]
    return String(decoding: try encoder.encode(value), as: UTF8.self)
  }
}

/// A duration in the notation of the Lua files: `90s`, `12h`, `30d`.
struct Span: ExpressibleByArgument {
  let duration: Duration

  /// The period for which `check` computes budgets.
  static let month = Span(duration: .seconds(30 * 86_400))

  /// The time limit of a simulation, because a person waits for it.
  static let nineSeconds = Span(duration: .seconds(9))

  private init(duration: Duration) { self.duration = duration }

  init?(argument: String) {
    guard let duration = Duration(asWritten: argument), duration >= .seconds(1) else { return nil }
    self.duration = duration
  }

  /// The notation for the help text.
  var defaultValueDescription: String { duration.asWritten }
}

extension ProviderName: ExpressibleByArgument {
  public init?(argument: String) { self.init(rawValue: argument) }
}
