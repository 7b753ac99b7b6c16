/// A provider that publishes documents at well-known addresses of the site (RFC 8615). Its descriptor names them in
/// `wellKnown`. The gateway answers `GET /.well-known/NAME` with them while gateway.lua configures the provider.
///
/// The documents are public: they must not contain secrets or personal data.
public protocol WellKnownPublisher: Provider {
  /// The document.
  /// - Parameter name: one of the descriptor's `wellKnown`.
  /// - Returns: JSON; nil if the settings have no such document. The answer is then 404.
  func document(_ name: String, of site: PublicSite) throws -> String?
}

/// The site whose documents a provider publishes.
public struct PublicSite: Sendable {
  /// `public_url`: `https://auth.example.com`.
  public let origin: String
  /// The address of the account page.
  public let accountPage: String
  /// The address of the page on which a user sets up the provider's factor; nil if no flow does that.
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
