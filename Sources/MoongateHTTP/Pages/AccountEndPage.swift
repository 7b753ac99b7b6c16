import Hummingbird
import MoongateCore

/// `/auth/account/export` and `/auth/account/delete`: the person's data as a file, and the end of their account, asked for once more before.
struct AccountEndPage: Sendable {
  let driver: FlowDriver
  let pages: PageRenderer
  let calls: OwnAccountCalls

  private static let exportPath = "/auth/account/export"
  private static let deletePath = "/auth/account/delete"

  struct Model: PageModel {
    static let template = PageTemplate.delete
    let action: String
    var stressesSupport = false
  }

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, Self.exportPath) { exchange throws(Refusal) in
        do throws(Refusal) {
          return try await calls.export(exchange)
        } catch {
          // A file is no page to come back to.
          return try proving(after: error, "/auth/account?done=confirmed", exchange)
        }
      },
      Endpoint(.page, .get, Self.deletePath) { exchange throws(Refusal) in
        guard try await driver.session(exchange) != nil else { return signIn(exchange) }
        return page(exchange)
      },
      Endpoint(.page, .post, Self.deletePath) { exchange throws(Refusal) in
        if try exchange.isSwitch { return page(exchange) }
        do throws(Refusal) {
          try await calls.delete(exchange)
          return LogoutPage.leave(to: "/auth/login", exchange)
        } catch {
          return try proving(after: error, Self.deletePath, exchange)
        }
      },
    ]
  }

  /// Leads whoever has proved nothing lately to where they do, and back.
  private func proving(after refusal: Refusal, _ path: String, _ exchange: Exchange) throws(Refusal) -> Response {
    if refusal.code == .unauthenticated { return signIn(exchange) }
    guard let address = ChangeProof.address(after: refusal, backTo: path) else { throw refusal }
    return exchange.leadOn(to: address)
  }

  private func signIn(_ exchange: Exchange) -> Response {
    exchange.leadOn(to: FormFields.address("/auth/login", ["return_to": "/auth/account"]))
  }

  private func page(_ exchange: Exchange) -> Response {
    pages.page(Model(action: Self.deletePath), title: pages.words(exchange)["delete_account"], at: Self.deletePath, exchange)
  }
}
