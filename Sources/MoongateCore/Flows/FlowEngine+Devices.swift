import MoongateSDK

// The trusted devices and the sessions of the session's account.

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

  /// No longer trusts a device for the session's account. Its sessions continue. The owner is notified.
  ///
  /// Attack: a session that was stolen long ago removes the owner's devices. Their attempts then count with those of
  /// other clients, whose wrong codes lock the owner out. The thief stays signed in.
  /// - Returns: `step_up_required` without a recent proof; 404 `not_found` if the account does not trust such a device.
  package func removeDevice(_ id: String, client: ClientContext) async -> Result<Void, Refusal> {
    await answer(client, flow: nil) { request throws(FlowError) in
      let own = try checks.accountForChange(request)
      let devices = try await asking { () async throws(StoreFault) in
        try await store.devices(of: own.id, at: request.now)
      }
      guard devices.contains(where: { $0.id == id }) else { throw request.refusal(.notFound) }
      var event = ownEvent(.deviceRemoved, of: own, request)
      event.detail["device"] = id
      let changes: [Change] = [.forgetDevice(account: own.id, id: id), .audit(event)]
      _ = try await asking { () async throws(StoreFault) in try await store.apply(changes, at: request.now) }
      parts.notices.notifyOfRemovedDevice(own, request)
    }
  }

  /// Signs the session's account out everywhere, or everywhere else. Sign-ins and resets that are in progress end too,
  /// and codes that were sent before stop working.
  ///
  /// With a recent proof of something that the account holds, other devices are no longer trusted, and identities at
  /// other sites that are too new are dropped. The owner is notified of both.
  ///
  /// Attack: a session that was stolen long ago signs the owner out, whose own device then counts with other clients.
  /// Without a recent proof, only sessions end.
  /// - Parameter keepsOwn: whether the session of the request continues, and its device stays trusted.
  package func signOutEverywhere(keepsOwn: Bool, client: ClientContext) async -> Result<Void, Refusal> {
    await answer(client, flow: nil) { request throws(FlowError) in
      let own = try request.liveSession()
      let stored = try await asking { () async throws(StoreFault) in try await store.account(own.account.id) }
      guard let account = stored else { throw request.unauthenticated() }
      var ended = ownEvent(.sessionEnded, of: account, request)
      ended.detail["sessions"] = keepsOwn ? "all others" : "all"
      var changes: [Change] = [
        .raiseEpoch(account: account.id),
        .endSessions(account: account.id, except: keepsOwn ? own.session.token : nil), .audit(ended),
      ]
      let isProved = checks.hasRecentProof(own, request)
      let kept = keepsOwn ? keys.trust(request.device, account.id, among: account.devices) : nil
      let dropped = isProved ? account.unsettledIdentities(request.generation.accounts, at: request.now) : []
      if isProved {
        changes.append(.forgetDevices(account: account.id, except: kept))
        for identity in dropped {
          let removed = event(removing: identity, from: account, request)
          changes += [.removeIdentifier(account: account.id, identity), .audit(removed)]
        }
      }
      let all = changes
      let result = try await asking { () async throws(StoreFault) in try await store.apply(all, at: request.now) }
      if case .conflict(let conflict) = result { throw request.refusal(conflict) }
      for site in Set(dropped.compactMap { registry(request).prover(of: $0) }) {
        parts.notices.notifyOfDisconnection(site, account, request)
      }
      let isLess = isProved && !account.devices.subtracting([kept].compactMap(\.self)).isEmpty
      if isLess { parts.notices.notifyOfRemovedDevice(account, request) }
    }
  }
}
