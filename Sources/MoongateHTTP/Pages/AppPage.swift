import Hummingbird
import MoongateCore
import MoongateSDK

/// `/auth/app?id=…`: asks whether an app may receive the result of a sign-in, before the sign-in begins.
///
/// Attack: an attacker creates a flow for an app and sends its link. The user reads which app receives the result, and
/// only a form of this page lets the flow continue.
struct AppPage: Sendable {
  let driver: FlowDriver
  let pages: PageRenderer

  private static let path = "/auth/app"
  private static let allow = "allow"

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, Self.path) { exchange throws(Refusal) in
        let (view, app) = try await flow(exchange)
        return show(view, app, nil, exchange)
      },
      Endpoint(.page, .post, Self.path) { exchange throws(Refusal) in
        let (view, app) = try await flow(exchange)
        guard let app, app.needsConsent else { return exchange.redirect(to: exchange.address(of: view)) }
        if try exchange.isSwitch { return show(view, app, nil, exchange) }
        let caller = try await driver.caller(exchange)
        guard try await exchange.form()["action"] == Self.allow else {
          try await driver.engine.delete(view.id, client: caller).get()
          return exchange.redirect(to: Grant.address(app.redirect, error: "access_denied"))
        }
        do throws(Refusal) {
          let allowed = try await driver.engine.allowApp(view.id, client: caller).get()
          return exchange.redirect(
            to: exchange.address(of: allowed.view), allowed.cookie.map { [exchange.cookies.allow($0)] } ?? [])
        } catch {
          exchange.log(error)
          return show(view, app, error, exchange)
        }
      },
    ]
  }

  static func address(of view: FlowView) -> String { FormFields.address(path, ["id": view.id.secret.reveal()]) }

  /// The flow of the request, and the app that receives its result.
  private func flow(_ exchange: Exchange) async throws(Refusal) -> (FlowView, ReceivingApp?) {
    guard let text = try exchange.query()["id"] else { throw exchange.refusal(.flowNotFound) }
    let view = try await driver.view(FlowID(text: text), exchange).get()
    return (view, view.status == .pending ? view.app : nil)
  }

  private func show(_ view: FlowView, _ app: ReceivingApp?, _ refusal: Refusal?, _ exchange: Exchange) -> Response {
    guard let app, app.needsConsent else { return exchange.redirect(to: exchange.address(of: view)) }
    let words = pages.words(exchange)
    let service = exchange.gateway.brand.name ?? exchange.gateway.service
    let address = Self.address(of: view)
    let model = AppModel(
      heading: words.text("app_title", ["app": app.name]),
      subtitle: words.text("app_subtitle", ["app": app.name, "service": service]),
      problem: refusal.map { words.sentence(of: $0) }, action: address, allow: Self.allow,
      allowLabel: words["continue"], receiver: words.text("app_receiver", ["address": app.receiver]))
    return pages.page(model, title: model.heading, refusal: refusal, at: address, exchange)
  }
}
