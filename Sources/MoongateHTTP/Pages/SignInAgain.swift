import MoongateCore

/// An app asks a user who is signed in to sign in again (`prompt=login`, `max_age`). The return address of the pages
/// says so, because all of them keep it.
package enum SignInAgain {
  /// The end of such a return address.
  package static let mark = "&again=1"

  /// Whether the pages show their forms to users who are signed in. Their new session replaces the old one, as after
  /// each sign-in.
  static func isMarked(_ returnTo: String?) -> Bool {
    guard let returnTo else { return false }
    return returnTo.hasPrefix(PagePath.appContinuation + "?") && returnTo.hasSuffix(mark)
  }
}
