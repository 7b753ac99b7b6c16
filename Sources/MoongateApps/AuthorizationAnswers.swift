import Hummingbird
import MoongateCore
import MoongateHTTP
import MoongateSDK

/// Where the answer to an authorization request goes. The app and its redirect URI have been verified.
struct AnswerTarget: Sendable {
  let app: App
  let redirect: String
  let state: String?
  let mode: AuthorizationRequest.ResponseMode

  init(app: App, redirect: String, state: String?, mode: AuthorizationRequest.ResponseMode) {
    self.app = app
    self.redirect = redirect
    self.state = state
    self.mode = mode
  }

  init(_ request: AuthorizationRequest, of app: App) {
    self.init(app: app, redirect: request.grant.redirect, state: request.state, mode: request.responseMode)
  }

  var receiver: ReceivingApp { ReceivingApp(name: app.name, redirect: redirect, needsConsent: false) }
}

/// Sends answers to apps, by a redirect or in a form.
struct AuthorizationAnswers: Sendable {
  let pages: PageRenderer

  /// - Parameter address: where a page shows the answer in another language; nil: where the request went.
  func send(code: SecretText, to target: AnswerTarget, at address: String? = nil, _ exchange: Exchange) -> Response {
    send([("code", code.reveal())], to: target, at: address, exchange)
  }

  /// Sends an error (RFC 6749 section 4.1.2.1).
  func send(_ error: OAuthError, to target: AnswerTarget, at address: String? = nil, _ exchange: Exchange) -> Response {
    send([("error", error.code), ("error_description", error.description)], to: target, at: address, exchange)
  }

  /// Every answer says who sends it (RFC 9207). Attack: another issuer, at which the same app is registered, sends the
  /// user here, and gets the code that it was never meant to see (mix-up).
  ///
  /// Attack: `state` with a line break adds a header. Everything but unreserved characters is encoded.
  private func send(
    _ fields: [(name: String, value: String)], to target: AnswerTarget, at address: String?, _ exchange: Exchange
  ) -> Response {
    let all =
      fields + (target.state.map { [("state", $0)] } ?? []) + [("iss", exchange.gateway.publicURL.description)]
    switch target.mode {
    case .formPost: return pages.formPost(to: target.redirect, all, app: target.receiver, at: address, exchange)
    case .query:
      let separator = target.redirect.contains("?") ? "&" : "?"
      return exchange.redirect(to: target.redirect + separator + PercentEncoding.form(all.map { ($0.name, $0.value) }))
    }
  }
}
