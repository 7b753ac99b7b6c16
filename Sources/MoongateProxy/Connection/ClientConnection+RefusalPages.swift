import MoongateCore
import MoongateSDK

/// The pages of refusals, for browsers.
extension ClientConnection {
  /// The page of a refusal with its header fields; nil for a client that is no browser, and without pages.
  func refusalPage(
    _ refusal: Refusal, to visitor: RefusedVisitor?
  ) -> (html: String, fields: [(String, String)])? {
    guard state.exchange.isBrowser else { return nil }
    let style = state.exchange.refusalStyle
    if let templates = style?.templates {
      let nonce = Base64URL.encode(loop.shared.dependencies.random.bytes(16))
      let refused = RefusedRequest(
        refusal: refusal, visitor: visitor, languages: state.exchange.languages, templates: templates, nonce: nonce)
      if let html = loop.shared.errorPage?(refused) { return (html, Self.pageFields(style, nonce: nonce)) }
    }
    let page = loop.shared.page?(refusal, visitor, state.exchange.languages)
    return page.map { ($0, Self.pageFields(style)) }
  }

  /// - Parameter nonce: allows the page's own style elements with this nonce; nil for none.
  private static func pageFields(_ style: RefusalStyle?, nonce: String? = nil) -> [(String, String)] {
    let frames = style?.frames
    let styles = nonce.map { "'self' 'nonce-\($0)'" } ?? "'self'"
    let policy =
      "default-src 'none'; style-src \(styles); img-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors "
    let fields = [("Content-Type", "text/html; charset=utf-8"), ("Referrer-Policy", "no-referrer")]
    return fields + (frames == nil ? [("X-Frame-Options", "DENY")] : [])
      + [("Content-Security-Policy", policy + (frames ?? "'none'"))]
  }
}
