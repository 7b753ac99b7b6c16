/// Paths that several parts of the gateway treat in their own way.
package enum OwnPaths {
  /// The names below `/.well-known/` of the documents that describe the gateway as an OpenID provider (OpenID Connect
  /// Discovery 1.0 section 4, RFC 8414 section 3).
  package static let discovery = ["openid-configuration", "oauth-authorization-server"].map { "/.well-known/\($0)" }

  /// What the scripts of apps that run in a browser call, without the user's session.
  private static let callsOfApps =
    discovery + ["token", "userinfo", "revoke", "keys", "par", "device"].map { "/auth/openid/\($0)" }

  /// Whether scripts of an app's origin may call the path.
  package static func scriptsOfAppsMayCall(_ path: Substring) -> Bool { callsOfApps.contains { $0 == path } }
}
