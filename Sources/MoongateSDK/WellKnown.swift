/// A provider that publishes documents at well-known addresses of the site (RFC 8615). Its descriptor names them in
/// `wellKnown`, and the gateway answers `GET /.well-known/NAME` with them while gateway.lua configures the provider.
///
/// Everybody can read them: they say nothing of a secret or a person.
public protocol WellKnownPublisher: Provider {
  /// The document.
  /// - Parameter name: one of the descriptor's `wellKnown`.
  /// - Returns: JSON; nil if these settings have no such document, which is answered 404.
  func document(_ name: String, of site: PublicSite) throws -> String?
}

/// The site whose documents a provider publishes.
public struct PublicSite: Sendable {
  /// `public_url`: `https://auth.example.com`.
  public let origin: String
  /// The address of the page on which people look after their account.
  public let accountPage: String
  /// The address of the page on which an account sets up what the provider keeps; nil if no flow does so.
  public let setUpPage: String?
  /// The provider's own settings.
  public let settings: StepSettings

  public init(origin: String, accountPage: String, setUpPage: String?, settings: StepSettings) {
    self.origin = origin
    self.accountPage = accountPage
    self.setUpPage = setUpPage
    self.settings = settings
  }
}
