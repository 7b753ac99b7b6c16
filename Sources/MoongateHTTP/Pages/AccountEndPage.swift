import Hummingbird
import MoongateCore

/// `/auth/account/export`, `/auth/account/delete` and `/auth/account/sign-out`: downloads the user's data, deletes the
/// account, and ends all its sessions. Deleting and signing out need a confirmation.
struct AccountEndPage: Sendable {
  let driver: FlowDriver
  let pages: PageRenderer
  let calls: OwnAccountCalls

  private static let exportPath = "/auth/account/export"
  private static let deletePath = "/auth/account/delete"
  private static let signOutPath = "/auth/account/sign-out"

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, Self.exportPath) { exchange throws(Refusal) in
        do throws(Refusal) {
          return try await calls.export(exchange)
        } catch {
          // A download has no page to return to.
          return try proving(after: error, PagePath.account(done: "confirmed"), exchange)
        }
      },
      Endpoint(.page, .get, Self.deletePath) { exchange throws(Refusal) in
        guard try await driver.session(exchange) != nil else { return try signIn(exchange) }
        return page(exchange)
      },
      Endpoint(.page, .get, Self.signOutPath) { exchange throws(Refusal) in
        guard try await driver.session(exchange) != nil else { return try signIn(exchange) }
        let words = pages.words(exchange)
        let model = DeleteModel(
          heading: words["sign_out_everywhere_title"], subtitle: words["sign_out_everywhere_subtitle"],
          confirm: words["sign_out_everywhere"],
          action: PagePath.account, wanted: "everywhere")
        return pages.page(model, title: words["sign_out_everywhere"], exchange)
      },
      Endpoint(.page, .post, Self.deletePath) { exchange throws(Refusal) in
        if try exchange.isSwitch { return page(exchange) }
        do throws(Refusal) {
          try await calls.delete(exchange)
          return LogoutPage.leave(to: PagePath.signIn, exchange)
        } catch {
          return try proving(after: error, Self.deletePath, exchange)
        }
      },
    ]
  }

  /// Redirects users without a recent proof to the step-up, which returns here.
  private func proving(after refusal: Refusal, _ path: String, _ exchange: Exchange) throws(Refusal) -> Response {
    if refusal.code == .unauthenticated { return try signIn(exchange) }
    guard let address = StepUpRedirect.address(after: refusal, backTo: path) else { throw refusal }
    return exchange.redirect(to: address)
  }

  private func signIn(_ exchange: Exchange) throws(Refusal) -> Response {
    try exchange.redirectToSignIn(returnTo: PagePath.account)
  }

  private func page(_ exchange: Exchange) -> Response {
    let words = pages.words(exchange)
    let model = DeleteModel(
      heading: words["delete_account_title"], subtitle: words["delete_account_subtitle"],
      confirm: words["delete_account_confirm"],
      action: Self.deletePath)
    return pages.page(model, title: words["delete_account"], at: Self.deletePath, exchange)
  }
}
