import ArgumentParser
import Foundation
import MoongateCore
import MoongatePolicy
import MoongateProgram
import MoongateSDK

/// `moongate app`: shows the apps of apps.lua and what they get, and writes their secrets.
struct AppCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "app", abstract: "List the apps of apps.lua, show what they learn about a user, and write secrets.",
    discussion: """
      An app is a service that signs its users in here with OpenID Connect. Its name is its key in apps.lua, which is its client id. \
      Exit status: 0 on success; 1 if the app does not exist or refuses the user; 2 if the store or the file cannot be used.
      """, subcommands: [ListApps.self, ShowAppClaims.self, WriteAppSecret.self])
}

/// `moongate app list`.
struct ListApps: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the apps by client id.")

  @OptionGroup var configuration: ConfigurationOption
  @Flag(help: "Print JSON.") var json = false

  private struct Line: Encodable {
    let app: String
    let name: String
    let authentication: String
    let grants: [String]
    let scopes: [String]
    let consent: String
    /// In Lua syntax; null if everybody with a session may sign in.
    let require: String?
    let decide: Bool
    let file: String?
    let line: Int?

    private enum CodingKeys: CodingKey {
      case app, name, authentication, grants, scopes, consent, require, decide, file, line
    }

    init(_ app: App) {
      self.app = app.id
      name = app.name
      authentication =
        switch app.authentication {
        case .none: "public"
        case .secret: "secret"
        case .keys: "keys"
        }
      grants = GrantType.allCases.filter(app.grants.contains).map(\.word)
      scopes = app.scopes.sorted()
      consent = app.consent.rawValue
      require = app.requirement.isEmpty ? nil : app.requirement.asWritten
      decide = app.decide != nil
      file = app.locations[""]?.file
      line = app.locations[""]?.line
    }

    /// Missing values are encoded as null.
    func encode(to encoder: any Encoder) throws {
      var members = encoder.container(keyedBy: CodingKeys.self)
      try members.encode(app, forKey: .app)
      try members.encode(name, forKey: .name)
      try members.encode(authentication, forKey: .authentication)
      try members.encode(grants, forKey: .grants)
      try members.encode(scopes, forKey: .scopes)
      try members.encode(consent, forKey: .consent)
      try members.encode(require, forKey: .require)
      try members.encode(decide, forKey: .decide)
      try members.encode(file, forKey: .file)
      try members.encode(line, forKey: .line)
    }

    var text: String {
      var parts = [app, name == app ? nil : "\"\(name)\"", authentication, grants.joined(separator: ", ")]
      parts.append(require.map { "requires \($0)" })
      parts.append(decide ? "asks `decide`" : nil)
      parts.append(file.map { file in line.map { "\(file):\($0)" } ?? file })
      return parts.compactMap(\.self).joined(separator: "  ")
    }
  }

  func run() async throws {
    let apps = try configuration.generation().apps.apps.map(Line.init)
    if json { return print(try ToolJSON.text(apps)) }
    for app in apps { print(app.text) }
    if apps.isEmpty { print("no apps") }
  }
}

/// `moongate app secret APP`.
struct WriteAppSecret: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "secret", abstract: "Write a new secret to the file that apps.lua names.",
    discussion: """
      The secret has 256 random bits; only the owner of the file can read it. A running gateway accepts it within a second, and no longer the one before. \
      The command does not print it: copy it from the file into the app.
      """)

  @OptionGroup var configuration: ConfigurationOption
  @Argument(help: "The client id of the app, for example grafana.") var app: String
  @Flag(help: "Print JSON.") var json = false

  private struct Written: Encodable {
    let app: String
    let file: String
  }

  func run() async throws {
    let path = try file(of: configuration.checked())
    let isReplaced = try SecretFile.write(Base64URL.encode(SystemRandom().bytes(32)) + "\n", to: path)
    if json { return print(try ToolJSON.text(Written(app: app, file: path))) }
    let previous = "; the previous secret stops within a second: copy the new one into the app"
    print("a new secret of \(app) is in \(path)\(isReplaced ? previous : "")")
  }

  /// The file of the secret.
  private func file(of folder: String) throws -> String {
    let loader = ConfigurationLoader(providers: try Providers.registry().all)
    let source: AppSecretSource
    do throws(RefusedConfiguration) { source = try loader.secretSource(ofApp: app, folder: folder) } catch {
      for problem in error.problems { LineLog.standardError("\(problem)\n") }
      throw ExitCode(error.isFolderMissing ? ExitStatus.couldNotRun.rawValue : ExitStatus.found.rawValue)
    }
    let file = "secret = file \"secrets/\(app)\""
    switch source {
    case .file(let path): return path
    case .environment(let name):
      throw StartProblem(
        "apps.lua takes the secret of \(app) from the environment variable \(name). Set it there, or write \(file) in apps.lua.",
        status: .couldNotRun)
    case .credential(let name):
      throw StartProblem(
        "apps.lua takes the secret of \(app) from the systemd credential \(name). Write it there, or write \(file) in apps.lua.",
        status: .couldNotRun)
    case .absent:
      throw StartProblem(
        "apps.lua names no secret of \(app). Write \(file) there, instead of `public` or `keys`.", status: .couldNotRun)
    }
  }
}
