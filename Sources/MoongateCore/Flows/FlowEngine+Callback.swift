import Foundation
import MoongateSDK

// Handles the redirect back from another site with our `state`: a GET with the browser's cookies, or a cross-site form
// POST without them.

extension FlowEngine {
  private static let callbackOwner = "callback"

  /// How long posted callback fields wait for the browser, which follows a redirect.
  static let longestReturn = Duration.seconds(120)

  /// The callback address and state that the other site receives.
  func callback(_ provider: ProviderName, id: FlowID, _ request: RequestContext) throws(FlowError) -> Callback {
    do {
      let sealed = try keys.seal(Array(id.secret.reveal().utf8), for: "\(Self.callbackOwner) \(provider)")
      return Callback(
        address: "\(request.generation.gateway.publicURL)/auth/callback/\(provider)", state: Base64URL.encode(sealed))
    } catch {
      throw .store(StoreFault("the state of a redirect could not be sealed"))
    }
  }

  /// The flow of a `GET /auth/callback/{provider}?state=…`. The page then submits the fields that came with the
  /// request.
  ///
  /// Attack: a link to the callback with the attacker's own grant would sign the victim in as the attacker. A state
  /// therefore works only in the browser that began the flow. It does not work for a flow that no browser began, unless
  /// an app completes the flow with a code that only the app can redeem.
  /// - Parameter handle: the result of `hold`, if the site posted its answer.
  /// - Returns: `flowNotFound` if this browser has no such live flow; `stepNotOpen` for a handle that was used.
  package func flow(
    ofCallback state: String, provider: ProviderName, returned handle: String? = nil, client: ClientContext
  ) async -> Result<CallbackFlow, Refusal> {
    await answer(client, flow: nil) { request throws(FlowError) in
      let id = try flowID(ofCallback: state, provider, request)
      var machine = try await load(id, request)
      guard machine.record.browser != nil || machine.record.app != nil else { throw request.refusal(.flowNotFound) }
      var called = CallbackFlow(id: id, returnTo: machine.record.returnTo, app: machine.record.app)
      guard let handle else { return called }
      guard let step = machine.record.step, step.provider == provider, let held = step.returned,
        held.handle == TokenHash(of: handle.utf8),
        request.now < held.expiresAt
      else { throw request.refusal(.stepNotOpen) }
      machine.holds(nil)
      let taken = machine.record
      // If two requests redeem the handle, only one succeeds.
      let result = try await asking { () async throws(StoreFault) in
        try await store.apply([.putFlow(taken)], at: request.now)
      }
      guard case .applied = result else { throw request.refusal(.stepNotOpen) }
      called.returned = try open(held, for: provider, id: id)
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
      let id = try flowID(ofCallback: state, provider, request)
      var found = pending.find(id.hash)
      if found == nil { found = try await asking { () async throws(StoreFault) in try await store.flow(id.hash) } }
      guard let record = found, record.browser != nil || record.app != nil else { throw request.refusal(.flowNotFound) }
      var machine = FlowMachine(record)
      guard machine.closed(at: request.now) == nil, let step = record.step, step.provider == provider,
        step.redirectTo != nil,
        let descriptor = registry(request).descriptor(provider)
      else { throw request.refusal(.stepNotOpen) }
      let input = ProviderInput(fields: fields, defaultRegion: "").only(descriptor.callbackFields.map(\.name))
      try demandFit(input, to: step, by: descriptor, request)
      let handle = SecretText(Base64URL.encode(random.bytes(32)))
      machine.holds(
        PostedCallback(
          handle: TokenHash(of: handle.reveal().utf8), fields: try seal(input, for: provider, id: id),
          expiresAt: request.now + Self.longestReturn))
      let held = machine.record
      let result = try await asking { () async throws(StoreFault) in
        try await store.apply([.putFlow(held)], at: request.now)
      }
      guard case .applied = result else { throw request.refusal(.stepNotOpen) }
      return handle
    }
  }

  private func flowID(ofCallback state: String, _ provider: ProviderName, _ request: RequestContext) throws(FlowError)
    -> FlowID
  {
    guard state.utf8.count <= 1024, let sealed = Base64URL.decode(state),
      let text = try? keys.open(sealed, for: "\(Self.callbackOwner) \(provider)")
    else { throw request.refusal(.flowNotFound) }
    return FlowID(text: String(decoding: text, as: UTF8.self))
  }

  private func seal(_ input: ProviderInput, for provider: ProviderName, id: FlowID) throws(FlowError) -> SealedBytes {
    let texts = input.fields.compactMapValues { if case .text(let text) = $0 { text } else { nil } }
    do {
      return SealedBytes(try keys.seal(Array(try JSONEncoder().encode(texts)), for: "returned \(owner(provider, id))"))
    } catch {
      throw .store(StoreFault("the fields returned by a site could not be sealed"))
    }
  }

  private func open(_ held: PostedCallback, for provider: ProviderName, id: FlowID) throws(FlowError) -> [String:
    InputValue]
  {
    do {
      let bytes = try keys.open(held.fields.bytes, for: "returned \(owner(provider, id))")
      return try JSONDecoder().decode([String: String].self, from: Data(bytes)).mapValues { .text($0) }
    } catch {
      throw .store(StoreFault("the fields returned by a site cannot be opened"))
    }
  }
}

/// The flow that a callback belongs to.
package struct CallbackFlow: Sendable {
  package let id: FlowID
  /// Where the user was going when the flow began. Already validated (`RedirectTargets`).
  package let returnTo: String?
  /// The app that receives the result of the flow, including failures.
  package let app: AppReturn?
  /// The fields that the site posted; nil if they are in the address.
  package var returned: [String: InputValue]?
}
