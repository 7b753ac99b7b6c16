import MoongateSDK

// The apps that the session's account has signed in to.

extension FlowEngine {
  /// The connected apps of the session's account, the one that was used last first.
  package func connectedApps(client: ClientContext) async -> Result<[AppConnection], Refusal> {
    await answer(client, flow: nil) { request throws(FlowError) in
      let own = try request.liveSession().account.id
      return try await asking { () async throws(StoreFault) in try await store.appConnections(of: own) }
    }
  }

  /// Disconnects an app from the session's account. All its tokens end, and it must ask again. No recent proof is
  /// required, because this only takes access away.
  /// - Parameter id: the `client_id`. The app need not be registered any more.
  /// - Returns: 404 `not_found` if the account is not connected to such an app.
  package func disconnectApp(_ id: String, client: ClientContext) async -> Result<Void, Refusal> {
    await answer(client, flow: nil) { request throws(FlowError) in
      let own = try request.liveSession().account
      let connected = try await asking { () async throws(StoreFault) in try await store.appConnections(of: own.id) }
      guard connected.contains(where: { $0.app == id }) else { throw request.refusal(.notFound) }
      var event = ownEvent(.appRevoked, of: own, request)
      event.detail["app"] = id
      let changes: [Change] = [.endAppConnection(account: own.id, app: id), .audit(event)]
      _ = try await asking { () async throws(StoreFault) in try await store.apply(changes, at: request.now) }
    }
  }
}
