import MoongateSDK

/// How an app proves at the token endpoint that it is the one (RFC 6749 section 2.3).
package enum AppAuthentication: Sendable, Equatable {
  /// A public app: it has no secret (`none`).
  case none
  /// `client_secret_basic` and `client_secret_post`.
  case secret(SecretText)
  /// `private_key_jwt` (RFC 7523): the URL of its JWK set.
  case keys(String)

  /// Whether this is the secret of the app. The time does not depend on where the texts differ.
  package func accepts(_ text: String) -> Bool {
    guard case .secret(let secret) = self else { return false }
    return constantTimeEquals(TokenHash(of: secret.reveal().utf8).bytes, TokenHash(of: text.utf8).bytes)
  }
}

/// What a session must have for an app to receive its results.
package struct AppRequirement: Sendable, Equatable {
  /// The account must be in one of these groups; nil: no group is required.
  package let groups: GroupRequirement?
  /// All of them must be met.
  package let steps: [Requirement]
  /// The number of different factors that must have been proved (`Session.factorCount`); nil: as the flow demands.
  package let factors: Int?

  package init(groups: GroupRequirement? = nil, steps: [Requirement] = [], factors: Int? = nil) {
    self.groups = groups
    self.steps = steps
    self.factors = factors
  }

  package var isEmpty: Bool { groups == nil && steps.isEmpty && factors == nil }
}

/// A way to get tokens (RFC 6749 section 1.3), by its `grant_type`.
package enum GrantType: String, Sendable, CaseIterable {
  case authorizationCode = "authorization_code"
  case refreshToken = "refresh_token"
  case deviceCode = "urn:ietf:params:oauth:grant-type:device_code"
  case clientCredentials = "client_credentials"

  /// As in apps.lua.
  package var word: String { self == .deviceCode ? "device_code" : rawValue }
}

/// What an access token is.
package enum AccessTokenForm: Sendable, Equatable {
  /// A text that only the gateway can read.
  case opaque
  /// A signed JWT (RFC 9068) for these audiences. At least one.
  case jwt(audience: [String])
}

/// How long the tokens of an app are valid.
package struct AppLifetimes: Sendable, Equatable {
  package let idToken: Duration
  package let accessToken: Duration
  /// Since its last use.
  package let refreshToken: Duration

  package init(
    idToken: Duration = .seconds(300), accessToken: Duration = .seconds(600),
    refreshToken: Duration = .seconds(30 * 86_400)
  ) {
    self.idToken = idToken
    self.accessToken = accessToken
    self.refreshToken = refreshToken
  }
}

/// The scopes that have a meaning here (OpenID Connect Core 1.0 sections 5.4 and 11).
package enum AppScope {
  package static let openID = "openid"
  package static let profile = "profile"
  package static let email = "email"
  package static let phone = "phone"
  package static let groups = "groups"
  /// Refresh tokens that outlive the session.
  package static let offline = "offline_access"
  /// What an app may ask for by default.
  package static let standard: Set<String> = [openID, profile, email, groups]
  /// Those that mean nothing without a user.
  package static let aboutUsers: Set<String> = standard.union([phone, offline])
}

/// An error of OAuth 2.0 (RFC 6749 section 5.2, RFC 6750 section 3.1).
package struct OAuthError: Error, Sendable, Equatable {
  /// `invalid_grant`, `access_denied`, …
  package let code: String
  /// For the developer of the app. Names nothing secret; ASCII without `"` and `\`.
  package let description: String
  /// The HTTP status at the token endpoint and at resources.
  package let status: Int
  /// When the app may try again; nil: whenever it wants to.
  package var retryAfter: Duration?

  package init(_ code: String, _ description: String, status: Int = 400) {
    self.code = code
    self.description = description
    self.status = status
  }
}
