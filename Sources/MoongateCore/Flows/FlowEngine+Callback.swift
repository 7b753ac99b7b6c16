import MoongateSDK

// Handles the redirect back from another site with our `state`: a GET with the browser's cookies, or a cross-site form
// POST without them.

extension FlowEngine {
  /// How long posted callback fields wait for the browser, which follows a redirect.
  static let longestReturn = Duration.seconds(120)

  /// The flow of a `GET /auth/callback/{provider}?state=…`. The page then submits the fields that came with the
  /// request.
  ///
  /// Attack: a link to the callback with the attacker's own grant would sign the victim in as the attacker. A state
  /// therefore works only in the browser that began the flow. It does not work for a flow that no browser began. For a
  /// flow with a grant, that is the browser that opened one of its pages.
  ///
  /// Attack: the creator of a flow for an app begins the step by the API and sends the link of the other site. The
  /// victim would see no page that names the app.
  /// - Parameter handle: the result of `hold`, if the site posted its answer.
  /// - Returns: `flowNotFound` if this browser has no such live flow; `stepNotOpen` for a handle that was used.
  package func flow(
    ofCallback state: String, provider: ProviderName, returned handle: String? = nil, client: ClientContext
  ) async -> Result<CallbackFlow, Refusal> {
    await answer(client, flow: nil) { request throws(FlowError) in
      let id = try parts.seals.flowID(ofCallback: state, provider, request)
      var flow = try await storage.load(id, request)
      let record = flow.record
      guard record.browser != nil else { throw request.refusal(.flowNotFound, because: .otherBrowser) }
      var called = CallbackFlow(id: id, returnTo: record.returnTo, redirect: record.grant?.redirect)
      guard let handle else { return called }
      guard case .open(let step, .returned(let held)) = flow.machine.state, step.provider == provider,
        held.handle == TokenHash(of: handle.utf8),
        request.now < held.expiresAt
      else { throw request.refusal(.stepNotOpen) }
      flow.machine.updateCallback(nil)
      // If two requests redeem the handle, only one succeeds.
      guard try await storage.takeTurn(flow) else { throw request.refusal(.stepNotOpen, because: .changedMeanwhile) }
      called.returned = try parts.seals.open(held, for: provider, id: id)
      return called
    }
  }

  /// Stores the fields that another site posted, sealed, until the browser fetches them.
  ///
  /// A cross-site POST carries no cookie of ours, so its sender is not authenticated. The sender gets a handle for a
  /// flow whose state they know, and only the browser that began the flow can use the handle.
  ///
  /// Attack: a form of the attacker's posts their own code into the victim's browser. With the attacker's state the
  /// flow is not the victim's; with an invented state no flow exists.
  /// - Parameter fields: the declared callback fields of the request.
  /// - Returns: the handle, which can be used once.
  package func hold(
    _ fields: [String: InputValue], ofCallback state: String, provider: ProviderName, client: ClientContext
  ) async -> Result<SecretText, Refusal> {
    await answer(client, flow: nil) { request throws(FlowError) in
      let id = try parts.seals.flowID(ofCallback: state, provider, request)
      guard let record = try await storage.find(id), record.browser != nil else {
        throw request.refusal(.flowNotFound, because: .unknownFlow)
      }
      request.about(record, keys)
      var flow = FlowTransaction(id, FlowMachine(record), request)
      guard flow.machine.closed(at: request.now) == nil, let step = record.step, step.provider == provider,
        step.redirectTo != nil,
        let descriptor = registry(request).descriptor(provider)
      else { throw request.refusal(.stepNotOpen) }
      let input = ProviderInput(fields: fields, defaultRegion: "").only(descriptor.callbackFields.map(\.name))
      try parts.calls.demandFit(input, to: step, by: descriptor, request)
      let handle = SecretText(Base64URL.encode(random.bytes(32)))
      flow.machine.updateCallback(
        PostedCallback(
          handle: TokenHash(of: handle.reveal().utf8), fields: try parts.seals.seal(input, for: provider, id: id),
          expiresAt: request.now + Self.longestReturn))
      guard try await storage.takeTurn(flow) else { throw request.refusal(.stepNotOpen, because: .changedMeanwhile) }
      return handle
    }
  }
}

/// The flow that a callback belongs to.
package struct CallbackFlow: Sendable {
  package let id: FlowID
  /// Where the user was going when the flow began. Already validated (`RedirectTargets`).
  package let returnTo: String?
  /// The redirect URI of the app that receives the result of the flow, including failures.
  package let redirect: String?
  /// The fields that the site posted; nil if they are in the address.
  package var returned: [String: InputValue]?
}
