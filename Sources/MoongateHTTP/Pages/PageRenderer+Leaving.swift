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

  /// - Parameter address: the URL of the other site, from its provider.
  private func leave(to address: String, site: String, _ exchange: Exchange) -> Response {
    let words = words(exchange)
    return page(
      LeaveModel(
        heading: words.text("leave_title", ["site": site]), subtitle: words.text("leave_subtitle", ["site": site]),
        address: address),
      title: words.text("leave_title", ["site": site]), exchange)
  }
}
