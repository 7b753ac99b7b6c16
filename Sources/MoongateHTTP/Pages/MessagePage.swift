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

  let heading: String
  let sentence: String
  let links: [Link]
  /// The line with the decision's id, for support.
  var reference: String?
  var stressesSupport = false
}

extension PageRenderer {
  /// A refusal as a page.
  func page(for refusal: Refusal, to request: Request, _ generation: any PolicyGeneration) -> Response {
    let words = LanguageChoice.choose(request, chosen: nil, among: set(of: generation).languages) ?? set(of: generation).languages[0]
    let isHere = !(request.head.path ?? "").hasPrefix("/auth/error")
    var response = page(
      "message", message(for: refusal, words, isHere: isHere), title: { $0.translated(refusal.code.title) }, status: refusal.code.httpStatus, request,
      generation)
    response.addRefusalHeaders(refusal)
    return response
  }

  /// The same as text, for the proxy, which writes its own head: it may be shown on any host, so its links name ours.
  /// - Parameter languages: the request's `Accept-Language`.
  package func html(for refusal: Refusal, languages: String?, generation: any PolicyGeneration) -> String {
    let set = set(of: generation)
    let words = LanguageChoice.choose(accepting: languages.map { [$0] } ?? [], among: set.languages) ?? set.languages[0]
    return html(
      "message", message(for: refusal, words, base: generation.gateway.publicURL.description), title: { $0.translated(refusal.code.title) },
      in: words, generation: generation)
  }

  /// - Parameter isHere: whether the page's address is where it happened.
  private func message(for refusal: Refusal, _ words: Words, base: String = "", isHere: Bool = true) -> MessagePage {
    let links: [MessagePage.Link] =
      switch refusal.code {
      case .unauthenticated: [MessagePage.Link(address: base + "/auth/login", label: words["sign_in"])]
      case .flowNotFound, .flowExpired, .originRefused: [MessagePage.Link(address: base + "/auth/login", label: words["start_again"])]
      case .busy, .storeUnavailable, .upstreamUnavailable, .upstreamTimeout, .rateLimited:
        isHere ? [MessagePage.Link(address: "", label: words["try_again"])] : []
      case .denied: [MessagePage.Link(address: base + "/auth/account", label: words["account_page"], style: "link")]
      default: []
      }
    return MessagePage(
      heading: words.translated(refusal.code.title), sentence: words.sentence(of: refusal), links: links,
      reference: words.text("reference", ["id": refusal.decision.text]))
  }
}
