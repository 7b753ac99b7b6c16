import Hummingbird
import MoongateCore

/// The page between ours and another site's. A form's redirects are held to our Content-Security-Policy, in which that site, and whatever
/// it redirects to in turn, does not stand; a page that leads on by itself is held to nothing, and works without script.
struct LeavePage {
  let frame: PageRenderer.Frame
  let site: String
  let address: String
}

extension PageRenderer {
  /// - Parameter address: of the other site, as its provider made it.
  func leave(to address: String, _ exchange: Exchange) -> Response {
    page(
      "leave", LeavePage(frame: frame("Continue with Google", exchange.gateway), site: "Google", address: address), generation: exchange.generation)
  }
}
