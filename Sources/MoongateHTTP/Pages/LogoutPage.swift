import Hummingbird
import MoongateCore

/// `/auth/logout`: a form that posts to itself, so that a link or image of another site cannot sign users out.
package struct LogoutPage: Sendable {
  let driver: FlowDriver
  let ending: SessionEnding
  let pages: PageRenderer

  package init(driver: FlowDriver, ending: SessionEnding, pages: PageRenderer) {
    self.driver = driver
    self.ending = ending
    self.pages = pages
  }

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, PagePath.signOut, servesAllDomains: true) { exchange throws(Refusal) in
        let returnTo = exchange.targets.accept(try exchange.query()["return_to"])
        let model = LogoutModel(
          isSignedIn: try await driver.session(exchange) != nil, returnTo: returnTo, back: NextPage.back(returnTo))
        return pages.page(model, title: pages.words(exchange)["sign_out"], exchange)
      },
      Endpoint(.page, .post, PagePath.signOut, servesAllDomains: true) { exchange throws(Refusal) in
        let returnTo = exchange.targets.accept(try await exchange.form()["return_to"])
        return try await signOut(exchange, followsSite: true, to: returnTo ?? PagePath.signIn)
      },
    ]
  }

  /// Signs the browser out for an app, and leads back to it.
  /// - Parameter address: the app's address, already validated; nil: the app names none, and the user may sign out at
  ///   another site as well.
  package func signOut(to address: String?, _ exchange: Exchange) async throws(Refusal) -> Response {
    try await signOut(exchange, followsSite: address == nil, to: address ?? PagePath.signIn)
  }

  /// - Parameter followsSite: whether the user also signs out at the other site that has signed them in.
  private func signOut(
    _ exchange: Exchange, followsSite: Bool, to address: String
  ) async throws(Refusal) -> Response {
    if let session = try await driver.session(exchange)?.session {
      try await exchange.mappingFaults { () async throws(StoreFault) in
        try await ending.end(session, by: exchange.client.address)
      }
      let caller = try await driver.caller(exchange)
      if followsSite, let site = await driver.engine.siteSignOut(of: session, client: caller) {
        return Self.clearing(pages.signOut(at: site, exchange), exchange)
      }
    } else if let token = exchange.credentials.session {
      _ = try await exchange.mappingFaults { () async throws(StoreFault) in
        try await ending.end(replaced: token, by: exchange.client.address)
      }
    }
    // Signing out twice succeeds. All remaining cookies are removed.
    return Self.leave(to: address, exchange)
  }

  /// Signs this device out: removes the session cookies and everything that pages of this origin have stored, including
  /// services behind the gateway.
  ///
  /// Data that a service stores in a browser (drafts, caches, offline copies) belongs to the user who was signed in,
  /// and the next user of the device must not find it. Only the gateway knows that the user has signed out. "cookies"
  /// is not cleared, because that would remove the cookies of every subdomain and the device token.
  package static func leave(to address: String, _ exchange: Exchange) -> Response {
    clearing(exchange.redirect(to: address), exchange)
  }

  static func clearing(_ response: Response, _ exchange: Exchange) -> Response {
    var response = response
    response.setCookies(exchange.cookies.signOut())
    response.headers.set("Clear-Site-Data", to: "\"storage\"")
    return response
  }
}
