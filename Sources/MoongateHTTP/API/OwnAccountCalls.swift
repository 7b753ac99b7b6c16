import Hummingbird
import MoongateCore

/// `/api/auth/account…`: exports and deletes the user's own account.
struct OwnAccountCalls: Sendable {
  let driver: FlowDriver

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .exportAccount) { exchange throws(Refusal) in
        try await export(exchange)
      },
      Endpoint(.call, .deleteAccount) { exchange throws(Refusal) in
        try await delete(exchange)
        var response = Response.nothing
        response.setCookies(exchange.cookies.signOut())
        return response
      },
    ]
  }

  /// Everything that is stored about the user, as a file to download.
  func export(_ exchange: Exchange) async throws(Refusal) -> Response {
    let export = try await driver.engine.exportAccount(client: try await driver.caller(exchange)).get()
    var response = Response.json(.export(export))
    response.headers.set("Content-Disposition", to: "attachment; filename=\"account.json\"")
    return response
  }

  func delete(_ exchange: Exchange) async throws(Refusal) {
    try await driver.engine.deleteAccount(client: try await driver.caller(exchange)).get()
  }
}
