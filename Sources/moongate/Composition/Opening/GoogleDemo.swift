import Foundation
import Hummingbird
import MoongateCore
import MoongateHTTP
import MoongateMockGoogle
import MoongateSDK

/// The mock Google provider of the demo. The gateway serves it if the issuer in gateway.lua is `public_url` followed by
/// `/mock-google`.
enum GoogleDemo {
  private static let provider: ProviderName = "google_oauth"
  private static let path = "/mock-google"
  private static let secretBytes = 32

  /// Whether the gateway serves the mock provider itself.
  static func isOn(_ gateway: GatewaySettings) -> Bool {
    gateway.providers[provider]?.texts["issuer"] == issuer(gateway)
  }

  /// Creates the client secret for both sides at the first start.
  /// - Throws: an error if the file cannot be created.
  static func makeSecret(for gateway: GatewaySettings) throws(StartProblem) {
    guard isOn(gateway), let file = gateway.providers[provider]?.missingFiles["client_secret"] else { return }
    _ = try MasterKey.make(file, Array((Base64URL.encode(SystemRandom().bytes(secretBytes)) + "\n").utf8))
  }

  /// Problems that would let anyone sign in as any user or send secrets unencrypted, and missing secret files that are
  /// not the demo's own.
  /// - Parameter listen: the address of the public listener.
  static func problems(of gateway: GatewaySettings, listen: ListenAddress) -> [ConfigurationProblem] {
    let place = { (setting: String) in gateway.locations[setting] ?? SourceLocation(file: "gateway.lua", line: 0) }
    var problems: [ConfigurationProblem] = []
    for (name, settings) in gateway.providers.sorted(by: { $0.key < $1.key }) {
      for (setting, file) in settings.missingFiles.sorted(by: { $0.key < $1.key })
      where !(name == provider && isOn(gateway)) {
        let path = "providers.\(name).\(setting)"
        problems.append(
          ConfigurationProblem(location: place(path), path: path, message: missing(file, of: name, gateway)))
      }
    }
    guard let issuer = gateway.providers[provider]?.texts["issuer"] else { return problems }
    let path = "providers.google_oauth.issuer"
    if isOn(gateway), !gateway.publicURL.isLoopback {
      problems.append(
        ConfigurationProblem(
          location: place(path), path: path,
          message:
            "mock Google lets anyone sign in as anyone, so it works only if public_url is on this machine: to use Google itself, remove `issuer`"
        ))
    } else if isOn(gateway), !listen.isLoopback {
      // Attack: `public_url` is only the configured name. Any client that reaches the listener can send `Host:
      // localhost` and sign in as any user.
      problems.append(
        ConfigurationProblem(
          location: place(path), path: path,
          message:
            """
            mock Google lets anyone sign in as anyone, and other machines can reach the listener on \(listen): listen on 127.0.0.1, or remove `issuer` \
            to use Google itself (for tests, use `moongate mock-google`)
            """))
    } else if !issuer.hasPrefix("https://"), !Loopback.contains(URLComponents(string: issuer)?.host ?? "") {
      problems.append(
        ConfigurationProblem(
          location: place(path), path: path,
          message:
            "\"\(issuer)\" is not an issuer: it must begin with https://, for example \"https://login.example.com\""
        ))
    }
    return problems
  }

  /// The problem of a missing secret file, with advice for a demo folder whose public address has changed.
  private static func missing(_ file: String, of name: ProviderName, _ gateway: GatewaySettings) -> String {
    let message = "\(file): there is no such file"
    guard name == provider, let named = gateway.providers[provider]?.texts["issuer"], named.hasSuffix(path) else {
      return message
    }
    return """
      \(message). The issuer of the demo's mock Google would be \(issuer(gateway)), but `issuer` is \(named): make them equal, or remove `issuer` and \
      enter the client of Google itself, or remove google_oauth
      """
  }

  /// The provider for the public listener; nil if gateway.lua does not enable it.
  static func mount(_ generations: ActiveGeneration) -> Mount? {
    let gateway = generations.current.gateway
    guard isOn(gateway) else { return nil }
    let mock = MockGoogle(
      issuer: issuer(gateway), clients: { client(generations.current.gateway).map { [$0] } ?? [] },
      random: { SystemRandom().bytes($0) })
    let site = MockGoogleSite(mock, path: path)
    return Mount(path: path) { await site.respond(to: $0) }
  }

  /// The gateway as the only client of the provider, from the current settings.
  private static func client(_ gateway: GatewaySettings) -> MockGoogle.Client? {
    guard isOn(gateway), let settings = gateway.providers[provider], let id = settings.texts["client_id"],
      let secret = settings.secrets["client_secret"]
    else { return nil }
    return MockGoogle.Client(
      id: id, secret: secret.reveal(), redirects: ["\(gateway.publicURL)/auth/callback/\(provider)"])
  }

  private static func issuer(_ gateway: GatewaySettings) -> String { gateway.publicURL.description + path }
}
