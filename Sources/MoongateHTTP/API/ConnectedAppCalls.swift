import MoongateCore

/// `/api/auth/apps`: the apps that the account has signed in to.
struct ConnectedAppCalls: Sendable {
  let driver: FlowDriver

  var endpoints: [Endpoint] {
    [
      Endpoint(.call, .connectedApps) { exchange throws(Refusal) in
        let found = try await driver.engine.connectedApps(client: try await driver.caller(exchange)).get()
        return .json(.list(found.map { .connected($0) }))
      },
      Endpoint(.call, .disconnectApp) { exchange throws(Refusal) in
        try await driver.engine.disconnectApp(exchange.parameters[0], client: try await driver.caller(exchange)).get()
        return .nothing
      },
    ]
  }
}

extension JSONValue {
  /// A connected app (`Components.connectedApp`).
  static func connected(_ connection: AppConnection) -> JSONValue {
    .members([
      "app": .text(connection.app), "scopes": .list(connection.scopes.map { .text($0) }),
      "created_at": .text(connection.createdAt.text), "last_used_at": .text(connection.usedAt.text),
    ])
  }
}
