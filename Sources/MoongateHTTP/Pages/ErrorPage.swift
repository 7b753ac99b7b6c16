import Hummingbird
import MoongateCore

/// `/auth/error?code=…`: what one of our codes means, for programs that send people here.
struct ErrorPage: Sendable {
  let pages: PageRenderer

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, "/auth/error") { exchange throws(Refusal) in
        // From the closed set of codes: the text of a link is never shown.
        let name = try exchange.query()["code"]
        throw exchange.refusal(RefusalCode(reserved: name ?? "") ?? .badRequest, detail: name == nil ? "Something went wrong." : nil)
      }
    ]
  }
}
