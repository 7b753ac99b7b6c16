/// A provider at whose site users can sign out as well: the sign-out page leads them there.
public protocol SignOutLeading: Provider {
  /// Called after the session has ended, if this provider was passed in it and none after it had an address.
  /// - Parameter address: the page to which the site may lead the user back.
  /// - Returns: an https address; nil if the operator wants users to sign out here only.
  /// - Throws: if the site does not answer. The user has signed out here all the same.
  func signOutAddress(returningTo address: String, with tools: StepTools) async throws -> String?
}

/// A provider whose site signs a user out everywhere by a page that embeds an address of each application, here
/// `/auth/logout/NAME` (OpenID Connect Front-Channel Logout 1.0).
///
/// Anyone can embed that address. It therefore ends only the session of the browser that opens it, and only if
/// `Proof.siteSession` of that session is the same.
public protocol SignOutEmbedding: Provider {
  /// - Parameters:
  ///   - issuer: the parameter `iss`.
  ///   - session: the parameter `sid`.
  ///   - settings: values of the declared types.
  /// - Returns: nil if the settings name no site.
  func embeddedSignOut(issuer: String, session: String, settings: StepSettings) -> EmbeddedSignOut?
}

/// What the page of another site ends in the user's browser.
public struct EmbeddedSignOut: Sendable, Equatable {
  /// As in `Proof.siteSession`.
  public let siteSession: String
  /// The origin of the pages that may embed the answer.
  public let origin: String

  public init(siteSession: String, origin: String) {
    self.siteSession = siteSession
    self.origin = origin
  }
}
