import Hummingbird
import MoongateCore

/// `/auth/logout`: a form that posts to itself, so that a link or image of another site cannot sign users out.
package struct LogoutPage: Sendable {
  let driver: FlowDriver
  let ending: SessionEnding
  let pages: PageRenderer

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
        if let session = try await driver.session(exchange)?.session {
          try await exchange.mappingFaults { () async throws(StoreFault) in
            try await ending.end(session, by: exchange.client.address)
          }
          let caller = try await driver.caller(exchange)
          if let site = await driver.engine.siteSignOut(of: session, client: caller) {
            return Self.clearing(pages.signOut(at: site, exchange), exchange)
          }
        } else if let token = exchange.credentials.session {
          _ = try await exchange.mappingFaults { () async throws(StoreFault) in
            try await ending.end(replaced: token, by: exchange.client.address)
          }
        }
        // Signing out twice succeeds. All remaining cookies are removed.
        return Self.leave(to: returnTo ?? PagePath.signIn, exchange)
      },
    ]
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
