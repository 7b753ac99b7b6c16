import Foundation
import Hummingbird
import MoongateCore
import MoongateHTTP
import MoongateMockGoogle
import MoongateSDK

/// The demo's Google: where gateway.lua names `public_url` with `/mock-google` behind it as the issuer, the gateway is
/// that provider too.
enum GoogleDemo {
  private static let provider: ProviderName = "google_oauth"
  private static let path = "/mock-google"
  private static let secretBytes = 32

  /// Whether the gateway is its own Google.
  static func isOn(_ gateway: GatewaySettings) -> Bool {
    gateway.providers[provider]?.texts["issuer"] == issuer(gateway)
  }

  /// Makes the secret that both sides share, where the first start has none yet.
  /// - Throws: a sentence where the file cannot be made.
  static func makeSecret(for gateway: GatewaySettings) throws(StartProblem) {
    guard isOn(gateway), let file = gateway.providers[provider]?.missingFiles["client_secret"] else { return }
    _ = try MasterKey.make(file, Array((Base64URL.encode(SystemRandom().bytes(secretBytes)) + "\n").utf8))
  }

  /// What would let anyone in as anyone, or send secrets in the clear; and secrets whose file is not there and is not
  /// the demo's own.
  /// - Parameter listen: where the public listener listens, or is to.
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
            "mock Google lets anyone sign in as anyone, so it works only where public_url is on this machine: leave `issuer` out for Google itself"
        ))
    } else if isOn(gateway), !listen.isLoopback {
      // Attack: public_url is only what the gateway calls itself. Whoever reaches the listener asks it with
      // `Host: localhost`, and signs in there as anybody.
      problems.append(
        ConfigurationProblem(
          location: place(path), path: path,
          message:
            """
            mock Google lets anyone sign in as anyone, and other machines reach the listener on \(listen): listen on 127.0.0.1, or leave `issuer` out \
            for Google itself (for tests there is `moongate mock-google`)
            """))
    } else if !issuer.hasPrefix("https://"), !Loopback.contains(URLComponents(string: issuer)?.host ?? "") {
      problems.append(
        ConfigurationProblem(
          location: place(path), path: path,
          message: "\"\(issuer)\" is no issuer, such as \"https://login.example.com\": it must begin with https://"
        ))
    }
    return problems
  }

  /// A folder that began as the demo and now has an address of its own is told what became of its Google.
  private static func missing(_ file: String, of name: ProviderName, _ gateway: GatewaySettings) -> String {
    let message = "\(file): there is no such file"
    guard name == provider, let named = gateway.providers[provider]?.texts["issuer"], named.hasSuffix(path) else {
      return message
    }
    return """
      \(message). The demo's own Google would be \(issuer(gateway)), and `issuer` is \(named): make them the same, or leave `issuer` out and \
      put in what Google gave you, or take google_oauth out
      """
  }

  /// The provider, to be served by the public listener; nil where gateway.lua does not make the gateway one.
  static func mount(_ generations: ActiveGeneration) -> Mount? {
    let gateway = generations.current.gateway
    guard isOn(gateway) else { return nil }
    let mock = MockGoogle(
      issuer: issuer(gateway), clients: { client(generations.current.gateway).map { [$0] } ?? [] },
      random: { SystemRandom().bytes($0) })
    let site = MockGoogleSite(mock, path: path)
    return Mount(path: path) { await site.respond(to: $0) }
  }

  /// The gateway as the provider's one client, by the settings of now.
  private static func client(_ gateway: GatewaySettings) -> MockGoogle.Client? {
    guard isOn(gateway), let settings = gateway.providers[provider], let id = settings.texts["client_id"],
      let secret = settings.secrets["client_secret"]
    else { return nil }
    return MockGoogle.Client(
      id: id, secret: secret.reveal(), redirects: ["\(gateway.publicURL)/auth/callback/\(provider)"])
  }

  private static func issuer(_ gateway: GatewaySettings) -> String { gateway.publicURL.description + path }
}
