import Hummingbird
import MoongateCore
import MoongateSDK

/// `/auth/account/apps?app=…`: asks before an app is disconnected from the account.
struct ConnectedAppPage: Sendable {
  let driver: FlowDriver
  let pages: PageRenderer

  private static let path = "/auth/account/apps"
  private static let disconnect = "disconnect"

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, Self.path) { exchange throws(Refusal) in try await show(exchange) },
      Endpoint(.page, .post, Self.path) { exchange throws(Refusal) in
        if try exchange.isSwitch { return try await show(exchange) }
        guard try await exchange.form()["action"] == Self.disconnect else {
          return exchange.redirect(to: PagePath.account)
        }
        let app = try exchange.query()["app"] ?? ""
        switch await driver.engine.disconnectApp(app, client: try await driver.caller(exchange)) {
        case .success: return exchange.redirect(to: PagePath.account(done: "app_disconnected"))
        case .failure(let refusal):
          if refusal.code == .unauthenticated { return try exchange.redirectToSignIn(returnTo: PagePath.account) }
          // It was already disconnected in another tab.
          guard refusal.code == .notFound else { throw refusal }
          return exchange.redirect(to: PagePath.account(done: "gone"))
        }
      },
    ]
  }

  private func show(_ exchange: Exchange) async throws(Refusal) -> Response {
    guard try await driver.session(exchange) != nil else {
      return try exchange.redirectToSignIn(returnTo: PagePath.account)
    }
    let connected = try await driver.engine.connectedApps(client: try await driver.caller(exchange)).get()
    let app = try exchange.query()["app"]
    guard let found = connected.first(where: { $0.app == app }) else {
      return exchange.redirect(to: PagePath.account(done: "gone"))
    }
    let words = pages.words(exchange)
    let name: KeyValuePairs = ["app": exchange.generation.apps[found.app]?.name ?? found.app]
    let address = FormFields.address(Self.path, ["app": found.app])
    let model = AppModel(
      heading: words.text("app_disconnect_title", name), subtitle: words.text("app_disconnect_subtitle", name),
      action: address, allow: Self.disconnect, allowLabel: words["disconnect"])
    return pages.question(model, at: address, exchange)
  }
}
