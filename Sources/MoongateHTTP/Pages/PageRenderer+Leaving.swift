import Hummingbird
import MoongateCore

extension PageRenderer {
  /// Continues on the page of the flow's next step, or on the other site that verifies it.
  func continueFlow(on view: FlowView, _ cookies: [String], _ exchange: Exchange) -> Response {
    guard let address = view.step?.redirectTo, view.status == .pending else {
      return exchange.redirect(to: exchange.address(of: view), cookies)
    }
    var response = leave(
      to: address, site: view.step.flatMap { exchange.page(of: $0.provider)?.shortName(words(exchange)) } ?? "",
      exchange)
    response.setCookies(cookies)
    return response
  }

  /// Leads a user who has signed out here to another site, where they sign out as well.
  func signOut(at site: SiteSignOut, _ exchange: Exchange) -> Response {
    if exchange.isScripted { return exchange.redirect(to: site.address) }
    let words = words(exchange)
    let name = exchange.page(of: site.provider)?.shortName(words) ?? ""
    return leave(to: site.address, site: name, heading: words["sign_out"], exchange)
  }

  /// - Parameters:
  ///   - address: the URL of the other site, from its provider.
  ///   - heading: by default, that the user continues with the site.
  private func leave(to address: String, site: String, heading: String? = nil, _ exchange: Exchange) -> Response {
    let words = words(exchange)
    let heading = heading ?? words.text("leave_title", ["site": site])
    return page(
      LeaveModel(heading: heading, subtitle: words.text("leave_subtitle", ["site": site]), address: address),
      title: heading, exchange)
  }
}
