import Hummingbird
import MoongateCore

/// `/auth/logout`: a form that posts to itself, so that no link or picture of another site signs anyone out.
struct LogoutPage: Sendable {
  let driver: FlowDriver
  let ending: SessionEnding
  let pages: PageRenderer

  private struct Model {
    let isSignedIn: Bool
    let returnTo: String?
  }

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, "/auth/logout") { exchange throws(Refusal) in
        let returnTo = exchange.targets.accept(try exchange.query()["return_to"])
        let model = Model(isSignedIn: try await driver.session(exchange) != nil, returnTo: returnTo)
        return pages.page("logout", model, title: pages.words(exchange)["sign_out"], exchange)
      },
      Endpoint(.page, .post, "/auth/logout") { exchange throws(Refusal) in
        let returnTo = exchange.targets.accept(try await exchange.form()["return_to"])
        if let session = try await driver.session(exchange)?.session {
          try await exchange.asking { () async throws(StoreFault) in try await ending.end(session, by: exchange.client.address) }
        }
        // Twice is as good as once: whatever cookies are there go.
        var response = exchange.leadOn(to: returnTo ?? "/auth/login", GatewayCookies(exchange.gateway).signOut())
        // What pages here have kept on the device goes too. Not "cookies": those of every subdomain would go, and the device's own token.
        response.headers.set("Clear-Site-Data", to: "\"storage\"")
        return response
      },
    ]
  }
}
