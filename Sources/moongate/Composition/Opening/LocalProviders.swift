import MoongateCore
import MoongateProgram
import MoongateSDK

/// Providers with settings that are safe only while no other machine reaches the gateway, such as the issuer of the
/// demo, which signs in anyone.
enum LocalProviders {
  private static let secretBytes = 32

  /// Creates their missing secret files at the first start, as for the master key. The demo's site reads the same file.
  /// - Throws: an error if a file cannot be created.
  static func makeSecrets(for gateway: GatewaySettings) throws(StartProblem) {
    for settings in gateway.providers.values where !settings.localOnly.isEmpty {
      for file in settings.missingFiles.values {
        _ = try MasterKey.make(file, Array((Base64URL.encode(SystemRandom().bytes(secretBytes)) + "\n").utf8))
      }
    }
  }

  /// Such settings of a gateway that other machines reach, and all other missing secret files.
  /// - Parameter listen: the address of the public listener.
  static func problems(of gateway: GatewaySettings, listen: ListenAddress) -> [ConfigurationProblem] {
    gateway.providers.sorted { $0.key < $1.key }.flatMap { name, settings in
      let problems =
        settings.localOnly.isEmpty
        ? settings.missingFiles.mapValues { "\($0): there is no such file" }
        : exposure(of: gateway, listen: listen).map { exposure in settings.localOnly.mapValues { "\($0). \(exposure)" }
        }
          ?? [:]
      return problems.sorted { $0.key < $1.key }.map { setting, message in
        let path = "providers.\(name).\(setting)"
        let location = gateway.locations[path] ?? SourceLocation(file: "gateway.lua", line: 0)
        return ConfigurationProblem(location: location, path: path, message: message)
      }
    }
  }

  /// How other machines reach the gateway; nil if they do not.
  private static func exposure(of gateway: GatewaySettings, listen: ListenAddress) -> String? {
    guard gateway.publicURL.isLoopback else { return "It works only if public_url is on this machine" }
    // Attack: `public_url` is only the configured name. Any client that reaches the listener can send `Host: localhost`
    // and sign in as any user.
    return listen.isLoopback ? nil : "Other machines can reach the listener on \(listen): listen on 127.0.0.1"
  }
}
