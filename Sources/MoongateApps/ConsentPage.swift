import Hummingbird
import MoongateCore
import MoongateHTTP
import MoongateSDK

/// `/auth/openid/consent?request=…`: asks whether an app may have what it asks for (OpenID Connect Core 1.0 section
/// 3.1.2.4). The answer is part of the sealed request, with which the sign-in continues.
///
/// Attack: consent to one scope is used for more. The answer counts for the scopes of this request, which are sealed,
/// and which the page has shown.
struct ConsentPage: Sendable {
  let driver: FlowDriver
  let pages: PageRenderer
  let keys: KeyRing

  private static let allow = "allow"

  /// What the page asks.
  private struct Question: Sendable {
    let sealed: String
    let request: AuthorizationRequest
    let receiver: ReceivingApp
    /// What the app would get.
    let scopes: [String]

    var address: String { FormFields.address(PagePath.appConsent, ["request": sealed]) }
    var continuation: String { FormFields.address(PagePath.appContinuation, ["request": sealed]) }
  }

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, PagePath.appConsent) { exchange throws(Refusal) in
        let question = try question(exchange)
        // The continuation leads to the sign-in.
        guard let own = try await driver.session(exchange) else { return exchange.redirect(to: question.continuation) }
        return show(question, to: own.account, exchange)
      },
      Endpoint(.page, .post, PagePath.appConsent) { exchange throws(Refusal) in
        let question = try question(exchange)
        guard let own = try await driver.session(exchange) else { return exchange.redirect(to: question.continuation) }
        if try exchange.isSwitch { return show(question, to: own.account, exchange) }
        let form = try await exchange.form()
        guard form["action"] == Self.allow else {
          return exchange.redirect(to: question.continuation + "&cancel=1")
        }
        // Attack: the user has agreed for the account that the page showed. Meanwhile the browser was signed in to
        // another one, whose data the app would get.
        guard form["account"] == own.account.id else { return show(question, to: own.account, exchange) }
        return exchange.redirect(
          to: FormFields.address(PagePath.appContinuation, ["request": try answered(question, by: own, exchange)]))
      },
    ]
  }

  private func question(_ exchange: Exchange) throws(Refusal) -> Question {
    guard let sealed = try exchange.query()["request"],
      let request = keys.authorizationRequest(sealed, at: driver.engine.now)
    else { throw exchange.refusal(.flowExpired) }
    // Attack: a link to the consent of a sign-in that the attacker has begun.
    guard let browser = request.browser, browser == exchange.credentials.browserHash else {
      throw exchange.refusal(.flowNotFound, reason: "another browser has begun this sign-in")
    }
    let apps = exchange.generation.apps
    guard let app = apps[request.grant.client], let receiver = request.receivingApp(in: apps) else {
      throw exchange.refusal(.flowExpired, reason: "apps.lua no longer registers the app or its redirect URI")
    }
    return Question(
      sealed: sealed, request: request, receiver: receiver, scopes: app.permitted(request.grant.scopes))
  }

  /// The request with the user's agreement, sealed.
  private func answered(_ question: Question, by session: SessionSnapshot, _ exchange: Exchange) throws(Refusal)
    -> String
  {
    var request = question.request
    request.agreed = session.account.id
    do {
      return try keys.sealed(request)
    } catch {
      throw exchange.refusal(.policyError, fault: "the request cannot be sealed: \(error)")
    }
  }

  private func show(_ question: Question, to account: Account, _ exchange: Exchange) -> Response {
    let words = pages.words(exchange)
    let name: KeyValuePairs = ["app": question.receiver.name]
    let model = AppModel(
      heading: words.text("consent_title", name), subtitle: words.text("consent_subtitle", name),
      scopes: question.scopes.map { words.text(ofScope: $0) },
      scopesLabel: words.text("consent_scopes", name),
      signedInAs: account.hint.map { words.text("signed_in_as", ["who": $0]) },
      other: FormFields.address(PagePath.signOut, ["return_to": question.continuation]), action: question.address,
      fields: [AppModel.Field("account", account.id)], allow: Self.allow, allowLabel: words["allow"],
      receiver: words.text("app_receiver", ["address": question.receiver.receiver]))
    return pages.question(model, app: question.receiver, at: question.address, exchange)
  }
}
