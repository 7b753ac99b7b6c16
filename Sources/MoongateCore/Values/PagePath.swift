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

  /// The account page with the notice that something was done.
  package static func account(done what: String) -> String { "\(account)?done=\(what)" }
}
