import Hummingbird
import MoongateCore
import MoongateSDK

/// `/auth/account`: who I am, and the way out.
struct AccountPage: Sendable {
  let driver: FlowDriver
  let pages: PageRenderer

  private struct Row {
    let name: String
    let value: String
    let badge: String?
  }

  private struct Model {
    let frame: PageRenderer.Frame
    let rows: [Row]
  }

  var endpoints: [Endpoint] {
    [
      Endpoint(.page, .get, "/auth/account") { exchange throws(Refusal) in
        guard let found = try await driver.session(exchange) else {
          return .seeOther(FormFields.address("/auth/login", ["return_to": "/auth/account"]))
        }
        return pages.page(
          "account", Model(frame: pages.frame("Your account", exchange.gateway), rows: rows(found.account)), generation: exchange.generation)
      }
    ]
  }

  private func rows(_ account: Account) -> [Row] {
    let name = [account.firstName, account.lastName].compactMap { $0 }.joined(separator: " ")
    return [
      name.isEmpty ? nil : Row(name: "Name", value: name, badge: nil),
      account.identifier(.phone).map { Row(name: "Phone", value: $0.identifier.display, badge: $0.verifiedAt == nil ? "Not verified" : "Verified") },
      account.identifier(.email).map { Row(name: "Email", value: $0.identifier.display, badge: $0.verifiedAt == nil ? "Not verified" : "Verified") },
    ].compactMap { $0 }
  }
}
