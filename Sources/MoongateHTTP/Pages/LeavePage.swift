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
  /// - Parameters:
  ///   - address: of the other site, as its provider made it.
  ///   - site: what people call it.
  func leave(to address: String, site: String = "Google", _ exchange: Exchange) -> Response {
    let words = words(exchange)
    return page(
      "leave",
      LeavePage(
        heading: words.text("leave_title", ["site": site]), subtitle: words.text("leave_subtitle", ["site": site]), address: address),
      title: words.text("leave_title", ["site": site]), exchange)
  }
}
