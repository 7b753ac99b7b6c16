import HTTPTypes
import Hummingbird
import MoongateCore

/// A page that says one thing and offers ways on.
struct MessagePage: PageModel {
  static let template = PageTemplate.message
  struct Link: Decodable {
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
    let words = words(request, set(of: generation))
    let path = request.head.path ?? ""
    // Where a form was sent to, or another site leads to, nothing would be shown again: the refusal has an address of its own.
    let isShownAgain = [.get, .head].contains(request.method) && !path.hasPrefix("/auth/callback/")
    let code = RefusalCode(reserved: refusal.code.name) ?? .denied
    var response = page(
      message(for: refusal, words, isHere: !path.hasPrefix("/auth/error")), title: { $0.translated(refusal.code.title) },
      status: refusal.code.httpStatus, at: isShownAgain ? nil : FormFields.address("/auth/error", ["code": code.name]), request, generation)
    response.addRefusalHeaders(refusal)
    return response
  }

  /// The same as text, for the proxy, which writes its own head: it may be shown on any host, so its links name ours.
  /// - Parameter languages: the request's `Accept-Language`.
  package func html(for refusal: Refusal, languages: String?, generation: any PolicyGeneration) -> String {
    let set = set(of: generation)
    let words = LanguageChoice.choose(accepting: languages.map { [$0] } ?? [], among: set.languages) ?? set.languages[0]
    return html(
      message(for: refusal, words, base: generation.gateway.publicURL.description), title: { $0.translated(refusal.code.title) },
      in: words, generation: generation)
  }

  /// - Parameter isHere: whether the page's address is where it happened.
  private func message(for refusal: Refusal, _ words: Words, base: String = "", isHere: Bool = true) -> MessagePage {
    let links: [MessagePage.Link] =
      switch refusal.code {
      case .unauthenticated: [MessagePage.Link(address: base + "/auth/login", label: words["sign_in"])]
      case .flowNotFound, .flowExpired, .originRefused: [MessagePage.Link(address: base + "/auth/login", label: words["start_again"])]
      case .handoffFailed: [MessagePage.Link(address: "/", label: words["start_again"])]
      case .busy, .storeUnavailable, .upstreamUnavailable, .upstreamTimeout, .rateLimited:
        isHere ? [MessagePage.Link(address: "", label: words["try_again"])] : []
      case .denied, .notFound: [MessagePage.Link(address: base + "/auth/account", label: words["account_page"], style: "link")]
      default: []
      }
    return MessagePage(
      heading: words.translated(refusal.code.title), sentence: words.sentence(of: refusal), links: links,
      reference: words.text("reference", ["id": refusal.decision.text]))
  }
}
