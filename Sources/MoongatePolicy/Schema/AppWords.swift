import MoongateCore

/// The words of `access_token` of an app.
enum AppAccessTokenWord: String, CaseIterable { case opaque, jwt }

/// The words of `pkce` of an app.
enum AppPKCE: String, CaseIterable { case required, optional }

/// The words of `subject` of an app.
enum AppSubject: String, CaseIterable { case `public`, pairwise }

extension App {
  /// The path of the request that `decide` and `claims` of an app read.
  static let requestPath = "/auth/openid/authorize"
}
