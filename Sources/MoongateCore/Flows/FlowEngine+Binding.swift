import MoongateSDK

// Binds flows to browsers and decides what other clients may do with them.

/// What a client wants to do with a flow.
enum FlowUse: Sendable {
  /// Change it: begin, submit, resend, skip.
  case drive
  /// Read it, cancel it or redeem its code. An app that handed the flow to a browser may do this.
  case look
}

extension FlowEngine {
  /// The flow, if the client may use it; nil otherwise, as if the flow did not exist.
  ///
  /// Attack: the link of a flow that the attacker created by the API. The victim types the genuine code on the genuine
  /// page, and the attacker, who has the flow's ID, completes it. Pages therefore show only flows of their own browser,
  /// and the API cannot change a browser's flow without its cookie.
  ///
  /// A native app opens the hosted pages in the system's browser. Its flow is bound to the first browser that opens it,
  /// and ends in a code that goes to the app's own address.
  ///
  /// Attack: the attacker creates such a flow, registers the victim's address with a password of their own by the API,
  /// and sends the link; the victim types the genuine code. A browser can therefore only open a flow in which nothing
  /// was entered or verified before.
  func bound(_ record: FlowRecord, to client: ClientContext, for use: FlowUse, _ request: RequestContext)
    async throws(FlowError) -> FlowRecord?
  {
    if let browser = record.browser {
      // A finished flow accepts no more changes, so its status may be shown.
      let isAppOutside = record.app != nil && client.entryPoint == .api && (use == .look || record.status != .pending)
      return browser == client.browser || isAppOutside ? record : nil
    }
    guard client.entryPoint == .page else { return record }
    guard record.app != nil, record.isUntouched, let browser = client.browser else { return nil }
    guard let bound = try await bind(record, to: browser, request), bound.browser == browser else { return nil }
    return bound
  }

  /// Binds a flow to the browser that opens it, using optimistic locking. If two browsers open it at once, the first
  /// one gets it.
  private func bind(_ record: FlowRecord, to browser: TokenHash, _ request: RequestContext) async throws(FlowError)
    -> FlowRecord?
  {
    if let waiting = pending.bind(record.id, to: browser) { return waiting }
    var bound = record
    bound.bind(to: browser)
    let changed = bound
    // Read the result from the store: another browser may have been first.
    _ = try await asking { () async throws(StoreFault) in try await store.apply([.putFlow(changed)], at: request.now) }
    return try await asking { () async throws(StoreFault) in try await store.flow(record.id) }
  }
}
