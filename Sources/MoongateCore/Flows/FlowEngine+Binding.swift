import MoongateSDK

// Which browser a flow is bound to, and what others may do with it.

/// What a client wants of a flow.
enum FlowUse: Sendable {
  /// To change it: begin, submit, resend, skip.
  case drive
  /// To look at it, to end it, or to redeem its code: an app may do so that has handed it to a browser.
  case look
}

extension FlowEngine {
  /// The flow as the client may use it; nil where it is as if there were none.
  ///
  /// Attack: the link of a flow that the attacker created by the API. The victim types the genuine code on the genuine
  /// page, and the attacker, who has the flow's id, completes it. So pages know only flows of their own browser, and
  /// the API drives no flow of a browser without its cookie.
  ///
  /// A native app opens the hosted pages in the system's browser. Its flow belongs to the first browser that opens it,
  /// and ends in a code that goes to the app's own address.
  ///
  /// Attack: the attacker creates such a flow, registers the victim's address with a password of their own by the API,
  /// and sends the link; the victim types the genuine code. So a browser gets only a flow in which nothing was typed or
  /// proved before it came.
  func bound(_ record: FlowRecord, to client: ClientContext, for use: FlowUse, _ request: RequestContext)
    async throws(FlowError) -> FlowRecord?
  {
    if let browser = record.browser {
      // A flow that is over takes no verb from anybody, and may say so.
      let isAppOutside = record.app != nil && client.entryPoint == .api && (use == .look || record.status != .pending)
      return browser == client.browser || isAppOutside ? record : nil
    }
    guard client.entryPoint == .page else { return record }
    guard record.app != nil, record.isUntouched, let browser = client.browser else { return nil }
    guard let bound = try await bind(record, to: browser, request), bound.browser == browser else { return nil }
    return bound
  }

  /// Binds a flow to the browser that opens it, over the version that was read: of two browsers at once the first one
  /// has it.
  private func bind(_ record: FlowRecord, to browser: TokenHash, _ request: RequestContext) async throws(FlowError)
    -> FlowRecord?
  {
    if let waiting = pending.bind(record.id, to: browser) { return waiting }
    var bound = record
    bound.bind(to: browser)
    let changed = bound
    // Whichever browser it was, the store has it now.
    _ = try await asking { () async throws(StoreFault) in try await store.apply([.putFlow(changed)], at: request.now) }
    return try await asking { () async throws(StoreFault) in try await store.flow(record.id) }
  }
}
