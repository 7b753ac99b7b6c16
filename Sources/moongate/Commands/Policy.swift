import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateSDK
import MoongateStore

/// `moongate policy`: what an operator asks about policies. Each question is a file of its own.
struct Policy: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Try out, explain and compare policies.",
    subcommands: [
      PolicyTest.self, Show.self, PolicyFacts.self, Explain.self, Simulate.self, Diff.self, PolicyShadowCommand.self,
      PolicyTypes.self,
    ])
}

extension ConfigurationOption {
  /// The folder's generation.
  /// - Throws: exit status 1 where there are problems, after telling them all on standard error.
  func generation() throws -> any PolicyGeneration { try loaded().generation }

  /// The folder's generation with its cases.
  /// - Throws: as above.
  func loaded() throws -> LoadedConfiguration { try Self.loaded(checked()) }

  /// The generation of any folder.
  static func generation(of folder: String) throws -> any PolicyGeneration { try loaded(folder).generation }

  /// The providers of this program, and, where a folder is named, its instances and programs.
  /// - Throws: a sentence where the folder has problems.
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
        "\(folder) has problems, so its providers cannot be told: `moongate check --config \(folder)` tells them.")
    }
    return generation.registry ?? compiledIn
  }

  private static func loaded(_ folder: String) throws -> LoadedConfiguration {
    let loader = ConfigurationLoader(
      providers: try Providers.registry().all, programs: ProviderProcessManager.forTools().loading())
    switch loader.read(folder: folder) {
    case .success(let loaded): return loaded
    case .failure(let refused):
      for problem in refused.problems { FileHandle.standardError.write(Data("\(problem)\n".utf8)) }
      throw ExitCode(refused.isFolderMissing ? ExitStatus.couldNotRun.rawValue : ExitStatus.found.rawValue)
    }
  }
}

/// Stores that live as long as a question.
enum PassingStore {
  @Sendable static func make() throws -> any Store { try SQLiteStore(path: ":memory:", keyFingerprint: []) }
}

/// What tools print for programs.
enum ToolJSON {
  /// JSON that is written already, in the form of `text(_ value:)`.
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

/// A length of time as the Lua files write it: `90s`, `12h`, `30d`.
struct Span: ExpressibleByArgument {
  let duration: Duration

  /// What check computes budgets for.
  static let month = Span(duration: .seconds(30 * 86_400))

  /// What a simulation may take: a person waits for it.
  static let nineSeconds = Span(duration: .seconds(9))

  private init(duration: Duration) { self.duration = duration }

  init?(argument: String) {
    guard let unit = argument.last, let seconds = ["s": 1, "m": 60, "h": 3600, "d": 86_400][unit],
      let count = Int64(argument.dropLast()), count > 0,
      count <= 36_500
    else { return nil }
    duration = .seconds(count * Int64(seconds))
  }

  /// As it is typed, for the help.
  var defaultValueDescription: String {
    let seconds = duration.components.seconds
    return seconds % 86_400 == 0 ? "\(seconds / 86_400)d" : "\(seconds)s"
  }
}

extension ProviderName: ExpressibleByArgument {
  public init?(argument: String) { self.init(rawValue: argument) }
}
