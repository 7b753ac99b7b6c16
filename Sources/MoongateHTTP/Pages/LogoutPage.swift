import Hummingbird
import MoongateCore

/// `/auth/logout`: a form that posts to itself, so that no link or picture of another site signs anyone out.
struct LogoutPage: Sendable {
  let driver: FlowDriver
  let ending: SessionEnding
  let pages: PageRenderer

  struct Model: PageModel {
    static let template = PageTemplate.logout
    let isSignedIn: Bool
    let returnTo: String?
    let back: String
  }

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, "/auth/logout", servesAllDomains: true) { exchange throws(Refusal) in
        let returnTo = exchange.targets.accept(try exchange.query()["return_to"])
        let model = Model(
          isSignedIn: try await driver.session(exchange) != nil, returnTo: returnTo, back: NextPage.back(returnTo))
        return pages.page(model, title: pages.words(exchange)["sign_out"], exchange)
      },
      Endpoint(.page, .post, "/auth/logout", servesAllDomains: true) { exchange throws(Refusal) in
        let returnTo = exchange.targets.accept(try await exchange.form()["return_to"])
        if let session = try await driver.session(exchange)?.session {
          try await exchange.asking { () async throws(StoreFault) in
            try await ending.end(session, by: exchange.client.address)
          }
        }
        // Twice is as good as once: whatever cookies are there go.
        return Self.leave(to: returnTo ?? "/auth/login", exchange)
      },
    ]
  }

  /// Away from this device: the cookies of the session go, and with them all that pages of this origin have kept here,
  /// those of the services behind the gateway among them. What a service stores in a browser (drafts, caches, offline
  /// copies) belongs to who was signed in; whoever sits down next must not find it, and only here is it known that this
  /// person has left. Not "cookies": those of every subdomain would go, and the device's own token.
  static func leave(to address: String, _ exchange: Exchange) -> Response {
    var response = exchange.leadOn(to: address, exchange.cookies.signOut())
    response.headers.set("Clear-Site-Data", to: "\"storage\"")
    return response
  }
}
