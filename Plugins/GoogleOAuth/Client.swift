import MoongateSDK

/// Who we are to the provider, and which one it is, by gateway.lua.
struct Client: Sendable {
  static let google = "https://accounts.google.com"

  let issuer: String
  let id: String
  let secret: String
  /// The client ids of the operator's own apps.
  let apps: [String]

  /// - Throws: the setting that is missing.
  init(_ settings: StepSettings) throws {
    guard let id = settings.text("client_id"), !id.isEmpty else { throw OAuthFault.setting("client_id") }
    guard let secret = settings.secret("client_secret"), !secret.isEmpty else {
      throw OAuthFault.setting("client_secret")
    }
    issuer = settings.text("issuer") ?? Self.google
    self.id = id
    self.secret = secret
    apps = (settings.text("apps") ?? "").split(separator: " ").map(String.init)
  }

  /// Whether a name is the issuer's. Google signs as `accounts.google.com` too, and nobody else has a second name.
  func speaksFor(_ name: String) -> Bool { name == issuer || (issuer == Self.google && name == "accounts.google.com") }
}
