import HTTPTypes
import Hummingbird
import MoongateCore
import MoongateSDK

/// `/auth/callback/{provider}`: the redirect URI for other sites. The request has a `state` of the gateway and the
/// parameters for the provider.
///
/// A site may use the Form Post Response Mode of OAuth 2.0. Such a cross-site POST has no cookies, so its parameters
/// are stored, and the browser is redirected to the same path by GET, with its cookies and a handle. The other site's
/// code therefore never appears in a URL.
///
/// Attacks: the link of another user's sign-in (works only in the browser that began it), a repeated answer, an open
/// redirect (no parameter contains the target).
struct CallbackPage: Sendable {
  let driver: FlowDriver
  let pages: PageRenderer
  let clock: any GatewayClock
  let audit: AuditTrail

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, "/auth/callback/{}") { exchange throws(Refusal) in
        // A HEAD request must not use up the code.
        guard exchange.request.method == .get else { throw exchange.refusal(.methodNotAllowed) }
        let (name, fields) = try provider(exchange)
        let query = try exchange.query()
        guard let state = query["state"] else { throw exchange.refusal(.flowNotFound) }
        let caller = try await driver.caller(exchange)
        let called = try await driver.engine.flow(
          ofCallback: state, provider: name, returned: query[Self.handle], client: caller
        ).get()
        return try await judge(called, of: name, called.returned ?? query.values(of: fields), caller, exchange)
      },
      Endpoint(.inbound, .post, "/auth/callback/{}") { exchange throws(Refusal) in
        let (name, fields) = try provider(exchange)
        let form = try await exchange.form()
        guard let state = form["state"] else { throw exchange.refusal(.flowNotFound) }
        let caller = try await driver.caller(exchange)
        let handle = try await driver.engine.hold(
          form.values(of: fields), ofCallback: state, provider: name, client: caller
        ).get()
        return .seeOther(FormFields.address("/auth/callback/\(name)", ["state": state, Self.handle: handle.reveal()]))
      },
    ]
  }

  /// The parameter with the handle of posted parameters.
  private static let handle = "returned"

  /// The provider of the callback, and its parameters. Other parameters are ignored.
  private func provider(_ exchange: Exchange) throws(Refusal) -> (ProviderName, [InputField]) {
    guard let name = ProviderName(rawValue: exchange.parameters[0]), exchange.generation.policies[name] != nil,
      exchange.providers[name] is any FullProvider, let fields = exchange.providers.descriptor(name)?.callbackFields,
      !fields.isEmpty
    else { throw exchange.refusal(.notFound) }
    return (name, fields)
  }

  private func judge(
    _ called: CallbackFlow, of provider: ProviderName, _ inputs: [String: InputValue], _ caller: ClientContext,
    _ exchange: Exchange
  ) async throws(Refusal) -> Response {
    let id = called.id
    guard case .success(let before) = await driver.engine.view(id, client: caller), before.step?.provider == provider
    else {
      throw exchange.refusal(.stepNotOpen)
    }
    do throws(Refusal) {
      let driven = try await driver.drive(exchange) { engine, client in
        await engine.submit(id, fields: inputs, client: client)
      }
      record(.success, driven.view, of: provider, exchange)
      let next = await PageFlow(driver: driver).beginDueSteps(driven, exchange)
      var response = Response.seeOther(exchange.address(of: next.view))
      response.setCookies(next.cookies)
      return response
    } catch {
      exchange.log(error)
      if error.code == .oauthCancelled { record(.cancelled, before, of: provider, exchange) }
      // The state is used up by its answer. Earlier proofs in this flow remain valid.
      if !before.isUnderWay { _ = await driver.engine.delete(id, client: caller) }
      // A user who began in the app is sent back to the app.
      if let redirect = called.redirect {
        return .seeOther(Grant.address(redirect, error: NextPage.shownCode(error.code).name))
      }
      let kept = before.isUnderWay ? id : nil
      return .seeOther(
        exchange.address(ofRefused: error, of: before, by: provider, id: kept, returnTo: called.returnTo))
    }
  }

  /// Records the result of a sign-in with another site. The browser continues to the service, so no script of the
  /// gateway could send it.
  private func record(
    _ event: SiteEvent, _ view: FlowView, of provider: ProviderName, _ exchange: Exchange
  ) {
    guard view.purpose.letsIn, let page = ProviderPage(provider, exchange.providers) else { return }
    var detail = ["name": event.name(at: page.eventName)]
    if event == .success { detail["is_new_user"] = view.account.map { String($0.isNewUser) } }
    audit.record(
      AuditEvent(
        id: DecisionID(from: driver.random), at: clock.now(), kind: .client, flow: view.flow,
        flowPrefix: view.id.prefix, provider: provider,
        account: view.account?.id, address: exchange.client.address.description, detail: detail))
  }
}

extension FormFields {
  /// The fields that have a value.
  fileprivate func values(of fields: [InputField]) -> [String: InputValue] {
    Dictionary(fields.compactMap { field in self[field.name].map { (field.name, .text($0)) } }) { first, _ in first }
  }
}
