import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

/// `/auth/logout/{provider}`: an empty page that another site embeds when a user signs out there (OpenID Connect
/// Front-Channel Logout 1.0 section 2).
///
/// Attack: another page embeds it, or leads the user to it. The session of the browser ends only if the address names
/// the session at the site that opened it. The other page sees the same answer, whatever has ended.
struct EmbeddedSignOutPage: Sendable {
  let driver: FlowDriver
  let ending: SessionEnding

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, "\(PagePath.signOut)/{}") { exchange throws(Refusal) in
        let query = try exchange.query()
        guard let name = ProviderName(rawValue: exchange.parameters[0]) else { throw exchange.refusal(.notFound) }
        guard
          let ended = driver.engine.embeddedSignOut(
            issuer: query["iss"] ?? "", session: query["sid"] ?? "", of: name, in: exchange.generation)
        else { throw exchange.refusal(.notFound) }
        // Attack: an address that names no session would sign out the user of any browser.
        guard query["iss"] != nil, query["sid"] != nil else { throw exchange.refusal(.badRequest) }
        return try await sign(out: ended, of: name, exchange)
      }
    ]
  }

  private func sign(out ended: EmbeddedSignOut, of name: ProviderName, _ exchange: Exchange) async throws(Refusal)
    -> Response
  {
    var response = Response.plain(.ok, type: "text/html; charset=utf-8", [])
    if !Self.isOpenedByItself(exchange.request), let session = try await driver.session(exchange)?.session,
      driver.engine.isOpened(session, by: ended, of: name)
    {
      try await exchange.mappingFaults { () async throws(StoreFault) in
        try await ending.end(session, by: exchange.client.address, for: name)
      }
      response = LogoutPage.clearing(response, exchange)
    }
    response.headers.set(
      "Content-Security-Policy", to: "default-src 'none'; base-uri 'none'; frame-ancestors \(ended.origin)")
    return response
  }

  /// Whether the browser says that it does not embed the page (Fetch Metadata, `Sec-Fetch-Dest`).
  ///
  /// Attack: an application that the site has told the same session leads the user here. Unlike a page that another
  /// site embeds, one that it leads to gets the cookie.
  private static func isOpenedByItself(_ request: Request) -> Bool {
    HTTPField.Name("Sec-Fetch-Dest").map { request.headers[$0] } == "document"
  }
}
