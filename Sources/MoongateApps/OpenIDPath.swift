import MoongateCore

/// The paths of the endpoints. The discovery documents name them.
enum OpenIDPath {
  /// The documents of OpenID Connect Discovery 1.0 and RFC 8414.
  static let documents = OwnPaths.discovery

  static let authorize = App.requestPath
  static let pushed = "/auth/openid/par"
  static let token = "/auth/openid/token"
  static let userInfo = "/auth/openid/userinfo"
  static let revoke = "/auth/openid/revoke"
  static let introspect = "/auth/openid/introspect"
  static let device = "/auth/openid/device"
  static let keys = "/auth/openid/keys"
  static let signOut = "/auth/openid/logout"
  /// Where the form of the sign-out page leads.
  static let signOutConfirmed = "/auth/openid/logout/confirm"
}
