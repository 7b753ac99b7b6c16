import HTTPTypes
import Hummingbird
import MoongateCore

extension PageRenderer {
  /// A refusal as a page.
  func page(for refusal: Refusal, to request: Request, _ generation: any PolicyGeneration) -> Response {
    let words = words(request, set(of: generation))
    let path = request.head.path ?? ""
    // After a POST or a callback, the address cannot be opened again, so the page uses the address of the error page.
    let isShownAgain = [.get, .head].contains(request.method) && !path.hasPrefix("/auth/callback/")
    let code = RefusalCode(reserved: refusal.code.name) ?? .denied
    return page(
      message(for: refusal, words, isHere: !path.hasPrefix(PagePath.error)),
      title: { $0.translated(refusal.code.title) }, refusal: refusal,
      at: isShownAgain ? nil : FormFields.address(PagePath.error, ["code": code.name]), request, generation)
  }

  /// The page as text, for the proxy, which writes its own headers. It may be shown on any host, so its links are
  /// absolute.
  /// - Parameters:
  /// - visitor: the signed-in user, if the refusal concerns them.
  /// - languages: the request's `Accept-Language`.
  package func html(
    for refusal: Refusal, to visitor: RefusedVisitor? = nil, languages: String?, generation: any PolicyGeneration
  ) -> String {
    let set = set(of: generation)
    let words = LanguageChoice.choose(accepting: languages.map { [$0] } ?? [], among: set.languages) ?? set.languages[0]
    let base = generation.gateway.publicURL.description
    let message =
      visitor.map { self.message(for: refusal, to: $0, words, base: base) } ?? message(for: refusal, words, base: base)
    return html(message, title: { $0.translated(refusal.code.title) }, in: words, generation: generation)
  }

  /// Shows which account is signed in, and offers to use another one.
  private func message(for refusal: Refusal, to visitor: RefusedVisitor, _ words: Words, base: String) -> MessageModel {
    MessageModel(
      heading: words.translated(refusal.code.title), sentence: words.sentence(of: refusal),
      signedInAs: visitor.account.hint.map { words.text("signed_in_as", ["who": $0]) },
      links: [
        MessageModel.Link(
          address: base + FormFields.address(PagePath.signOut, ["return_to": visitor.address]),
          label: words["sign_in_as_other"]),
        MessageModel.Link(address: base + PagePath.account, label: words["account_page"], style: "link"),
      ], reference: words.text("reference", ["id": refusal.decision.text]), stressesSupport: true)
  }

  /// - Parameter isHere: whether the page has the address where the refusal happened.
  private func message(for refusal: Refusal, _ words: Words, base: String = "", isHere: Bool = true) -> MessageModel {
    let links: [MessageModel.Link] =
      switch refusal.code {
      case .unauthenticated, .registrationClosed, .invitationRequired, .invitationInvalid:
        [MessageModel.Link(address: base + PagePath.signIn, label: words["sign_in"])]
      case .flowNotFound, .flowExpired, .originRefused:
        [MessageModel.Link(address: base + PagePath.signIn, label: words["start_again"])]
      case .handoffFailed: [MessageModel.Link(address: "/", label: words["start_again"])]
      case .busy, .storeUnavailable, .upstreamUnavailable, .upstreamTimeout, .rateLimited:
        isHere ? [MessageModel.Link(address: "", label: words["try_again"])] : []
      case .denied, .notFound:
        [MessageModel.Link(address: base + PagePath.account, label: words["account_page"], style: "link")]
      default: []
      }
    return MessageModel(
      heading: words.translated(refusal.code.title), sentence: words.sentence(of: refusal), links: links,
      reference: words.text("reference", ["id": refusal.decision.text]))
  }
}
