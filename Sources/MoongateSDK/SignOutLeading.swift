/// A provider at whose site users can sign out as well: the sign-out page leads them there.
public protocol SignOutLeading: Provider {
  /// Called after the session has ended, if this provider was passed in it and none after it had an address.
  /// - Parameter address: the page to which the site may lead the user back.
  /// - Returns: an https address; nil if the operator wants users to sign out here only.
  /// - Throws: if the site does not answer. The user has signed out here all the same.
  func signOutAddress(returningTo address: String, with tools: StepTools) async throws -> String?
}
