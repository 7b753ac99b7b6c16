import MoongateSDK

// The trusted devices of the session's account.

extension FlowEngine {
  /// The trusted devices of the session's account, the one that was seen last first, and the ID of the one that makes
  /// this request.
  package func trustedDevices(client: ClientContext) async -> Result<
    (devices: [TrustedDevice], current: String?), Refusal
  > {
    await answer(client, flow: nil) { request throws(FlowError) in
      let own = try request.liveSession().account.id
      let devices = try await asking { () async throws(StoreFault) in try await store.devices(of: own, at: request.now)
      }
      return (devices, keys.trust(request.device, own, among: Set(devices.map(\.id))))
    }
  }

  /// No longer trusts a device for the session's account. Its sessions continue.
  /// - Returns: 404 `not_found` if the account does not trust such a device.
  package func removeDevice(_ id: String, client: ClientContext) async -> Result<Void, Refusal> {
    await answer(client, flow: nil) { request throws(FlowError) in
      let own = try request.liveSession().account
      let devices = try await asking { () async throws(StoreFault) in
        try await store.devices(of: own.id, at: request.now)
      }
      guard devices.contains(where: { $0.id == id }) else { throw request.refusal(.notFound) }
      var event = ownEvent(.deviceRemoved, of: own, request)
      event.detail["device"] = id
      let changes: [Change] = [.forgetDevice(account: own.id, id: id), .audit(event)]
      _ = try await asking { () async throws(StoreFault) in try await store.apply(changes, at: request.now) }
    }
  }
}
