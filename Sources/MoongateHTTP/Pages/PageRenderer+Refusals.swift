import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateProxy

extension PageRenderer {
  /// A refusal as a page.
  /// - Parameter frame: how it is shown in a frame; nil if no site may show it.
  func page(
    for refusal: Refusal, to request: Request, _ generation: any PolicyGeneration, in frame: FramedRefusal? = nil
  ) -> Response {
    let words = words(request, set(of: generation))
    let path = request.head.path ?? ""
    // After a POST or a callback, the address cannot be opened again, so the page uses the address of the error page.
    let isShownAgain = [.get, .head].contains(request.method) && !path.hasPrefix("/auth/callback/")
    let code = RefusalCode(reserved: refusal.code.name) ?? .denied
    return page(
      message(for: refusal, words, isHere: !path.hasPrefix(PagePath.error), in: frame),
      title: { $0.translated(refusal.code.title) }, refusal: refusal,
      at: isShownAgain ? nil : FormFields.address(PagePath.error, ["code": code.name]), in: frame?.sites ?? [],
      request, generation)
  }

  /// The page as text, for the proxy, which writes its own headers. It may be shown on any host, so its links are
  /// absolute.
  /// - Parameters:
  /// - visitor: the signed-in user, if the refusal concerns them.
  /// - languages: the request's `Accept-Language`.
  package func html(
    for refusal: Refusal, to visitor: RefusedVisitor? = nil, languages: String?, generation: any PolicyGeneration
  ) -> String {
    let (message, words) = message(for: refusal, to: visitor, languages: languages, generation: generation)
    return html(message, title: { $0.translated(refusal.code.title) }, in: words, generation: generation)
  }

  /// The page by the templates of a route's `error_pages`; nil if none of them is for the refusal.
  package func html(for refused: RefusedRequest, generation: any PolicyGeneration) -> String? {
    let refusal = refused.refusal
    let (message, words) = message(
      for: refusal, to: refused.visitor, languages: refused.languages, generation: generation)
    let model = ErrorModel(
      message, status: refusal.code.status, code: refusal.code.name, retryAfter: refusal.retryAfterSeconds,
      decision: refusal.decision.text, home: generation.gateway.publicURL.description, nonce: refused.nonce)
    return html(model, in: refused.templates, words, generation: generation)
  }

  private func message(
    for refusal: Refusal, to visitor: RefusedVisitor?, languages: String?, generation: any PolicyGeneration
  ) -> (MessageModel, Words) {
    let set = set(of: generation)
    let words = LanguageChoice.choose(accepting: languages.map { [$0] } ?? [], among: set.languages) ?? set.languages[0]
    let base = generation.gateway.publicURL.description
    let message =
      visitor.map { self.message(for: refusal, to: $0, words, base: base) } ?? message(for: refusal, words, base: base)
    return (message, words)
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

  /// - Parameters:
  ///   - isHere: whether the page has the address where the refusal happened.
  ///   - frame: how the page is shown in a frame. Links whose pages no frame may show are left out there.
  private func message(
    for refusal: Refusal, _ words: Words, base: String = "", isHere: Bool = true, in frame: FramedRefusal? = nil
  ) -> MessageModel {
    let isInFrame = frame?.isInFrame ?? false
    let signIn = { (label: String) in
      isInFrame && frame?.returnTo == nil
        ? []
        : [
          MessageModel.Link(
            address: FormFields.address(base + PagePath.signIn, ["return_to": frame?.returnTo]), label: words[label])
        ]
    }
    let links: [MessageModel.Link] =
      switch refusal.code {
      case .unauthenticated, .registrationClosed, .invitationRequired, .invitationInvalid: signIn("sign_in")
      case .flowNotFound, .flowExpired, .originRefused: signIn("start_again")
      case .handoffFailed: [MessageModel.Link(address: "/", label: words["start_again"])]
      case .busy, .storeUnavailable, .upstreamUnavailable, .upstreamTimeout, .rateLimited:
        isHere ? [MessageModel.Link(address: "", label: words["try_again"])] : []
      case .denied, .notFound:
        isInFrame
          ? [] : [MessageModel.Link(address: base + PagePath.account, label: words["account_page"], style: "link")]
      default: []
      }
    return MessageModel(
      heading: words.translated(refusal.code.title), sentence: words.sentence(of: refusal), links: links,
      reference: words.text("reference", ["id": refusal.decision.text]))
  }
}
