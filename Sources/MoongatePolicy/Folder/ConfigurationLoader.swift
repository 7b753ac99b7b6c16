import Foundation
import MoongateCore
import MoongateSDK

/// Why a folder did not become a generation.
package struct RefusedConfiguration: Error, Sendable {
  /// SHA-256 over the files that could be read; nil if the folder does not exist or cannot be listed.
  package let id: String?
  /// All problems, by file and line.
  package let problems: [ConfigurationProblem]
  /// Whether the folder does not exist or cannot be listed.
  package let isFolderMissing: Bool
  /// Warnings; empty if the files could not be read.
  package let warnings: [ConfigurationProblem]

  package init(
    id: String?, problems: [ConfigurationProblem], isFolderMissing: Bool, warnings: [ConfigurationProblem] = []
  ) {
    self.id = id
    self.problems = problems
    self.isFolderMissing = isFolderMissing
    self.warnings = warnings
  }
}

/// A valid configuration, with the test cases that must pass before it becomes active.
package struct LoadedConfiguration: Sendable {
  package let generation: any PolicyGeneration
  /// The cases of all files in `tests/`.
  package let cases: [PolicyCase]
  /// The cases that the configured providers ship, for the flows that they ship.
  package let providerCases: [PolicyCase]
}

/// Where apps.lua keeps the secret of an app.
package enum AppSecretSource: Sendable, Equatable {
  /// The path of a file, which need not exist.
  case file(String)
  /// An environment variable.
  case environment(String)
  /// A systemd credential.
  case credential(String)
  /// The app names no secret.
  case absent

  fileprivate init(_ secret: LuaNode?, folder: String) {
    guard case .tagged(let word, let arguments)? = secret?.value, case .text(let name)? = arguments.first?.value else {
      self = .absent
      return
    }
    switch word {
    case "file": self = .file(name.hasPrefix("/") ? name : "\(folder)/\(name)")
    case "env": self = .environment(name)
    case "credential": self = .credential(name)
    default: self = .absent
    }
  }
}

/// Loads a configuration folder: reads and checks all of it, and returns a generation or all problems.
///
/// `serve`, `check` and every reload use the same loader. It has no state. Loading blocks while it reads files, so call
/// it on a thread that may block.
package struct ConfigurationLoader: Sendable {
  let providers: [any Provider]
  let environment: [String: String]
  let pageProblems: @Sendable ([PageFile], GatewaySettings?) -> [ConfigurationProblem]
  let shippedLanguages: [String]
  let gatewayProblems: @Sendable (GatewaySettings) -> [ConfigurationProblem]
  let programs: ProgramLoading?

  /// More than five parameters: one for each service, most with defaults.
  /// - Parameters:
  /// - providers: the compiled-in providers.
  /// - environment: the environment for `env "NAME"`.
  /// - pages: checks the files of `pages/` and the page settings of gateway.lua.
  /// - languages: the languages that the pages are shipped in; empty without pages.
  /// - gateway: further checks of gateway.lua.
  /// - programs: starts the programs that gateway.lua names; nil if programs cannot be started.
  package init(
    providers: [any Provider], environment: [String: String] = ProcessInfo.processInfo.environment,
    pages: @escaping @Sendable ([PageFile], GatewaySettings?) -> [ConfigurationProblem] = { _, _ in [] },
    languages: [String] = [],
    gateway: @escaping @Sendable (GatewaySettings) -> [ConfigurationProblem] = { _ in [] },
    programs: ProgramLoading? = nil
  ) {
    shippedLanguages = languages
    gatewayProblems = gateway
    self.programs = programs
    self.providers = providers
    self.environment = environment
    pageProblems = pages
  }

  /// Loads the generation of a folder without running its cases.
  package func load(folder: String) -> Result<any PolicyGeneration, RefusedConfiguration> {
    read(folder: folder).map(\.generation)
  }

  /// The settings of gateway.lua, without reading the other files and without starting programs; nil if it cannot be
  /// read.
  package func settings(folder: String) -> GatewaySettings? {
    let problems = Problems()
    let files = ConfigurationFiles(folder: folder)
    guard let file = files.file("gateway.lua") else { return nil }
    var lua = LuaFiles(problems: problems)
    lua.share(files.shared(problems))
    var catalog = ProviderCatalog(compiledIn: providers.map(\.descriptor))
    guard let node = lua.read(file, constructor: "gateway", example: "gateway { … }", types: catalog.types)?.first
    else { return nil }
    catalog.descriptors += CandidateInstances(node, types: catalog.descriptors, problems: problems).descriptors
    catalog.configured = GatewayReader.configured(node, catalog)
    let secrets = SecretReader(folder: folder, environment: environment)
    return GatewayReader(folder: folder, catalog: catalog, secrets: secrets, problems: problems).read(node)
  }

  /// Where apps.lua keeps the secret of an app. Neither the secret nor any other file is read, so the secret need not
  /// exist.
  /// - Throws: the problems of apps.lua, also if it does not define the app.
  package func secretSource(ofApp id: String, folder: String) throws(RefusedConfiguration) -> AppSecretSource {
    let problems = Problems()
    let files = ConfigurationFiles(folder: folder)
    problems.add(files.problems)
    var lua = LuaFiles(problems: problems)
    lua.share(files.shared(problems))
    var apps: TableReader?
    if let file = files.file("apps.lua") {
      apps = lua.read(file, constructor: "apps", example: "apps { … }")?.first.flatMap {
        TableReader($0, nil, path: "", problems: problems)
      }
    } else if files.isFolderThere {
      problems.add(SourceLocation(file: "apps.lua", line: 0), "", "does not exist: add it with the app \"\(id)\"")
    }
    if let apps, case .tagged("app", let arguments)? = apps.explicitValue(id)?.value,
      case .table(let settings)? = arguments.first?.value
    {
      return AppSecretSource(settings.fields["secret"], folder: folder)
    }
    if let apps {
      problems.add(
        SourceLocation(file: "apps.lua", line: 0), "",
        "defines no app \"\(id)\"\(Suggestion.phrase(for: id, among: apps.names))")
    }
    throw RefusedConfiguration(
      id: nil, problems: Problems.sorted(problems.all), isFolderMissing: !files.isFolderThere)
  }

  /// Loads the folder. Never crashes and never hangs, even for malicious folders.
  /// - Parameter base: the base of relative paths; nil: the folder itself.
  package func read(folder: String, base: String? = nil) -> Result<LoadedConfiguration, RefusedConfiguration> {
    let files = ConfigurationFiles(folder: folder)
    guard files.isFolderThere else {
      return .failure(RefusedConfiguration(id: nil, problems: files.problems, isFolderMissing: true))
    }
    var reader = FolderReader(self, files: files, folder: base ?? folder)
    let loaded = reader.read()
    let problems = reader.problems.all
    if let loaded, problems.isEmpty { return .success(loaded) }
    return .failure(
      RefusedConfiguration(id: reader.files.digest, problems: Problems.sorted(problems), isFolderMissing: false))
  }
}
