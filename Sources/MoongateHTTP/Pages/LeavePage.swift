import Hummingbird
import MoongateCore

/// The page between ours and another site's. A form's redirects are held to our Content-Security-Policy, in which that site, and whatever
/// it redirects to in turn, does not stand; a page that leads on by itself is held to nothing, and works without script.
struct LeavePage {
  let heading: String
  let subtitle: String
  let address: String
}

extension PageRenderer {
  /// - Parameter address: of the other site, as its provider made it.
  func leave(to address: String, _ exchange: Exchange) -> Response {
    let words = words(exchange)
    return page(
      "leave",
      LeavePage(
        heading: words.text("leave_title", ["site": "Google"]), subtitle: words.text("leave_subtitle", ["site": "Google"]), address: address),
      title: words["leave_page"], exchange)
  }
}
