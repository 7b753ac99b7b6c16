import MoongateCore

/// An app asks a user who is signed in to sign in again (`prompt=login`, `max_age`). The return address of the pages
/// says so, because all of them keep it.
package enum SignInAgain {
  /// The end of such a return address, to which pages may add a fragment.
  package static let mark = "&again=1"

  /// Whether the pages show their forms to users who are signed in. Their new session replaces the old one, as after
  /// each sign-in.
  static func isMarked(_ returnTo: String?) -> Bool {
    PagePath.continuation(behind: returnTo)?["again"] == "1"
  }
}

/// An app would like a user who is signed in to pass another step (`acr_values`). Nobody has to: the user may have lost
/// the factor.
package enum WishedStep {
  /// The end of the return address.
  package static let mark = "&asked=1"

  /// Whether "Cancel" leads on to the app.
  static func isMarked(_ returnTo: String?) -> Bool { PagePath.continuation(behind: returnTo)?["asked"] == "1" }
}

extension PagePath {
  /// The parameters of the continuation to which a return address leads; nil if it leads elsewhere.
  fileprivate static func continuation(behind returnTo: String?) -> FormFields? {
    guard let returnTo, returnTo.hasPrefix(appContinuation + "?") else { return nil }
    return FormFields(returnTo.utf8.prefix { $0 != UInt8(ascii: "#") }.dropFirst(appContinuation.utf8.count + 1))
  }
}
