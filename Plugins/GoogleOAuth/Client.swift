import MoongateSDK

/// The client registration and the issuer from gateway.lua.
struct Client: Sendable {
  static let google = "https://accounts.google.com"

  let issuer: String
  let id: String
  let secret: String
  /// The client ids of the operator's own apps.
  let apps: [String]

  /// - Throws: an error with the missing setting.
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

  /// Whether the name is the issuer's. Google also uses `accounts.google.com`; other issuers have only one name.
  func speaksFor(_ name: String) -> Bool { name == issuer || (issuer == Self.google && name == "accounts.google.com") }
}
