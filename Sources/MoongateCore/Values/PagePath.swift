/// The paths of the gateway's pages to which others lead. Those of providers follow from their descriptors
/// (`ProviderRegistry.ownPage`).
package enum PagePath {
  package static let signIn = "/auth/login"
  package static let register = "/auth/register"
  /// The link of an invitation.
  package static let invitation = "/auth/invite"
  /// The page of all providers without a page of their own.
  package static let step = "/auth/step"
  package static let account = "/auth/account"
  package static let signOut = "/auth/logout"
  package static let error = "/auth/error"
  /// Begins the paths to which apps send browsers, and those of their pages.
  package static let openID = "/auth/openid/"
  /// Where a sign-in that an app has begun continues (`AuthorizationRequest`).
  package static let appContinuation = "/auth/openid/continue"
  /// Asks whether an app may act for the account.
  package static let appConsent = "/auth/openid/consent"
  /// Where users enter the code that a device shows.
  package static let device = "/auth/device"

  /// Whether the address continues what an app or a device has begun.
  package static func continuesApp(_ address: String) -> Bool {
    [appContinuation, device].contains(String(address.prefix { $0 != "?" && $0 != "#" }))
  }

  /// The account page with the notice that something was done.
  package static func account(done what: String) -> String { "\(account)?done=\(what)" }
}
