import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateHTTP
import MoongateSDK

/// `/auth/openid/logout`: an app signs its user out here as well (OpenID Connect RP-Initiated Logout 1.0).
///
/// Attack: a link or an image of another site signs users out. Without an ID token of the very session, a page asks
/// first, and its form needs the gateway's Origin.
///
/// Attack: an open redirect by `post_logout_redirect_uri`. Registered addresses are compared byte for byte.
struct SignOutEndpoint: Sendable {
  let driver: FlowDriver
  let pages: PageRenderer
  let apps: Apps
  let keys: KeyRing
  let signOut: LogoutPage

  private static let agreed = "sign_out"
  private static let parameters = ["id_token_hint", "client_id", "post_logout_redirect_uri", "state", "ui_locales"]

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, OpenIDPath.signOut) { exchange throws(Refusal) in
        // A HEAD request must not sign anybody out.
        guard exchange.request.method == .get else { throw exchange.refusal(.methodNotAllowed) }
        return try await begin(try exchange.query(), exchange)
      },
      // A form of another site, to which browsers add no cookies. The same request by GET has them.
      Endpoint(.inbound, .post, OpenIDPath.signOut) { exchange throws(Refusal) in
        let fields = try await exchange.form()
        let query = Self.parameters.compactMap { name in fields[name].map { (name, $0) } }
        guard query.allSatisfy({ $0.1.utf8.count <= 8192 }) else { throw exchange.refusal(.badRequest) }
        return .seeOther(OpenIDPath.signOut + "?" + PercentEncoding.form(query))
      },
      Endpoint(.page, .post, OpenIDPath.signOutConfirmed) { exchange throws(Refusal) in
        let fields = try await exchange.form()
        guard fields["action"] == Self.agreed else { return exchange.redirect(to: PagePath.account) }
        return try await signOut.signOut(to: try target(fields, nil, exchange)?.address, exchange)
      },
    ]
  }

  /// Where an app wants the browser to go afterwards.
  private struct Target {
    let app: App
    /// The registered address, with `state`.
    let address: String
  }

  private func begin(_ fields: FormFields, _ exchange: Exchange) async throws(Refusal) -> Response {
    var hint: IDTokenHint?
    if let token = fields["id_token_hint"] { hint = await apps.hint(token, exchange.appCall) }
    // A forged hint leads nowhere.
    let isForged = fields["id_token_hint"] != nil && hint == nil
    let target = isForged ? nil : try target(fields, hint, exchange)
    guard let session = try await driver.session(exchange) else {
      // Attack: an image of another site, to which browsers add no cookies, deletes what services have stored.
      guard exchange.credentials.session != nil else {
        return exchange.redirect(to: target?.address ?? PagePath.signIn)
      }
      return try await signOut.signOut(to: target?.address, exchange)
    }
    if let hint, hint.sid == hint.app.sessionName(session.session.id, keys: keys),
      hint.subject == hint.app.subject(of: session.account.id, keys: keys)
    {
      return try await signOut.signOut(to: target?.address, exchange)
    }
    return ask(fields, target, exchange)
  }

  /// - Returns: nil: the app names no address.
  /// - Throws: if the address, or the app, is not registered. Nothing is sent there.
  private func target(_ fields: FormFields, _ hint: IDTokenHint?, _ exchange: Exchange) throws(Refusal) -> Target? {
    let named = fields["client_id"]
    guard named == nil || hint == nil || named == hint?.app.id else {
      throw exchange.refusal(.badRequest, reason: "client_id is not the app of id_token_hint")
    }
    guard let address = fields["post_logout_redirect_uri"] else { return nil }
    let table = exchange.generation.apps
    guard let app = hint?.app ?? named.flatMap({ table[$0] }), table.returns(to: address, of: app) else {
      throw exchange.refusal(
        .badRequest, detail: "The app's post_logout_redirect_uri is not registered here.",
        reason: "post_logout_redirect_uri is not registered")
    }
    guard let state = fields["state"] else { return Target(app: app, address: address) }
    guard state.utf8.count <= AuthorizationRequest.longestState else { throw exchange.refusal(.badRequest) }
    let separator = address.contains("?") ? "&" : "?"
    return Target(app: app, address: "\(address)\(separator)state=\(PercentEncoding.encode(state))")
  }

  /// Asks the user. The form leads to the app's address only if that was verified, and is verified again.
  private func ask(_ fields: FormFields, _ target: Target?, _ exchange: Exchange) -> Response {
    let words = pages.words(exchange)
    let kept = target.map { target in
      [AppModel.Field("client_id", target.app.id)]
        + ["post_logout_redirect_uri", "state"].compactMap { name in fields[name].map { AppModel.Field(name, $0) } }
    }
    let model = AppModel(
      heading: words["sign_out"], subtitle: words["logout_subtitle"], action: OpenIDPath.signOutConfirmed,
      fields: kept ?? [], allow: Self.agreed, allowLabel: words["sign_out"])
    let receiver = target.map { ReceivingApp(name: $0.app.name, redirect: $0.address, needsConsent: false) }
    return pages.question(model, app: receiver, at: exchange.request.head.path ?? OpenIDPath.signOut, exchange)
  }
}
