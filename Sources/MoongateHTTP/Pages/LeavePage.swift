import Hummingbird
import MoongateCore

/// The page between ours and another site's. A form's redirects are held to our Content-Security-Policy, in which that
/// site, and whatever it redirects to in turn, does not stand; a page that leads on by itself is held to nothing, and
/// works without script.
struct LeavePage: PageModel {
  static let template = PageTemplate.leave
  let heading: String
  let subtitle: String
  let address: String
}

extension PageRenderer {
  /// Leads a person on: to the page that the flow waits on, or to the other site that its step is judged at.
  func lead(on view: FlowView, _ cookies: [String], _ exchange: Exchange) -> Response {
    guard let address = view.step?.redirectTo, view.status == .pending else {
      return exchange.leadOn(to: exchange.address(of: view), cookies)
    }
    var response = leave(
      to: address, site: view.step.flatMap { exchange.page(of: $0.provider)?.shortName(words(exchange)) } ?? "",
      exchange)
    response.setCookies(cookies)
    return response
  }

  /// - Parameter address: of the other site, as its provider made it.
  private func leave(to address: String, site: String, _ exchange: Exchange) -> Response {
    let words = words(exchange)
    return page(
      LeavePage(
        heading: words.text("leave_title", ["site": site]), subtitle: words.text("leave_subtitle", ["site": site]),
        address: address),
      title: words.text("leave_title", ["site": site]), exchange)
  }
}
