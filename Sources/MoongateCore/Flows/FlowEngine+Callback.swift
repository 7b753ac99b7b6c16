import MoongateSDK

// Other sites send people back with a `state` of ours.

extension FlowEngine {
  private static let callbackOwner = "callback"

  /// Where another site sends the person of the flow back to.
  func callback(_ provider: ProviderName, id: FlowID, _ visit: Visit) throws(Halt) -> Callback {
    do {
      let sealed = try keys.seal(Array(id.secret.reveal().utf8), for: "\(Self.callbackOwner) \(provider)")
      return Callback(address: "\(visit.generation.gateway.publicURL)/auth/callback/\(provider)", state: Base64URL.encode(sealed))
    } catch {
      throw .store(StoreFault("the state of a redirect could not be sealed"))
    }
  }

  /// The flow that a site sends a person back to, for `GET /auth/callback/{provider}?state=…`; the page then submits what came with it.
  ///
  /// Attack: a link to the callback with the attacker's own grant would sign the victim in as the attacker. So a state works in the
  /// browser that began the flow and in no other, and not at all for a flow that no browser began, unless an app takes it over by a
  /// code that only it can redeem.
  /// - Returns: `flowNotFound` for whatever is not a living flow of this browser.
  package func flow(ofCallback state: String, provider: ProviderName, client: ClientContext) async -> Result<CalledBack, Refusal> {
    await answer(client, flow: nil) { visit throws(Halt) in
      guard state.utf8.count <= 1024, let sealed = Base64URL.decode(state),
        let text = try? keys.open(sealed, for: "\(Self.callbackOwner) \(provider)")
      else { throw visit.refusal(.flowNotFound) }
      let id = FlowID(text: String(decoding: text, as: UTF8.self))
      let machine = try await load(id, visit)
      guard machine.record.browser != nil || machine.record.app != nil else { throw visit.refusal(.flowNotFound) }
      return CalledBack(id: id, returnTo: machine.record.returnTo, app: machine.record.app)
    }
  }
}

/// The flow that another site sends a person back to.
package struct CalledBack: Sendable {
  package let id: FlowID
  /// Where they were going when it began. Judged already (`RedirectTargets`).
  package let returnTo: String?
  /// The app that takes over what it ends in: it is told too where it ends in nothing.
  package let app: AppReturn?
}
