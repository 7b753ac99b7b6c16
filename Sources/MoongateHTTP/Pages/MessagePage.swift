import HTTPTypes
import Hummingbird
import MoongateCore

/// A page that says one thing and offers ways on.
struct MessagePage {
  struct Link {
    let address: String
    let label: String
    /// The class: `button` or `link`.
    var style = "button"
  }

  let frame: PageRenderer.Frame
  let heading: String
  let sentence: String
  let links: [Link]
  /// The decision's id, for support.
  let reference: String?
}

extension PageRenderer {
  /// A refusal as a page.
  package func page(for refusal: Refusal, generation: any PolicyGeneration) -> Response {
    var response = page(
      "message", message(for: refusal, gateway: generation.gateway), status: refusal.code.httpStatus, generation: generation)
    response.addRefusalHeaders(refusal)
    return response
  }

  /// The same as text, for the proxy, which writes its own head: it may be shown on any host, so its links name ours.
  package func html(for refusal: Refusal, gateway: GatewaySettings) -> String {
    html("message", message(for: refusal, gateway: gateway, base: gateway.publicURL.description))
  }

  private func message(for refusal: Refusal, gateway: GatewaySettings, base: String = "") -> MessagePage {
    let links: [MessagePage.Link] =
      switch refusal.code {
      case .unauthenticated: [MessagePage.Link(address: base + "/auth/login", label: "Sign in")]
      case .flowNotFound, .flowExpired, .originRefused: [MessagePage.Link(address: base + "/auth/login", label: "Start again")]
      default: []
      }
    return MessagePage(
      frame: frame(refusal.code.title, gateway), heading: refusal.code.title, sentence: refusal.sentence, links: links,
      reference: refusal.decision.text)
  }
}
