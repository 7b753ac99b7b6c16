import Hummingbird
import MoongateCore

/// `/auth/logout`: a form that posts to itself, so that no link or picture of another site signs anyone out.
struct LogoutPage: Sendable {
  let driver: FlowDriver
  let ending: SessionEnding
  let pages: PageRenderer

  private struct Model {
    let frame: PageRenderer.Frame
    let isSignedIn: Bool
    let returnTo: String?
  }

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, "/auth/logout") { exchange throws(Refusal) in
        let returnTo = exchange.targets.accept(try exchange.query()["return_to"])
        let model = Model(
          frame: pages.frame("Sign out", exchange.gateway), isSignedIn: try await driver.session(exchange) != nil, returnTo: returnTo)
        return pages.page("logout", model, generation: exchange.generation)
      },
      Endpoint(.page, .post, "/auth/logout") { exchange throws(Refusal) in
        let returnTo = exchange.targets.accept(try await exchange.form()["return_to"])
        if let session = try await driver.session(exchange)?.session {
          try await exchange.asking { () async throws(StoreFault) in try await ending.end(session, by: exchange.client.address) }
        }
        // Twice is as good as once: whatever cookies are there go.
        var response = Response.seeOther(returnTo ?? "/auth/login")
        response.setCookies(GatewayCookies(exchange.gateway).signOut())
        return response
      },
    ]
  }
}
